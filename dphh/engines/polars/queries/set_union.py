"""One level of differentially private set union over the words of whole users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from dphh.udfs.kernel.contributions import Weigh
from dphh.udfs.kernel.known_words import ReleasedWords
from dphh.udfs.kernel.whole_users import WholeUsers, unreleased, weighed

IDS = pl.List(pl.Int32)
WEIGHTS = pl.List(pl.Struct({"key": pl.Int64, "weight": pl.Int64}))


def remaining(users: pl.LazyFrame, released: ReleasedWords) -> pl.LazyFrame:
    """DP-SIPS: users without the words that earlier rounds released."""
    return users.with_columns(ids=of_users(lambda ids: unreleased(ids, released), IDS, "ids"))


def words_level(users: pl.LazyFrame, rule: Weigh) -> pl.LazyFrame:
    """The histogram of the weighted Gaussian policy (Gopi et al. 2020), before noise: every user
    spreads a vector of L2 norm at most 2^b over the words that they hold."""
    return histogram(users.rename({"ids": "keys"}), rule)


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
    contributions = users.select(contribution=_weighed_keys(rule))
    # All rows of a batch but the first are empty. A sum of 0 stays if the rule lists its key.
    some = contributions.filter(pl.col("contribution").list.len() > 0)
    of_keys = some.explode("contribution").unnest("contribution")
    return of_keys.group_by("key").agg(pl.col("weight").sum())


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
