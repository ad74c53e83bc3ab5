"""LDP TrieHH with devices: each randomises its own reports; the collector only counts them."""
