"""`ldp_trie`: LDP TrieHH as Gboard runs it, by subset selection (Xu et al. 2024).

Begin at `price.py`, whose docstring has the algorithm, then `run.py`; `local_reports.py` has what
each observer learns.
"""
