"""Polars as an engine: the level queries as lazy queries, and noise on materialised frames.

Files that do what a file of `dphh/engines/duckdb` does have its name. `queries/` has the steps of
`sql/` that are queries here; what draws, or reads what was drawn, is beside them, on collected
frames.
"""
