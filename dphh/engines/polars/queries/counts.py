"""Counts of public keys: what each user holds of them, and what users add to the sums."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dphh.engines.polars.queries.set_union import CODES, WEIGHTS, of_users
from dphh.privacy.counts import Weighing
from dphh.udfs.given_grams import GivenGrams, counted_at_first, keys_of_texts


def counted_users(
    tokens_of_rows: pl.LazyFrame, given: GivenGrams, groups: Sequence[str]
) -> pl.LazyFrame:
    """Which of the given items each user holds: those whose tokens stand side by side in a text of
    the user's. A key is the item's number times the number of groups, and the group's; what is not
    declared, NULL too, is the last."""
    number = pl.col("group_name").replace_strict(
        pl.Series(groups, dtype=pl.String),
        pl.int_range(len(groups), eager=True),
        default=len(groups),
        return_dtype=pl.Int64,
    )
    texts = tokens_of_rows.select("user_id", "tokens", number=number.fill_null(len(groups)))
    held = texts.select("user_id", keys=of_users(keys_of_texts(given), CODES, "tokens", "number"))
    return held.group_by("user_id").agg(pl.col("keys").explode().drop_nulls())


def counts_level(users: pl.LazyFrame, weighing: Weighing) -> pl.LazyFrame:
    """Each whole user adds one user to each key held, or less where these are more than max_items;
    and to the octave of their number what that took from each."""
    contributions = users.select(contribution=of_users(counted_at_first(weighing), WEIGHTS, "keys"))
    of_keys = contributions.explode("contribution").drop_nulls().unnest("contribution")
    return of_keys.group_by("key").agg(pl.col("weight").sum())
