"""One level of differentially private set union over the words of whole users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from dphh.udfs.kernel.contributions import Weigh
from dphh.udfs.kernel.held import rows_of_held
from dphh.udfs.kernel.whole_users import WholeUsers, each_once, weighed, weighed_held

IDS = pl.List(pl.Int32)
LEFT = pl.Struct({"keys": IDS, "owners": IDS})
WEIGHTS = pl.List(pl.Struct({"key": pl.Int64, "weight": pl.Int64}))


def held_words(users: pl.LazyFrame) -> pl.LazyFrame:
    """The distinct words of each user, found once: every round of set union reads them. Columns
    user_hashes, keys and owners: pairs of a word and the place of its user in the row."""
    return held(users.rename({"ids": "keys"}), IDS)


def held(positions: pl.LazyFrame, keys: Any) -> pl.LazyFrame:
    """The distinct keys of each user (user_hashes, lengths, keys), by `udfs/kernel/held.py`."""
    kind = pl.Struct({"user_hashes": pl.List(pl.Int64), "keys": keys, "owners": IDS})
    of_rows = of_users(rows_of_held, kind, "user_hashes", "lengths", "keys")
    return positions.select(held=of_rows).unnest("held")


def words_level(held_words: pl.LazyFrame, rule: Weigh) -> pl.LazyFrame:
    """The histogram of the weighted Gaussian policy (Gopi et al. 2020), before noise: every user
    spreads a vector of L2 norm at most 2^b over the words that they hold."""
    return histogram_of_held(held_words, rule)


def released_words(passed: pl.DataFrame, whole_users: WholeUsers) -> pl.DataFrame:
    """The words whose noised weight reaches the threshold, which may be released. Sorted by
    released values only, so that the order does not reveal how the rows arrived."""
    spelled = pl.Series(whole_users.spelled(passed["key"].to_arrow()), dtype=pl.String)
    return (
        passed.select("noisy", key=spelled)
        .select("key", "noisy")
        .sort("noisy", "key", descending=[True, False])
    )


def histogram(users: pl.LazyFrame, rule: Weigh) -> pl.LazyFrame:
    """For each whole user (user_hashes, lengths, keys), the distinct keys that count, with weights;
    and the sums over users. The sum of a batch of users is in the batch's first row.

    Polars' integer sums wrap around without an error. These cannot overflow: there are less than
    2^32 texts, and each of their users has weights of at most 2^b or a round's unit, which is less
    than 2^24 at any epsilon that can be priced.
    """
    return _summed(users, _weighed_keys(rule))


def histogram_of_held(held_keys: pl.LazyFrame, rule: Weigh) -> pl.LazyFrame:
    """The same, where rows have the distinct keys that users hold (user_hashes, keys, owners)."""

    def step(user_hashes: Any, keys: Any, owners: Any) -> Any:
        return weighed_held(user_hashes, keys, owners, rule)

    return _summed(held_keys, of_users(step, WEIGHTS, "user_hashes", "keys", "owners"))


def _summed(users: pl.LazyFrame, contribution: pl.Expr) -> pl.LazyFrame:
    contributions = users.select(contribution=contribution)
    # All rows of a batch but the first are empty. A sum of 0 stays if the rule lists its key.
    some = contributions.filter(pl.col("contribution").list.len() > 0)
    of_keys = some.explode("contribution").unnest("contribution")
    return of_keys.group_by("key").agg(pl.col("weight").sum())


def forget_released(held_words: pl.LazyFrame, whole_users: WholeUsers) -> pl.LazyFrame:
    """DP-SIPS: remove the words that a round released from every user before the next round."""
    left = of_users(whole_users.unreleased, LEFT, "keys", "owners")
    return held_words.select("user_hashes", left=left).unnest("left")


def exact_counts(held_words: pl.LazyFrame, at_least: int) -> pl.LazyFrame:
    """How many users hold each key, exactly. NOT private: for the owner only."""
    counts = histogram_of_held(held_words, each_once)
    return counts.filter(pl.col("weight") >= at_least)


def _weighed_keys(rule: Weigh) -> pl.Expr:
    def step(user_hashes: Any, lengths: Any, keys: Any) -> Any:
        return weighed(user_hashes, lengths, keys, rule)

    return of_users(step, WEIGHTS, "user_hashes", "lengths", "keys")


def of_users(step: Callable[..., Any], gives: Any, *columns: str) -> pl.Expr:
    """A step of `udfs/kernel/whole_users.py`, applied to batches of whole users."""

    def of_columns(rows: pl.Series) -> pl.Series:
        newest = pl.CompatLevel.newest()
        found = step(*(rows.struct.field(name).to_arrow(compat_level=newest) for name in columns))
        return pl.Series(found, dtype=gives)

    distinct = dict.fromkeys(columns)
    return pl.struct(*distinct).map_batches(of_columns, return_dtype=gives, is_elementwise=True)
