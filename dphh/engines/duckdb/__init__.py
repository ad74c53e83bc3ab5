"""The default engine: an embedded DuckDB instance for each run, closed when the run ends.

`host.py` runs the texts of `sql/` as they are.
"""
