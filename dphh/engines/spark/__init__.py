"""The engine for corpora that outgrow one machine: Spark writes each level, and reads it back.

Begin at `host.py`; `blocks.py` has whole users as rows, `dialect.py` the texts of `sql/`.
"""
