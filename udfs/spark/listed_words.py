"""Level 1 with a public list of words, for Spark. The list is sent to the executors whole; words
that it lacks are private, and are known only within their blocks and by keys that a query gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dphh.udfs.kernel.blocks import block_at, row_of
from dphh.udfs.kernel.listed_words import listed_places
from dphh.udfs.spark.ladder import POSITIONS
from dphh.udfs.spark.looked_up import brought, numbers_of_words, vocabulary
from dphh.udfs.spark.table_functions import Row, register_table
from dphh.udfs.text.hashes import of_spellings


def register_other_words_of_blocks(spark: SparkSession, listed: Any) -> None:
    """`dphh_other_words_of_blocks(table(numbered_blocks))`: each word of a block that the list
    lacks, and its number in the block."""
    numbers_of = numbers_of_words(spark, listed)

    def other_words_of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            words = vocabulary(rows, row).cast(pa.string())
            numbers = np.flatnonzero(numbers_of(rows, row, words) < 0).astype(np.int32)
            block = rows.column("block")[row].as_py()
            yield {
                "block": np.full(len(numbers), block),
                "number": numbers,
                "word": words.take(pa.array(numbers)),
            }

    register_table(
        spark,
        "dphh_other_words_of_blocks",
        other_words_of_blocks,
        "block bigint, number int, word string",
    )


def register_keys_of_words(spark: SparkSession, listed: Any, salt: int) -> None:
    """`dphh_keys_of_words(table(keyed_blocks), others, max_items)`: the words that users count for,
    by their keys, which are from `others` on of words that the list lacks.

    Whole users are bounded within their block, by keys that hold within the block; then a word that
    the list lacks takes the key that the query gave.
    """
    numbers_of = numbers_of_words(spark, listed)

    def keys_of_words(rows: pa.RecordBatch, others: int, max_items: int) -> Iterator[Row]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            numbers = np.append(numbers_of(rows, row, words), -1).astype(np.int32)
            lacking = np.flatnonzero(numbers[:-1] < 0).astype(np.int32)
            numbers[lacking] = others + lacking
            hashes = of_spellings(words)
            keys = listed_places(
                block.user_hashes,
                block.lengths,
                block.positions,
                numbers,
                others,
                max_items,
                salt,
                lambda keys, hashes=hashes: hashes[keys - others],  # type: ignore[misc]
            ).astype(np.int64)
            other = keys >= others
            # Of each word of the block the key that it was given; a listed word was given none.
            given = brought(rows, row, "other_keys", np.full(len(words), -1, dtype=np.int64))
            keys[other] = given[keys[other] - others]
            yield {**row_of(block.with_positions(keys), "keys"), "words": _NULL_BYTES}

    register_table(spark, "dphh_keys_of_words", keys_of_words, POSITIONS)


#: Words stay beside keys only where pruning on a single side needs them.
_NULL_BYTES = pa.array([None], pa.binary())
