"""Counts of public keys: the sums of what users contribute."""

from __future__ import annotations

import polars as pl

from dphh.engines.polars.queries.set_union import WEIGHTS, of_users
from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.given_grams import counted_at_first


def counts_level(users: pl.LazyFrame, weighing: Weighing) -> pl.LazyFrame:
    """(key, weight): the sums of what users add. A user adds one user's weight to each key held, or
    less if they hold more than max_items. What each of their keys then lost is added once, to the
    octave of the number of keys that they hold."""
    contributions = users.select(
        contribution=of_users(counted_at_first(weighing), WEIGHTS, "lengths", "ids")
    )
    of_keys = contributions.explode("contribution").drop_nulls().unnest("contribution")
    return of_keys.group_by("key").agg(pl.col("weight").sum())
