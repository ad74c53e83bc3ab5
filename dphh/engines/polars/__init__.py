"""Polars as an engine: the level queries as lazy queries, and noise on materialised frames.

It mirrors `dphh/engines/duckdb` file by file, and `queries/` mirrors `sql/`: a function there has
the name of its `.sql` file, and its named frames are the named CTEs of that file.
"""
