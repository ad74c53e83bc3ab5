"""What a corpus is: which files or which table, which rows, whose they are, and their tokens."""
