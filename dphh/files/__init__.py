"""Private folders, files that are written whole or not at all, lists of items, and how a process is
stopped.

Here belongs nothing that knows a corpus: which files a corpus names is in `reader/`. May import:
errors. Begin at `private_folder.py`.
"""
