"""What a row of a corpus means: whose it is, in which period, its tokens, and whether it counts."""
