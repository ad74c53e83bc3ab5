"""Before a run pays, DuckDB looks for Polars too, with the memory that Polars has for texts."""

from __future__ import annotations

import polars as pl

from dphh.corpus import Corpus
from dphh.engines.duckdb.look import has_rows_of_null_users, look_first
from dphh.engines.duckdb.run import DuckDBRows
from dphh.engines.room import Room
from dphh.session.protocol import Session

__all__ = ["has_rows_of_null_users", "refuse_if_run_would_fail"]


def refuse_if_run_would_fail(corpus: Corpus, session: Session) -> None:
    """Before a run pays, refuse a corpus on which it would fail."""
    look_first(corpus, _room)


def _room(looking: DuckDBRows) -> Room:
    threads = pl.thread_pool_size()
    return Room(100_000, threads, {"words": 6, "characters": 60}, looking.memory)
