"""The n-gram ladder for Spark: table functions over blocks of whole users.

They draw nothing: what they make of a row depends on that row, what was released and a level's
salt, so a task that runs again makes the same of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dphh.udfs.kernel.blocks import Block, block_at, row_of
from dphh.udfs.kernel.contributions import Weigh, contributions, equal_weights, summed
from dphh.udfs.kernel.positions import Released, candidates, candidates_that_matter
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram
from dphh.udfs.spark.looked_up import (
    grams_of_block,
    numbers_of_grams,
    numbers_of_words,
    vocabulary,
    words_of_block,
)
from dphh.udfs.spark.table_functions import (
    Row,
    register_sums,
    register_sums_of_brought,
    register_table,
)
from dphh.udfs.text.arrow_bytes import packed
from dphh.udfs.text.hashes import Integers, of_numbers, of_spellings

BLOCK_COLUMNS = "user_hashes binary, lengths binary, positions binary, words binary"
POSITIONS = "user_hashes binary, lengths binary, keys binary, words binary"


def register_contributions_of_words(spark: SparkSession, salt: int) -> None:
    """`dphh_contributions_of_words(table(blocks), max_items, grid_bits)`: to (key, weight)."""

    def weigh(words: pa.Array, max_items: int, grid_bits: int) -> Weigh:
        return equal_weights(max_items, grid_bits, salt, of_spellings(words).__getitem__)

    _register_sums_of_words(spark, "dphh_contributions_of_words", weigh)


def register_equally_given_to_words(spark: SparkSession, salt: int) -> None:
    """`dphh_equally_given_to_words(table(blocks), max_items, grid_bits)`: the same, with every word
    that any user holds, even if all its weights are 0."""

    def weigh(words: pa.Array, max_items: int, grid_bits: int) -> Weigh:
        hashed = of_spellings(words).__getitem__
        return equal_weights(max_items, grid_bits, salt, hashed, keeps_zeros=True)

    _register_sums_of_words(spark, "dphh_equally_given_to_words", weigh)


def _register_sums_of_words(spark: SparkSession, name: str, weigh: Callable[..., Weigh]) -> None:
    """`weigh` makes the rule from a block's words and the query's numbers."""

    def sums_of_blocks(rows: pa.RecordBatch, *numbers: int) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            rule = weigh(words, *numbers)
            ids, weights = _contributions_of_block(block, block.positions, rule)
            spelled = words.take(pa.array(ids))
            yield pa.RecordBatch.from_arrays([spelled, pa.array(weights)], ["key", "weight"])

    register_sums(spark, name, sums_of_blocks, "key string, weight bigint")


def register_contributions_of_grams(spark: SparkSession, salt: int) -> None:
    """`dphh_contributions_of_grams(table(positions), max_items, grid_bits)`: to (key, weight)."""

    def sums_of_blocks(
        rows: pa.RecordBatch, max_items: int, grid_bits: int
    ) -> Iterator[pa.RecordBatch]:
        rule = equal_weights(max_items, grid_bits, salt, of_numbers)
        for row in range(rows.num_rows):
            block = block_at(rows, row, "keys")
            added = _contributions_of_block(block, block.positions, rule)
            yield pa.RecordBatch.from_arrays([*map(pa.array, added)], ["key", "weight"])

    register_sums(spark, "dphh_contributions_of_grams", sums_of_blocks, "key bigint, weight bigint")


def register_plain_contributions(spark: SparkSession) -> None:
    """`dphh_plain_contributions(table(named_blocks), norm)`: in round 1 of the forecast ladder, to
    (block, key, weight). What the users of a block add to a key stands once, 0 or more."""

    def contributions_of_blocks(rows: pa.RecordBatch, norm: int) -> Iterator[Row]:
        rule = PlainWeights(norm)
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


def register_shared_contributions(spark: SparkSession) -> None:
    """`dphh_shared_contributions(table(blocks_and_grams), norm)`: in round 2, to (key, weight).
    What is brought to a block are the grams that its users hold, each with its g."""

    def shared(
        rows: pa.RecordBatch, row: int, grams: Integers, g: Integers, norm: int
    ) -> tuple[Integers, Integers]:
        block = block_at(rows, row, "keys")
        weigh = WeightsByGram(norm, Released(grams), g)
        return _contributions_of_block(block, block.positions, weigh)

    register_sums_of_brought(
        spark,
        "dphh_shared_contributions",
        ("gram", "g"),
        shared,
        "key bigint, weight bigint",
    )


def register_unreleased(spark: SparkSession, released: Any | None) -> None:
    """`dphh_unreleased(table(unplaced))`: the same blocks without the words that a round
    released."""
    numbers_of = numbers_of_words(spark, released)

    def texts_not_yet_placed(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            gone = numbers_of(rows, row, words) >= 0
            left = block.with_positions(
                np.where(np.append(gone, True)[block.positions], -1, block.positions)
            )
            yield {**row_of(left, "positions"), "words": [packed(pa.table({"word": words}))]}

    register_table(spark, "dphh_unreleased", texts_not_yet_placed, BLOCK_COLUMNS)


def register_pairs_of_words(spark: SparkSession, released: Any | None) -> None:
    """`dphh_pairs_of_words(table(unplaced), single)`: to (user_hashes, lengths, keys, words), the
    pairs of released words that stand side by side. With pruning on a single side the words' own
    numbers stay beside them."""
    numbers_of = numbers_of_words(spark, released)

    def pairs_of_blocks(rows: pa.RecordBatch, single: bool) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "positions")
            numbers = numbers_of(rows, row, vocabulary(rows, row))
            grams = np.append(numbers, -1)[block.positions]
            yield from _positions_of_block(block, grams, grams if single else None, 1)

    register_table(spark, "dphh_pairs_of_words", pairs_of_blocks, POSITIONS)


def register_pairs_of_grams(spark: SparkSession, released: Integers | None) -> None:
    """`dphh_pairs_of_grams(table(unplaced), ahead)`: to the next: the pairs of a released gram and
    the one at the next position, or with words the one `ahead` positions later."""
    numbers_of = numbers_of_grams(spark, released)

    def pairs_of_blocks(rows: pa.RecordBatch, ahead: int) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block = block_at(rows, row, "keys")
            words: Any = rows.column("words")[row]
            ends = np.frombuffer(words.as_buffer(), "<i4") if words.is_valid else None
            grams = numbers_of(rows, row, block.positions)
            yield from _positions_of_block(block, grams, ends, ahead)

    register_table(spark, "dphh_pairs_of_grams", pairs_of_blocks, POSITIONS)


def register_words_of_blocks(spark: SparkSession) -> None:
    """`dphh_words_of_blocks(table(named))`: the distinct words of each block, each with its place
    there."""
    _register_keys_of_blocks(spark, "dphh_words_of_blocks", words_of_block, "string")


def register_grams_of_blocks(spark: SparkSession) -> None:
    """`dphh_grams_of_blocks(table(named))`: the same of grams."""
    _register_keys_of_blocks(spark, "dphh_grams_of_blocks", grams_of_block, "bigint")


def _register_keys_of_blocks(
    spark: SparkSession, name: str, keys_of: Callable[..., tuple[Integers, Any]], kind: str
) -> None:
    def keys_of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block, (places, keys) = rows.column("block")[row].as_py(), keys_of(rows, row)
            yield {"block": np.full(len(keys), block), "place": places, "key": keys}

    register_table(spark, name, keys_of_blocks, f"block bigint, place bigint, key {kind}")


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
