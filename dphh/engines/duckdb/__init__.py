"""The default engine: an embedded DuckDB instance for each run, closed when the run ends.

It runs the texts of `sql/` as they are, with the functions of `udfs/functions.py`. May import what
`engines/` may. Begin at `host.py`.
"""
