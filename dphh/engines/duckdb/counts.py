"""Counts of public keys in DuckDB: each user's contributions, and one Gaussian vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.duckdb.items import Items
from dphh.levels.counts import CountsLevel
from dphh.udfs.kernel.gathering import given_items_of_texts
from dphh.udfs.kernel.given_grams import GivenGrams, register_counted


class Counts(Items):
    """The methods of a DuckDB session for counts of public keys."""

    def counts_level(
        self,
        level: CountsLevel,
        items: Sequence[Sequence[str]],
        groups: Sequence[str],
        purpose: str,
    ) -> Any:
        weighing = level.weighing
        given = GivenGrams(items, weighing.keys // len(items), beginnings=level.beginnings)
        self.gather("counted_users", given_items_of_texts(given, groups))
        register_counted(self.con, weighing)
        self.tell("asked", pa.table({"key": np.arange(weighing.keys + weighing.octaves)}))
        self.execute("counts_contributions")
        self.execute("counts_level", sigma=level.sigma_grid, purpose=purpose)
        drawn = self.fetch("counts_drawn")
        for table in ("noised", "contributions", "counted_users", "asked"):
            self.drop(table)
        return drawn
