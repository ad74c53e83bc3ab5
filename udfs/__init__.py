"""The functions that queries call, from Arrow arrays to an Arrow array: the same on all engines.

`functions.py` declares each once. `kernel/` gathers users and makes their keys distinct, `rules/`
says what a user adds, `noise/` draws, `arrays.py` has what all of them take.
May import: sql and errors. Begin at `functions.py`.
"""
