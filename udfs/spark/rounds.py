"""Dependent rounds for Spark: users' contributions with weights that a query brought to their
blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dphh.udfs.kernel.blocks import block_at
from dphh.udfs.kernel.contributions import Followed, contributions
from dphh.udfs.spark.looked_up import refuse_places_of_two_blocks, vocabulary
from dphh.udfs.spark.table_functions import register_sums_of_brought
from dphh.udfs.text.hashes import Integers, of_spellings


def register_given_to_words(spark: SparkSession, salt: int) -> None:
    """`dphh_given_to_words(table(blocks_and_weights), max_items, grid_bits)`: to (key, weight).
    What is brought to a block is the w of each of its words, by the word's place in the block's
    list."""

    def given(
        rows: pa.RecordBatch,
        row: int,
        places: Integers,
        weights: Integers,
        max_items: int,
        grid_bits: int,
    ) -> tuple[Any, Integers]:
        block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
        refuse_places_of_two_blocks(places)
        w = np.zeros(len(words), dtype=np.int64)
        w[places] = weights
        rule = Followed(2**grid_bits, max_items, salt, w, of_spellings(words).__getitem__)
        ids, added = contributions(block.user_hashes, block.lengths, block.positions, rule)
        return words.take(pa.array(ids)), added

    register_sums_of_brought(
        spark, "dphh_given_to_words", ("place", "w"), given, "key string, weight bigint"
    )
