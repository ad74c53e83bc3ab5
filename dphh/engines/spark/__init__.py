"""The engine for corpora that outgrow one machine: Spark makes each level, and keeps it.

`blocks.py` has whole users as rows, `dialect.py` the steps of `sql/` and the functions that they
call. May import what `engines/` may. Begin at `host.py`.
"""
