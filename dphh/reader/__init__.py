"""The reader of all engines: which files, which rows, whose, which tokens.

Here belongs all that reads a corpus. Without rows: `corpus.py` and the options that it takes
(`content.py`, `conditions.py`), where it is (`paths.py`, `files.py`, `tables.py`). With rows:
`views.py` makes DuckDB's views of them, and tokens, `rows.py` gathers whole users, `identity.py`
has the digest by which they are known again, `failures.py` keeps data out of errors.
Engines ask `rows.py`. May import: udfs, sql, files, wording, errors. Begin at `corpus.py`.
"""
