"""Counts of public keys in DuckDB: each user's contributions, and one Gaussian vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.answering import draws
from dphh.engines.duckdb.gathering import Gathers
from dphh.levels.counts import CountsOn
from dphh.udfs.kernel.gathering import given_items_of_texts
from dphh.udfs.kernel.given_grams import GivenGrams, register_counted


@draws(Gathers, CountsOn)
def counts_level(session: Gathers, asked: CountsOn, purpose: str) -> Any:
    level, items = asked.level, asked.items
    weighing = level.weighing
    given = GivenGrams(items, weighing.keys // len(items), beginnings=level.beginnings)
    session.gather("counted_users", given_items_of_texts(given, asked.groups))
    register_counted(session.con, weighing)
    session.tell("asked", pa.table({"key": np.arange(weighing.keys + weighing.octaves)}))
    session.execute("counts_contributions")
    session.execute("counts_level", sigma=level.sigma_grid, purpose=purpose)
    drawn = session.fetch("counts_drawn")
    for table in ("noised", "contributions", "counted_users", "asked"):
        session.drop(table)
    return drawn
