"""Counts of public keys in Polars: each user's contributions, and one Gaussian vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dphh.engines.polars.items import Items
from dphh.engines.polars.queries import counts as queries
from dphh.levels.counts import CountsLevel
from dphh.udfs.kernel.gathering import given_items_of_texts
from dphh.udfs.kernel.given_grams import GivenGrams


class Counts(Items):
    """The methods of a Polars session for counts of public keys."""

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
        users = self.table("counted_users")
        sums = self.fetch("counts_level", queries.counts_level(users, weighing))
        self.drop("counted_users")
        asked = pl.DataFrame({"key": range(weighing.keys + weighing.octaves)})
        added = asked.join(sums, on="key", how="left", maintain_order="left")
        self._write_noised(added.with_columns(pl.col("weight").fill_null(0)), level, purpose)
        drawn = self.tables["noised"].sort("key").to_arrow()
        self.drop("noised")
        return drawn
