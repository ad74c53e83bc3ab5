"""The devices' and the collector's sides of TrieHH (`votes`) and LDP TrieHH (`reports`)."""
