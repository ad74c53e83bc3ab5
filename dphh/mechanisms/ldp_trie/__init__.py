"""`ldp_trie`: LDP TrieHH as Gboard runs it, by subset selection (Xu et al. 2024)."""
