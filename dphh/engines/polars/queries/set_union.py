"""One level of differentially private set union: what users hold, and its bounded histogram."""

from __future__ import annotations

import polars as pl


def held_items(tokens_of_rows: pl.LazyFrame) -> pl.LazyFrame:
    """What each user holds: the distinct tokens of all their rows."""
    tokens = tokens_of_rows.select("user_id", key="tokens").explode("key")
    return tokens.filter(pl.col("key") != "").unique()


def holders(held: pl.LazyFrame) -> pl.LazyFrame:
    """How many keys each user holds."""
    return held.group_by("user_id").agg(t=pl.len().cast(pl.Int64))


def hashed(held: pl.LazyFrame, holders: pl.LazyFrame, max_items: int, salt: int) -> pl.LazyFrame:
    """A place for each key of an over-full user. Which of them they keep does not matter for
    privacy, as long as it depends on that user alone: so neither user_id nor key may be a number
    that another user's coming or going would change (a categorical's would be)."""
    over_full = holders.filter(pl.col("t") > max_items).select("user_id")
    return held.join(over_full, on="user_id").with_columns(
        place=pl.struct("user_id", "key").hash(seed=salt)
    )


def cuts(hashed: pl.LazyFrame, max_items: int) -> pl.LazyFrame:
    """Where the keys of over-full users are cut: such a user keeps those whose hash lies below
    their (max_items + 1)st smallest, which is never more than max_items."""
    return hashed.group_by("user_id").agg(cut=pl.col("place").sort().get(max_items))


def set_union_level(
    held: pl.LazyFrame, weights: pl.LazyFrame, max_items: int, salt: int
) -> pl.LazyFrame:
    """The histogram of the weighted Gaussian policy (Gopi et al. 2020), before its noise: every
    user spreads a vector of L2 norm at most 2^b over what they hold.

    held (user_id, key), distinct pairs; weights (t, weight), weight = floor(2^b / sqrt(t)) for t up
    to max_items. Polars' integer sums wrap around without a word: these cannot, as a frame has less
    than 2^32 rows, each of them weighs at most 2^b, and b is at most GRID_BITS.
    """
    of_users = holders(held)

    within_cap = held.join(of_users.join(weights, on="t"), on="user_id").select("key", "weight")

    # An over-full user keeps max_items of their keys, or fewer where hashes are equal. They go
    # apart: SQL hashes only where it has to look, and Polars would hash every row.
    of_over_full = hashed(held, of_users, max_items, salt)
    over_cap = (
        of_over_full.join(cuts(of_over_full, max_items), on="user_id")
        .filter(pl.col("place") < pl.col("cut"))
        .join(weights.filter(pl.col("t") == max_items), how="cross")
        .select("key", "weight")
    )

    bounded = pl.concat([within_cap, over_cap])

    return bounded.group_by("key").agg(pl.col("weight").sum())


def forget_released(held: pl.LazyFrame, released: pl.LazyFrame) -> pl.LazyFrame:
    """DP-SIPS: what a round released is taken from everyone before the next round."""
    return held.join(released, on="key", how="anti")
