"""The functions that queries call, from Arrow arrays to an Arrow array: the same on all engines.

`functions.py` declares each once; `whole_users.py` has those over rows of whole users. `kernel/`
gathers users and makes their keys distinct, `rules/` says what a user adds, `noise/` draws, `text/`
makes words and their hashes. May import: sql and errors. Begin at `functions.py`.
"""
