"""What runs on devices and what collects from them: TrieHH by `votes`, LDP TrieHH by `reports`."""
