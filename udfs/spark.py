"""The functions of this folder for Spark, as Arrow UDFs that run on the executors.

Spark copies what a function holds to its executors when the function is registered, so register
when the run has begun and its randomness is whole. All are marked non-deterministic: Spark then
neither calls them twice for one row nor moves them. Write what they draw to Parquet before anything
reads it, since a task that runs again draws again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as functions_of_tables
from pyspark.sql.pandas import functions

from dphh.levels import Pruning
from dphh.privacy.rounded_gaussian import RoundedGaussian
from dphh.udfs.blocks import Block, block_at, block_of_tokens, packed, row_of, unpacked
from dphh.udfs.contributions import Sums, contributions
from dphh.udfs.noise import know, noise_function
from dphh.udfs.places import beside_another, candidates, places_of_grams, places_of_words
from dphh.udfs.randomness import Randomness
from dphh.udfs.subset_reports import subset_function
from dphh.udfs.texts import tokens_of
from dphh.udfs.votes import Draw, vote_functions

Integers = NDArray[np.int64]
OfRows = Callable[[pa.RecordBatch], Iterator[dict[str, Any]]]
OfSums = Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]
_POSITIONS = "lots binary, lengths binary, grams binary, words binary"
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


def register_blocks(spark: SparkSession, column: str, expression: str) -> None:
    """`dphh_blocks(TABLE(users))`: from (lot, contents) to (lots, lengths, places, words)."""

    def of_users(users: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        texts: Any = users.column("contents")
        tokens = tokens_of(texts.flatten(), column, expression)
        numbers = pc.list_value_length(texts).to_numpy()
        block, words = block_of_tokens(users.column("lot").to_numpy(), numbers, tokens)
        for piece in block.in_pieces():
            yield {**row_of(piece, "places"), "words": [packed(words)]}

    _register_table(
        spark,
        "dphh_blocks",
        of_users,
        "lots binary, lengths binary, places binary, words binary",
    )


def register_sums_of_words(spark: SparkSession, weights: Integers, salt: int) -> None:
    """`dphh_contributions(TABLE(blocks))`: to (key, weight)."""

    def of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "places")
            there = block.places >= 0
            owners, codes = block.owners[there], block.places[there]
            words = unpacked(rows.column("words")[row])
            yield contributions(owners, codes, words, block.lots, weights, salt)

    _register_sums(spark, "dphh_contributions", of_blocks, "key string, weight bigint")


def register_sums_of_grams(
    spark: SparkSession, level: int, pruning: Pruning, weights: Integers, salt: int
) -> None:
    """`dphh_contributions(TABLE(positions))`: to (key, weight)."""

    def of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "grams")
            keys = candidates(block.places, _words(rows, row), level, pruning)
            there = keys >= 0
            found: Any = pa.array(keys[there]).dictionary_encode()
            codes = found.indices.to_numpy().astype(np.int64)
            kinds = found.dictionary
            yield contributions(block.owners[there], codes, kinds, block.lots, weights, salt)

    _register_sums(spark, "dphh_contributions", of_blocks, "key bigint, weight bigint")


def register_places_of_words(spark: SparkSession, released: Any) -> None:
    """`dphh_places(TABLE(blocks))`: to (lots, lengths, grams, words).

    `released` is an Arrow table (key, gram). It is sent to the executors whole: what is released
    is known to the driver whole as well.
    """
    known = released.column("key").combine_chunks()
    sent = spark.sparkContext.broadcast((known, released.column("gram").to_numpy()))

    def of_blocks(rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        known, numbers = sent.value
        for row in range(rows.num_rows):
            block = block_at(rows, row, "places")
            at = places_of_words(block.places, unpacked(rows.column("words")[row]), known)
            placed = block.with_places(_numbered(at, numbers))
            yield from _positions(placed.held(beside_another(placed.places)), None)

    _register_table(spark, "dphh_places", of_blocks, _POSITIONS)


def register_places_of_grams(
    spark: SparkSession, level: int, pruning: Pruning, released: Any
) -> None:
    """`dphh_places(TABLE(positions))`: to the next; the keys of `released` are ascending."""
    known = released.column("key").to_numpy()
    sent = spark.sparkContext.broadcast((known, released.column("gram").to_numpy()))

    def of_blocks(rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        known, numbers = sent.value
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "grams"), _words(rows, row)
            keys = candidates(block.places, words, level, pruning)
            placed = block.with_places(_numbered(places_of_grams(keys, known), numbers))
            if pruning == "both":
                yield from _positions(placed.held(beside_another(placed.places)), None)
            else:  # words stay where they stand
                yield from _positions(placed, words)

    _register_table(spark, "dphh_places", of_blocks, _POSITIONS)


def register_tokens(spark: SparkSession, column: str, expression: str) -> None:
    """`dphh_tokens(content)`: what DuckDB makes of a row's content by this expression."""

    def tokens(content: pa.Array) -> pa.Array:
        return tokens_of(content, column, expression)

    _register(spark, "dphh_tokens", tokens, "array<string>")


def _register(spark: SparkSession, name: str, function: Draw, gives: str) -> None:
    spark.udf.register(name, _arrow_udf(function, gives).asNondeterministic())


def _register_table(spark: SparkSession, name: str, of_rows: OfRows, gives: str) -> None:
    """A function of a table, batch by batch: in Spark's SQL, name(table(rows))."""

    class Function:
        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            for made in of_rows(rows):
                yield pa.table(made)

    function: Any = functions_of_tables.arrow_udtf(Function, returnType=gives)
    spark.udtf.register(name, function)


def _register_sums(spark: SparkSession, name: str, of_rows: OfSums, gives: str) -> None:
    """The same, and what it makes of a partition, (key, weight), leaves as few rows as it can."""

    class Function:
        def __init__(self) -> None:
            self.sums = Sums()

        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            for made in of_rows(rows):
                yield from self.sums.with_more(made)

        def terminate(self) -> Iterator[pa.Table]:
            yield from self.sums.left()

    function: Any = functions_of_tables.arrow_udtf(Function, returnType=gives)
    spark.udtf.register(name, function)


def _words(rows: pa.RecordBatch, row: int) -> Integers:
    """The numbers of the words at the places: at first they are the grams themselves."""
    column = "words" if rows.column("words")[row].is_valid else "grams"
    return block_at(rows, row, column).places


def _numbered(at: Integers, numbers: Integers) -> Integers:
    return np.append(numbers, -1)[at].astype(np.int64)


def _positions(block: Block, words: Integers | None) -> Iterator[dict[str, Any]]:
    if (block.places >= 0).any():
        kept = None if words is None else words.astype("<i4").tobytes()
        yield {**row_of(block, "grams"), "words": pa.array([kept], pa.binary())}
