"""The reader of all engines: which files, which rows, whose, which tokens.

Here belongs all that reads a corpus: its options (`sources.py`, `content.py`, `conditions.py`,
`files.py`), DuckDB's views and tokens (`views.py`), whole users, for which engines ask (`rows.py`),
the digest of rows (`identity.py`), and errors without data (`failures.py`).
May import: udfs, sql, files, wording, errors. Begin at `corpus.py`.
"""
