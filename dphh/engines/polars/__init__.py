"""Polars as an engine: the level queries as lazy queries, and noise on collected frames.

A query is a function of `steps/`, in the file that has its folder's name in `sql/`. May import what
`engines/` may. Begin at `host.py`.
"""
