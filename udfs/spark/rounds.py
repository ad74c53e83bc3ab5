"""Rounds that follow one another, for Spark: weights of words come to blocks, and are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dphh.udfs.kernel.blocks import block_at
from dphh.udfs.kernel.contributions import Followed, contributions
from dphh.udfs.spark.ladder import register_sums, register_table, vocabulary
from dphh.udfs.text.hashes import of_spellings

Row = dict[str, Any]


def register_words_of_blocks(spark: SparkSession) -> None:
    """`dphh_words_of_blocks(table(blocks))`: each word of a block, and its number there."""

    def of_blocks(rows: pa.RecordBatch) -> Iterator[Row]:
        for row in range(rows.num_rows):
            words = vocabulary(rows, row)
            block = rows.column("block")[row].as_py()
            numbers = np.arange(len(words), dtype=np.int32)
            yield {
                "block": np.full(len(words), block),
                "number": numbers,
                "word": words.cast("string"),
            }

    register_table(
        spark, "dphh_words_of_blocks", of_blocks, "block bigint, number int, word string"
    )


def register_given_to_words(spark: SparkSession, unit: int, max_items: int, salt: int) -> None:
    """`dphh_contributions(table(weighed_blocks))`: to (key, weight)."""

    def of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            known: Any = rows.column("weights")[row].values
            w = np.zeros(len(words), dtype=np.int64)
            w[known.field("number").to_numpy()] = known.field("w").to_numpy()
            rule = Followed(unit, max_items, salt, w, of_spellings(words).__getitem__)
            ids, weights = contributions(block.user_hashes, block.lengths, block.positions, rule)
            spelled = words.take(pa.array(ids))
            yield pa.RecordBatch.from_arrays([spelled, pa.array(weights)], ["key", "weight"])

    register_sums(spark, of_blocks, "key string, weight bigint")
