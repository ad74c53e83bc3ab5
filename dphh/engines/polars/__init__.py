"""Polars as an engine: the level queries as lazy queries, and noise on frames that stand.

Mirrors `dphh/engines/duckdb` file for file, and `queries/` mirrors `sql/`: a function there has the
name of its `.sql` file, and its named frames are that file's named CTEs.
"""
