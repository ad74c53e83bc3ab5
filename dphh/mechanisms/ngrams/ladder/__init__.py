"""The n-gram ladder in public numbers: the released grams, and classes of valid ones.

Here belongs what follows from released and public numbers alone; nothing here sees a user or
draws. May import: udfs, level, prior, and of engines the host. Begin at `rungs.py`, then
`classes.py`.
"""
