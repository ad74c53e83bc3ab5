"""Counts of public keys in Spark: each user's contributions, and one Gaussian vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.answering import draws
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.items import Items
from dphh.levels.counts import CountsOn
from dphh.udfs.kernel.given_grams import GivenGrams
from dphh.udfs.spark.counts import register_counted
from dphh.udfs.spark.functions import register_noise


@draws(Items, CountsOn)
def counts_level(session: Items, asked: CountsOn, purpose: str) -> Any:
    level, items = asked.level, asked.items
    weighing = level.weighing
    given = GivenGrams(items, weighing.keys // len(items), beginnings=level.beginnings)
    session.reach()
    numbers = pa.array(np.arange(len(asked.groups), dtype=np.int64))
    declared = {"group_name": pa.array(asked.groups, pa.string()), "number": numbers}
    keys = np.arange(weighing.keys + weighing.octaves, dtype=np.int64)
    with engine_errors("counts_contributions"):
        session.show("declared_groups", pa.table(declared))
        session.show("asked", pa.table({"key": keys}))
        register_counted(session.spark, *session.tokens, given, weighing.keys)
        register_noise(session.spark, session.randomness)
    session.look("counts_users", others=len(asked.groups))
    session.look("counts_contributions", max_items=weighing.max_items, grid_bits=weighing.bits)
    session.execute("counts_level", sigma=level.sigma_grid, purpose=purpose)
    drawn = session.fetch("counts_drawn")
    for table in ("noised", "asked", "declared_groups"):
        session.drop(table)
    return drawn
