"""Polars as an engine: the level queries as lazy queries, and noise on collected frames."""
