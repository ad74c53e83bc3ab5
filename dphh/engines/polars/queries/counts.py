"""Counts of public keys: the sums of what users contribute."""

from __future__ import annotations

import polars as pl

from dphh.engines.polars.queries.set_union import WEIGHTS, of_users
from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.given_grams import counted_at_first


def counts_level(users: pl.LazyFrame, weighing: Weighing) -> pl.LazyFrame:
    """Each whole user adds one user's weight to each key held, or less if these are more than
    max_items; what bounding took from each key is added to the octave of their number."""
    contributions = users.select(
        contribution=of_users(counted_at_first(weighing), WEIGHTS, "lengths", "ids")
    )
    of_keys = contributions.explode("contribution").drop_nulls().unnest("contribution")
    return of_keys.group_by("key").agg(pl.col("weight").sum())
