"""LDP TrieHH: sequences from locally randomised reports."""
