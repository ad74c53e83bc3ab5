"""The functions that draw, in a bare DuckDB."""

from __future__ import annotations

import duckdb

from dphh.engines.duckdb.functions import register
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.functions import functions
from dphh.udfs.text.vocabulary import Vocabulary


def register_draws(con: duckdb.DuckDBPyConnection, randomness: Randomness) -> None:
    """Register `dphh_noise`, `dphh_votes`, `dphh_word` and `dphh_report`."""
    found = functions(randomness)
    for name in ("noise", "votes", "word", "report"):
        register(con, name, found[name], Vocabulary(), [])
