"""How numbers, names and options are said to people."""
