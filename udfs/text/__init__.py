"""Words: tokens of a text, their numbers in a run, and hashes of words and users.

May import: sql. Begin at `tokens.py`.
"""
