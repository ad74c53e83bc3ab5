"""The ladder of n-grams for Spark: functions of tables, which see blocks of whole users at a time.

They draw nothing: what they make of a row hangs on that row, what was released and a level's salt,
so a task that runs again makes the same of it. In Spark's SQL they are name(table(rows)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession, functions

from dphh.arrow_bytes import packed, unpacked
from dphh.levels import Pruning
from dphh.udfs.blocks import Block, block_at, block_of_tokens, row_of
from dphh.udfs.contributions import Sums, contributions
from dphh.udfs.places import beside_another, candidates, places_of_grams, places_of_words
from dphh.udfs.texts import tokens_of

Integers = NDArray[np.int64]
Row = dict[str, Any]
OfRows = Callable[[pa.RecordBatch], Iterator[Row]]
OfSums = Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]
_BLOCKS = "lots binary, lengths binary, places binary, words binary"
_POSITIONS = "lots binary, lengths binary, grams binary, words binary"


def register_blocks(spark: SparkSession, column: str, expression: str) -> None:
    """`dphh_blocks(table(users))`: from (lot, contents) to (lots, lengths, places, words)."""

    def of_users(users: pa.RecordBatch) -> Iterator[Row]:
        texts: Any = users.column("contents")
        tokens = tokens_of(texts.flatten(), column, expression)
        numbers = pc.list_value_length(texts).to_numpy()
        block, words = block_of_tokens(users.column("lot").to_numpy(), numbers, tokens)
        written = packed(pa.table({"word": words}))
        for piece in block.in_pieces():
            yield {**row_of(piece, "places"), "words": [written]}

    _register_table(spark, "dphh_blocks", of_users, _BLOCKS)


def register_sums_of_words(spark: SparkSession, weights: Integers, salt: int) -> None:
    """`dphh_contributions(table(blocks))`: to (key, weight)."""

    def of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "places")
            there = block.places >= 0
            owners, codes = block.owners[there], block.places[there]
            words = _vocabulary(rows, row)
            yield contributions(owners, codes, words, block.lots, weights, salt)

    _register_sums(spark, of_blocks, "key string, weight bigint")


def register_sums_of_grams(
    spark: SparkSession, level: int, pruning: Pruning, weights: Integers, salt: int
) -> None:
    """`dphh_contributions(table(positions))`: to (key, weight)."""

    def of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "grams")
            keys = candidates(block.places, _words(rows, row), level, pruning)
            there = keys >= 0
            found: Any = pa.array(keys[there]).dictionary_encode()
            codes = found.indices.to_numpy().astype(np.int64)
            kinds = found.dictionary
            yield contributions(block.owners[there], codes, kinds, block.lots, weights, salt)

    _register_sums(spark, of_blocks, "key bigint, weight bigint")


def register_places_of_words(spark: SparkSession, released: Any) -> None:
    """`dphh_places(table(blocks))`: to (lots, lengths, grams, words).

    `released` is an Arrow table (key, gram). It is sent to the executors whole: what is released
    is known to the driver whole as well.
    """
    known = released.column("key").combine_chunks()
    sent = spark.sparkContext.broadcast((known, released.column("gram").to_numpy()))

    def of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        known, numbers = sent.value
        for row in range(rows.num_rows):
            block = block_at(rows, row, "places")
            at = places_of_words(block.places, _vocabulary(rows, row), known)
            placed = block.with_places(_numbered(at, numbers))
            yield from _positions(placed.held(beside_another(placed.places)), None)

    _register_table(spark, "dphh_places", of_blocks, _POSITIONS)


def register_places_of_grams(
    spark: SparkSession, level: int, pruning: Pruning, released: Any
) -> None:
    """`dphh_places(table(positions))`: to the next; the keys of `released` are ascending."""
    known = released.column("key").to_numpy()
    sent = spark.sparkContext.broadcast((known, released.column("gram").to_numpy()))

    def of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
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


def _register_table(spark: SparkSession, name: str, of_rows: OfRows, gives: str) -> None:
    """What is made of the rows, one by one."""

    class Function:
        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            for made in of_rows(rows):
                yield pa.table(made)

    _register(spark, name, Function, gives)


def _register_sums(spark: SparkSession, of_rows: OfSums, gives: str) -> None:
    """`dphh_contributions`: what the rows of a partition add, in as few rows as it can."""

    class Function:
        def __init__(self) -> None:
            self.sums = Sums()

        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            for made in of_rows(rows):
                yield from self.sums.with_more(made)

        def terminate(self) -> Iterator[pa.Table]:
            yield from self.sums.left()

    _register(spark, "dphh_contributions", Function, gives)


def _register(spark: SparkSession, name: str, handler: type, gives: str) -> None:
    function: Any = functions.arrow_udtf(handler, returnType=gives)
    spark.udtf.register(name, function)


def _vocabulary(rows: pa.RecordBatch, row: int) -> pa.Array:
    """The words that the places of a block are numbers of."""
    column: Any = rows.column("words")
    words: pa.Array = unpacked(column[row].as_buffer()).column("word").combine_chunks()
    return words


def _words(rows: pa.RecordBatch, row: int) -> Integers:
    """The numbers of the words at the places: at first they are the grams themselves."""
    column = "words" if rows.column("words")[row].is_valid else "grams"
    return block_at(rows, row, column).places


def _numbered(at: Integers, numbers: Integers) -> Integers:
    return np.append(numbers, -1)[at].astype(np.int64)


def _positions(block: Block, words: Integers | None) -> Iterator[Row]:
    if (block.places >= 0).any():
        kept = None if words is None else words.astype("<i4").tobytes()
        yield {**row_of(block, "grams"), "words": pa.array([kept], pa.binary())}
