"""LDP TrieHH among devices: each randomises its own report; the collector only counts."""
