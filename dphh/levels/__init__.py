"""The kinds of levels of plans: a file for each mechanism."""
