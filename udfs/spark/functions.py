"""The functions of this folder for Spark, as Arrow UDFs that run on the executors.

Spark copies what a function holds to its executors when the function is registered, so register
when the run has begun and its randomness is whole. All that draw are marked non-deterministic:
Spark then neither calls them twice for one row nor moves them. Write what they draw to Parquet
before anything reads it, since a task that runs again draws again.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas import functions

from dphh.udfs.draws.noise import noise_function
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.draws.subsets import report_function
from dphh.udfs.draws.votes import Draw, vote_functions
from dphh.udfs.kernel.whole_users import weight_of
from dphh.udfs.text.tokens import tokens_of

#: Its overloads want an annotation of each of Arrow's types, which have none here.
_arrow_udf: Any = functions.arrow_udf


def register_noise(spark: SparkSession, randomness: Randomness) -> None:
    """`dphh_noise(key, sigma, purpose)`, as in `noise_function`."""
    noise = noise_function(randomness)

    def draw(key: pa.Array, sigma: pa.Array, purpose: pa.Array) -> pa.Array:
        return noise(key, sigma, purpose)

    register_arrow(spark, "dphh_noise", draw, "bigint")


def register_weight(spark: SparkSession) -> None:
    """`dphh_weight(told, parts, deviation, threshold)`: what a user gives an item for its noised
    weights in earlier rounds, as in `weight_of`."""

    def weight(
        told: pa.Array, parts: pa.Array, deviation: pa.Array, threshold: pa.Array
    ) -> pa.Array:
        return weight_of(told, parts, deviation, threshold)

    register_arrow(spark, "dphh_weight", weight, "bigint", draws=False)


def register_votes(spark: SparkSession, randomness: Randomness) -> None:
    """`dphh_votes(key, users, numerator, theta, purpose)`, as in `vote_functions`."""
    votes, _ = vote_functions(randomness)

    def draw(
        key: pa.Array, users: pa.Array, numerator: pa.Array, theta: pa.Array, purpose: pa.Array
    ) -> pa.Array:
        return votes(key, users, numerator, theta, purpose)

    register_arrow(spark, "dphh_votes", draw, "bigint")


def register_word(spark: SparkSession, randomness: Randomness) -> None:
    """`dphh_word(key, purpose)`: as a decimal, since Spark has no unsigned integers."""
    _, word = vote_functions(randomness)

    def draw(key: pa.Array, purpose: pa.Array) -> pa.Array:
        return word(key, purpose).cast(pa.decimal128(20, 0))

    register_arrow(spark, "dphh_word", draw, "decimal(20, 0)")


def register_report(spark: SparkSession, randomness: Randomness) -> None:
    """`dphh_report(key, value, domain, size, numerator, purpose)`: see `report_function`."""
    report = report_function(randomness)

    def draw(
        key: pa.Array,
        value: pa.Array,
        domain: pa.Array,
        size: pa.Array,
        numerator: pa.Array,
        purpose: pa.Array,
    ) -> pa.Array:
        return report(key, value, domain, size, numerator, purpose)

    register_arrow(spark, "dphh_report", draw, "array<bigint>")


def register_tokens(spark: SparkSession, column: str, expression: str) -> None:
    """`dphh_tokens(content)`: what DuckDB makes of a row's content by this expression."""

    def tokens(content: pa.Array) -> pa.Array:
        return tokens_of(content, column, expression)

    register_arrow(spark, "dphh_tokens", tokens, "array<string>")


def register_arrow(
    spark: SparkSession, name: str, function: Draw, gives: str, draws: bool = True
) -> None:
    declared = _arrow_udf(function, gives)
    spark.udf.register(name, declared.asNondeterministic() if draws else declared)
