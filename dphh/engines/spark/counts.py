"""Counts of public keys in Spark: each user's contributions, and one Gaussian vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.items import Items
from dphh.levels.counts import CountsLevel
from dphh.udfs.kernel.given_grams import GivenGrams
from dphh.udfs.spark.counts import register_counted
from dphh.udfs.spark.functions import register_noise


class Counts(Items):
    """The methods of a Spark session for counts of public keys."""

    def counts_level(
        self,
        level: CountsLevel,
        items: Sequence[Sequence[str]],
        groups: Sequence[str],
        purpose: str,
    ) -> Any:
        weighing = level.weighing
        given = GivenGrams(items, weighing.keys // len(items), beginnings=level.beginnings)
        self.reach()
        numbers = pa.array(np.arange(len(groups), dtype=np.int64))
        declared = {"group_name": pa.array(groups, pa.string()), "number": numbers}
        keys = np.arange(weighing.keys + weighing.octaves, dtype=np.int64)
        with engine_errors("counts_contributions"):
            self.show("declared_groups", pa.table(declared))
            self.show("asked", pa.table({"key": keys}))
            register_counted(self.spark, *self.tokens, given, weighing)
            register_noise(self.spark, self.randomness)
        self.look("counts_users", others=len(groups))
        self.look("counts_contributions")
        self.execute("counts_level", sigma=level.sigma_grid, purpose=purpose)
        drawn = self.fetch("counts_drawn")
        for table in ("noised", "asked", "declared_groups"):
            self.drop(table)
        return drawn
