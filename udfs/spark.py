"""The functions of this folder for Spark, as Arrow UDFs that run on the executors.

Spark copies what a function holds to its executors when the function is registered, so register
when the run has begun and its randomness is whole. All are marked non-deterministic: Spark then
neither calls them twice for one row nor moves them. Write what they draw to Parquet before anything
reads it, since a task that runs again draws again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas import functions

from dphh.privacy.rounded_gaussian import RoundedGaussian
from dphh.udfs.noise import know, noise_function
from dphh.udfs.randomness import Randomness
from dphh.udfs.subset_reports import subset_function
from dphh.udfs.texts import tokens_of
from dphh.udfs.votes import Draw, vote_functions

#: Its overloads want an annotation of each of Arrow's types, which have none here.
_arrow_udf: Any = functions.arrow_udf


def register_noise(spark: SparkSession, randomness: Randomness, table: RoundedGaussian) -> None:
    """`dphh_noise(key, sigma, purpose)`. The table travels once an executor: making one is slow."""
    noise = noise_function(randomness)
    sigma, sent = table.sigma, spark.sparkContext.broadcast(table)

    def draw(key: pa.Array, sigmas: pa.Array, purpose: pa.Array) -> pa.Array:
        know(sigma, lambda _: sent.value)
        return noise(key, sigmas, purpose)

    _register(spark, "dphh_noise", draw, "bigint")


def register_votes(spark: SparkSession, randomness: Randomness) -> None:
    """`dphh_votes(key, users, numerator, theta, purpose)`, as in `vote_functions`."""
    votes, _ = vote_functions(randomness)

    def draw(
        key: pa.Array, users: pa.Array, numerator: pa.Array, theta: pa.Array, purpose: pa.Array
    ) -> pa.Array:
        return votes(key, users, numerator, theta, purpose)

    _register(spark, "dphh_votes", draw, "bigint")


def register_word(spark: SparkSession, randomness: Randomness) -> None:
    """`dphh_word(key, purpose)`: as a decimal, since Spark has no unsigned integers."""
    _, word = vote_functions(randomness)

    def draw(key: pa.Array, purpose: pa.Array) -> pa.Array:
        return word(key, purpose).cast(pa.decimal128(20, 0))

    _register(spark, "dphh_word", draw, "decimal(20, 0)")


def register_subset(spark: SparkSession, randomness: Randomness) -> None:
    """`dphh_subset(key, value, domain, size, numerator, purpose)`, as in `subset_function`."""
    subset = subset_function(randomness)

    def draw(
        key: pa.Array,
        value: pa.Array,
        domain: pa.Array,
        size: pa.Array,
        numerator: pa.Array,
        purpose: pa.Array,
    ) -> pa.Array:
        return subset(key, value, domain, size, numerator, purpose)

    _register(spark, "dphh_subset", draw, "array<bigint>")


def register_places(spark: SparkSession, released: Any) -> None:
    """`dphh_places(keys)`: a list of keys as the numbers of those released, NULL for the others.

    `released` is an Arrow table (key, gram). It is sent to the executors whole: what is released
    is known to the driver whole as well.
    """
    keys, grams = released.column("key").combine_chunks(), released.column("gram").to_numpy()
    words = pa.types.is_string(keys.type)
    sent = spark.sparkContext.broadcast((keys if words else keys.to_numpy(), grams))

    def places(lists: pa.Array) -> pa.Array:
        known, numbers = sent.value
        flat = lists.flatten()
        found = _places_of_words(flat, known) if words else _places_of_pairs(flat, known)
        missing = found < 0
        gram = numbers[np.where(missing, 0, found)].astype(np.int32)
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(gram, mask=missing))

    _register(spark, "dphh_places", places, "array<int>")


def register_tokens(spark: SparkSession, column: str, expression: str) -> None:
    """`dphh_tokens(content)`: what DuckDB makes of a row's content by this expression."""

    def tokens(content: pa.Array) -> pa.Array:
        return tokens_of(content, column, expression)

    _register(spark, "dphh_tokens", tokens, "array<string>")


def _register(spark: SparkSession, name: str, function: Draw, gives: str) -> None:
    spark.udf.register(name, _arrow_udf(function, gives).asNondeterministic())


def _places_of_words(words: Any, known: Any) -> Any:
    """Where each word stands in `known`, or -1: each distinct word is looked up once a batch."""
    encoded = words.dictionary_encode()
    at = pc.index_in(encoded.dictionary.cast(pa.string()), value_set=known).fill_null(-1).to_numpy()
    code = encoded.indices.fill_null(-1).to_numpy()
    return np.append(at, -1)[code]


def _places_of_pairs(pairs: Any, known: Any) -> Any:
    """Where each pair stands in `known`, which is ascending, or -1."""
    missing = pc.is_null(pairs).to_numpy(zero_copy_only=False)
    wanted = pairs.fill_null(-1).to_numpy()
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(~missing & (known[at] == wanted), at, -1)
