"""Before a run pays, DuckDB looks for Polars too, with the memory that Polars has for texts."""

from __future__ import annotations

import polars as pl

from dphh.engines.duckdb.look import has_rows_of_null_users
from dphh.engines.duckdb.run import DuckDBRows
from dphh.engines.room import Room

__all__ = ["has_rows_of_null_users", "room_on_polars"]


def room_on_polars(looking: DuckDBRows) -> Room:
    threads = pl.thread_pool_size()
    return Room(100_000, threads, {"words": 6, "characters": 60}, looking.memory)
