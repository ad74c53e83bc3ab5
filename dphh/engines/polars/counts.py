"""Counts of public keys in Polars: each user's contributions, and one Gaussian vector."""

from __future__ import annotations

from typing import Any

import polars as pl

from dphh.engines.answering import draws
from dphh.engines.polars.items import Items
from dphh.engines.polars.queries import counts as queries
from dphh.levels.counts import CountsOn
from dphh.udfs.kernel.gathering import given_items_of_texts
from dphh.udfs.kernel.given_grams import GivenGrams


@draws(Items, CountsOn)
def counts_level(session: Items, asked: CountsOn, purpose: str) -> Any:
    level, items = asked.level, asked.items
    weighing = level.weighing
    given = GivenGrams(items, weighing.keys // len(items), beginnings=level.beginnings)
    session.gather("counted_users", given_items_of_texts(given, asked.groups))
    users = session.table("counted_users")
    sums = session.fetch("counts_level", queries.counts_level(users, weighing))
    session.drop("counted_users")
    keys = pl.DataFrame({"key": range(weighing.keys + weighing.octaves)})
    added = keys.join(sums, on="key", how="left", maintain_order="left")
    added = added.with_columns(pl.col("weight").fill_null(0))
    return session.noised(added, level.sigma_grid, purpose).sort("key").to_arrow()
