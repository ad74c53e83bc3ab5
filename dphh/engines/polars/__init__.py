"""Polars as an engine: the level queries as lazy queries, and noise on collected frames.

Begin at `host.py`; a query is a function of `steps/`, in the file of its folder in `sql/`.
"""
