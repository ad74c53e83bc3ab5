"""What a row of a corpus means: whose it is, its tokens, and whether it counts."""
