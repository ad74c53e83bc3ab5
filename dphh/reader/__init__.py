"""The reader of all engines: which files, which rows, whose, which tokens.

Here belongs all that reads a corpus: its options without a row (`content.py`, `conditions.py`,
`files.py`), the views and tokens of DuckDB (`views.py`), whole users (`rows.py`, which engines
ask), the digest of rows (`identity.py`), and errors without data (`failures.py`).
May import: udfs, sql, files, wording, errors. Begin at `corpus.py`.
"""
