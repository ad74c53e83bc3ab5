"""Histograms of what users add, over words and over public keys. The comments of `sql/set_union`
and `sql/counts` explain the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from dphh.engines.polars.steps import Tables, step
from dphh.udfs.noise.truncated import draw_truncated_geometric, truncated_geometric

if TYPE_CHECKING:
    from dphh.engines.polars.host import PolarsHost

USERS_COLUMNS = ("user_hashes", "lengths", "ids")


@step
def words_of_round(
    host: PolarsHost,
    *,
    released: Any,
    w: Any,
    max_items: int,
    grid_bits: int,
    salt: int,
    sigma: int,
    purpose: str,
) -> Tables:
    bounding = (*USERS_COLUMNS, released, max_items, grid_bits, salt, w)
    sums = histogram(host, host.table("users"), "contributions_of_words", *bounding)
    held = host.collect("words_of_round", sums.with_columns(has_weight=pl.col("weight") > 0))
    # Only a test's randomness depends on how a word is spelled.
    names = host.spelled(held["key"]) if host.randomness.is_test else None
    return {"noised": host.noised(held, sigma, purpose, names)}


@step
def buckets_of_choice(
    host: PolarsHost, *, buckets: int, max_items: int, grid_bits: int, sigma: int, purpose: str
) -> Tables:
    bounding = (*USERS_COLUMNS, buckets, max_items, grid_bits)
    sums = histogram(host, host.table("users"), "contributions_to_buckets", *bounding)
    every = pl.LazyFrame({"key": range(buckets)}, {"key": pl.Int64})
    weights = every.join(sums, on="key", how="left", maintain_order="left")
    added = host.collect("buckets_of_choice", weights.with_columns(pl.col("weight").fill_null(0)))
    return {"noised": host.noised(added, sigma, purpose)}


@step
def single_items(
    host: PolarsHost,
    *,
    max_items: int,
    grid_bits: int,
    salt: int,
    ratio: int,
    reach: int,
    edge: int,
    purpose: str,
) -> Tables:
    bounding = (*USERS_COLUMNS, None, max_items, grid_bits, salt, None)
    sums = histogram(host, host.table("users"), "contributions_of_words", *bounding)
    held = host.collect("single_items", sums.with_columns(has_weight=pl.col("weight") > 0))
    names = host.spelled(held["key"]).to_arrow() if host.randomness.is_test else None
    law = truncated_geometric(ratio, reach, edge)
    noise = draw_truncated_geometric(host.randomness, law, held.height, purpose, names)
    noisy = held["weight"] + pl.Series(noise, dtype=pl.Int64)
    return {"noised": held.with_columns(noisy=noisy).drop("weight")}


@step
def released_words(host: PolarsHost, *, threshold: int) -> pl.DataFrame:
    """(In SQL a key is a word id; here it is a spelling.)"""
    released = host.tables["noised"].filter("has_weight", pl.col("noisy") >= threshold)
    return released.select(host.spelled(released["key"]).alias("key"), "noisy")


@step
def no_earlier_sums(host: PolarsHost) -> Tables:
    zeros = host.table("noised").select("key", noisy_sum=pl.lit(0, pl.Int64))
    return {"earlier_sums": zeros.limit(0)}


@step
def sums_so_far(host: PolarsHost, *, precision: int) -> Tables:
    joined = host.table("noised").join(host.table("earlier_sums"), on="key", how="left")
    noisy_sum = precision * pl.col("noisy") + pl.col("noisy_sum").fill_null(0)
    return {"sums_so_far": joined.select("key", noisy_sum=noisy_sum)}


@step
def weights_of_round(
    host: PolarsHost, *, total_precision: int, deviation: int, threshold: int
) -> pl.LazyFrame:
    weight = host.call("weight", "noisy_sum", total_precision, deviation, threshold)
    return host.table("earlier_sums").select("key", value=weight)


@step
def counted_users(host: PolarsHost, *, given: Any) -> Tables:
    found = host.call("keys_of_items", "lengths", "ids", given)
    of_users = host.table("users").select("block", found=found).unnest("found")
    return {"counted_users": of_users.with_columns(caps=pl.lit(None, pl.List(pl.Int64)))}


@step
def counts_within_purses(host: PolarsHost, *, scale: float) -> Tables:
    counted = host.table("counted_users").select("block", "lengths", "ids")
    capped = counted.join(host.table("purses"), on="block")
    caps = host.call("caps", "purse", scale)
    return {"capped_users": capped.select("block", "lengths", "ids", caps=caps)}


@step
def counts_level(host: PolarsHost, *, rule: Any, sigma: int, purpose: str) -> Tables:
    columns = "lengths", "ids", "caps"
    sums = histogram(host, host.table("counted_users"), "contributions_to_counts", *columns, rule)
    every = host.table("asked").join(sums, on="key", how="left", maintain_order="left")
    added = host.collect("counts_level", every.with_columns(pl.col("weight").fill_null(0)))
    return {"noised": host.noised(added, sigma, purpose)}


@step
def counts_drawn(host: PolarsHost) -> pl.LazyFrame:
    return host.table("noised").select("key", "noisy")


def histogram(
    host: PolarsHost, users: pl.LazyFrame, function: str, *arguments: Any
) -> pl.LazyFrame:
    """(key, weight): the sums over users of the weights that a function of `udfs/` gives. The
    first row of a batch of users has a list of the batch's sums; the lists of other rows are empty.

    Polars' integer sums wrap around without an error. These cannot overflow: there are less than
    2^32 texts, and each of their users has weights of at most 2^b or a round's unit, which is less
    than 2^24 at any epsilon that can be priced.
    """
    return summed(users.select(contributions=host.call(function, *arguments)))


def summed(contributions: pl.LazyFrame) -> pl.LazyFrame:
    """(key, weight): the sums of the lists of a column `contributions`."""
    # This filter drops empty lists, and no key: a key to which users gave a weight of 0 stays.
    sums_of_batches = contributions.filter(pl.col("contributions").list.len() > 0)
    of_keys = sums_of_batches.explode("contributions").unnest("contributions")
    return of_keys.group_by("key").agg(pl.col("weight").sum())
