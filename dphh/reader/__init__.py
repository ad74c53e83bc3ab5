"""What a row of a corpus means: its user, its tokens, and whether it counts."""
