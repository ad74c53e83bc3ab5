"""How numbers, names and options are written for people."""
