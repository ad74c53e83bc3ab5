"""The n-gram ladder for Spark: table functions over blocks of whole users.

They draw nothing: what they make of a row depends on that row, what was released and a level's
salt, so a task that runs again makes the same of it. In Spark's SQL they are name(table(rows)).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession, functions

from dphh.udfs.kernel.blocks import Block, block_at, row_of
from dphh.udfs.kernel.contributions import EqualWeights, Held, Sums, Weigh, contributions, summed
from dphh.udfs.kernel.positions import Released, candidates, candidates_that_matter
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram
from dphh.udfs.spark.looked_up import (
    grams_of_block,
    numbers_of_grams,
    numbers_of_words,
    vocabulary,
    words_of_block,
)
from dphh.udfs.spark.sent import everywhere
from dphh.udfs.text.arrow_bytes import packed
from dphh.udfs.text.hashes import Integers, of_spellings

Row = dict[str, Any]
OfRows = Callable[[pa.RecordBatch], Iterator[Row]]
OfSums = Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]
#: The keys and weights that the users of a row's block add, from two columns of brought values.
OfBrought = Callable[[pa.RecordBatch, int, Integers, Integers], tuple[Any, Integers]]
BLOCK_COLUMNS = "user_hashes binary, lengths binary, positions binary, words binary"
POSITIONS = "user_hashes binary, lengths binary, keys binary, words binary"


def register_sums_of_words(spark: SparkSession, rule: EqualWeights) -> None:
    """`dphh_contributions(table(blocks))`: to (key, weight)."""

    def sums_of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            by_spelling = replace(rule, hashed=of_spellings(words).__getitem__)
            ids, weights = _contributions_of_block(block, block.positions, by_spelling)
            spelled = words.take(pa.array(ids))
            yield pa.RecordBatch.from_arrays([spelled, pa.array(weights)], ["key", "weight"])

    register_sums(spark, sums_of_blocks, "key string, weight bigint")


def register_counts_of_words(spark: SparkSession) -> None:
    """The same with a weight of 1 for every word that a user holds: NOT private."""

    def each_once(held: Held) -> Integers:
        return np.ones(len(held.keys), dtype=np.int64)

    def sums_of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            ids, weights = _contributions_of_block(block, block.positions, each_once)
            spelled = words.take(pa.array(ids))
            yield pa.RecordBatch.from_arrays([spelled, pa.array(weights)], ["key", "weight"])

    register_sums(spark, sums_of_blocks, "key string, weight bigint")


def register_sums_of_grams(spark: SparkSession, rule: Weigh) -> None:
    """`dphh_contributions(table(positions))`: to (key, weight)."""
    sent = everywhere(spark, rule)

    def sums_of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "keys")
            added = _contributions_of_block(block, block.positions, sent.value)
            yield pa.RecordBatch.from_arrays([*map(pa.array, added)], ["key", "weight"])

    register_sums(spark, sums_of_blocks, "key bigint, weight bigint")


def register_plain_contributions(spark: SparkSession, unit: int) -> None:
    """`dphh_plain_contributions(table(named_blocks))`: in round 1 of the forecast ladder, to
    (block, key, weight). What the users of a block add to a key stands once, 0 or more."""
    rule = PlainWeights(unit)

    def contributions_of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block, named = block_at(rows, row, "keys"), rows.column("block")[row].as_py()
            keys, weights = _contributions_of_block(block, block.positions, rule)
            order = np.argsort(keys)
            keys, weights = summed(keys.take(order), weights.take(order), keeps_zeros=True)
            yield {"block": np.full(len(keys), named), "key": keys, "weight": weights}

    register_table(
        spark,
        "dphh_plain_contributions",
        contributions_of_blocks,
        "block bigint, key bigint, weight bigint",
    )


def register_shared_contributions(spark: SparkSession, unit: int) -> None:
    """`dphh_shared_contributions(table(blocks_and_grams))`: in round 2, to (key, weight). What is
    brought to a block are the grams that its users hold, each with its g."""

    def shared(
        rows: pa.RecordBatch, row: int, grams: Integers, g: Integers
    ) -> tuple[Integers, Integers]:
        block = block_at(rows, row, "keys")
        weigh = WeightsByGram(unit, Released(grams), g)
        return _contributions_of_block(block, block.positions, weigh)

    register_sums_of_brought(
        spark,
        "dphh_shared_contributions",
        ("gram", "g"),
        shared,
        "key bigint, weight bigint",
    )


def register_sums_of_brought(
    spark: SparkSession, name: str, brought: tuple[str, str], of_block: OfBrought, gives: str
) -> None:
    """Register a table function over blocks of whole users to each of which a query brought
    values: a row (block, *brought) for each, and after them the block's own row, in which `brought`
    are NULL. A block whose values did not come must fail in `of_block`."""

    class Function:
        def __init__(self) -> None:
            self.sums = Sums()
            self.block: int | None = None
            self.parts: list[tuple[Integers, Integers]] = []

        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            named = rows.column("block").to_numpy()
            whole = rows.column(brought[0]).is_null().to_numpy(False)
            change = (np.diff(named) != 0) | (np.diff(whole) != 0) | whole[1:]
            starts = np.r_[0, np.flatnonzero(change) + 1, len(named)].tolist()
            for start, stop in pairwise(starts):
                if named[start] != self.block:
                    self.block, self.parts = named[start], []
                if whole[start]:
                    yield from self.sums.with_more(self.added(rows, start))
                else:
                    keys, values = (rows.column(each)[start:stop].to_numpy() for each in brought)
                    self.parts.append((keys, values))

        def added(self, rows: pa.RecordBatch, row: int) -> pa.RecordBatch:
            none = np.empty(0, dtype=np.int64)
            keys, values = (
                np.concatenate([none, *(part[i] for part in self.parts)]) for i in range(2)
            )
            added = map(pa.array, of_block(rows, row, keys, values))
            return pa.RecordBatch.from_arrays([*added], ["key", "weight"])

        def terminate(self) -> Iterator[pa.Table]:
            yield from self.sums.last_sums()

    register_table_function(spark, name, Function, gives)


def register_remaining(spark: SparkSession, released: Any | None) -> None:
    """`dphh_remaining(table(unplaced))`: removes the words that a round released from every
    user."""
    numbers_of = numbers_of_words(spark, released)

    def texts_not_yet_placed(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            gone = numbers_of(rows, row, words) >= 0
            left = block.with_positions(
                np.where(np.append(gone, True)[block.positions], -1, block.positions)
            )
            yield {**row_of(left, "positions"), "words": [packed(pa.table({"word": words}))]}

    register_table(spark, "dphh_remaining", texts_not_yet_placed, BLOCK_COLUMNS)


def register_positions_of_words(spark: SparkSession, released: Any | None, single: bool) -> None:
    """`dphh_positions(table(unplaced))`: to (user_hashes, lengths, keys, words)."""
    numbers_of = numbers_of_words(spark, released)

    def positions_of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "positions")
            numbers = numbers_of(rows, row, vocabulary(rows, row))
            grams = np.append(numbers, -1)[block.positions]
            yield from _positions_of_block(block, grams, grams if single else None, 1)

    register_table(spark, "dphh_positions", positions_of_blocks, POSITIONS)


def register_positions_of_grams(spark: SparkSession, keys: Integers | None, ahead: int) -> None:
    """`dphh_positions(table(unplaced))`: to the next."""
    numbers_of = numbers_of_grams(spark, keys)

    def positions_of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "keys")
            words: Any = rows.column("words")[row]
            ends = np.frombuffer(words.as_buffer(), "<i4") if words.is_valid else None
            grams = numbers_of(rows, row, block.positions)
            yield from _positions_of_block(block, grams, ends, ahead)

    register_table(spark, "dphh_positions", positions_of_blocks, POSITIONS)


def register_keys_of_blocks(spark: SparkSession, words: bool) -> None:
    """`dphh_keys_of_blocks(table(named))`: the distinct keys of each block, each with its place
    there."""
    keys_of = words_of_block if words else grams_of_block

    def keys_of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block, (places, keys) = rows.column("block")[row].as_py(), keys_of(rows, row)
            yield {"block": np.full(len(keys), block), "place": places, "key": keys}

    kind = "string" if words else "bigint"
    register_table(
        spark, "dphh_keys_of_blocks", keys_of_blocks, f"block bigint, place bigint, key {kind}"
    )


def register_table(spark: SparkSession, name: str, of_rows: OfRows, gives: str) -> None:
    """Register a table function that maps batches of rows to rows."""

    class Function:
        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            for made in of_rows(rows):
                yield pa.table(made)

    register_table_function(spark, name, Function, gives)


def register_sums(spark: SparkSession, of_rows: OfSums, gives: str) -> None:
    """`dphh_contributions`: what the rows of a partition add, in as few rows as it can."""

    class Function:
        def __init__(self) -> None:
            self.sums = Sums()

        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            for made in of_rows(rows):
                yield from self.sums.with_more(made)

        def terminate(self) -> Iterator[pa.Table]:
            yield from self.sums.last_sums()

    register_table_function(spark, "dphh_contributions", Function, gives)


def register_table_function(spark: SparkSession, name: str, handler: type, gives: str) -> None:
    class Function(handler):  # type: ignore[misc]
        def __init__(self) -> None:
            spare_modules_of_worker()
            super().__init__()

    function: Any = functions.arrow_udtf(Function, returnType=gives)
    spark.udtf.register(name, function)


_spared: list[bool] = []


def spare_modules_of_worker() -> None:
    """Python's collector looks at what modules hold no more: PySpark calls it after each task, and
    with NumPy, Arrow, pandas and DuckDB that is 50 ms of processor."""
    if not _spared:
        _spared.append(True)
        gc.freeze()


def _contributions_of_block(
    block: Block, keys: Integers, weigh: Weigh
) -> tuple[Integers, Integers]:
    """The summed contributions of a block's users; few keys appear twice."""
    return contributions(block.user_hashes, block.lengths, keys, weigh)


def _positions_of_block(block: Block, grams: Any, words: Any | None, ahead: int) -> Iterator[Row]:
    """The pairs that begin at a block's positions; without `words`, only positions that still
    matter are kept."""
    if words is None:
        lengths, keys = candidates_that_matter(block.lengths, grams)
        # Who holds no valid gram adds to no sum, nor to list sizes: such users and blocks may go.
        some = lengths > 0
        placed = Block(block.user_hashes[some], lengths[some], keys)
    else:
        placed = block.with_positions(candidates(grams, words, ahead))
    if (placed.positions >= 0).any():
        kept = None if words is None else words.astype("<i4").tobytes()
        yield {**row_of(placed, "keys"), "words": pa.array([kept], pa.binary())}
