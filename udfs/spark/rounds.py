"""Dependent rounds for Spark: users' contributions with weights that a join added to their
blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dphh.udfs.kernel.blocks import block_at
from dphh.udfs.kernel.contributions import Followed, contributions
from dphh.udfs.spark.ladder import register_sums
from dphh.udfs.spark.looked_up import vocabulary
from dphh.udfs.text.hashes import of_spellings


def register_given_to_words(spark: SparkSession, unit: int, max_items: int, salt: int) -> None:
    """`dphh_contributions(table(weighed_blocks))`: to (key, weight)."""

    def sums_of_blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for row in range(rows.num_rows):
            block, words = block_at(rows, row, "positions"), vocabulary(rows, row)
            known: Any = rows.column("weights")[row].values
            w = np.zeros(len(words), dtype=np.int64)
            w[known.field("place").to_numpy()] = known.field("w").to_numpy()
            rule = Followed(unit, max_items, salt, w, of_spellings(words).__getitem__)
            ids, weights = contributions(block.user_hashes, block.lengths, block.positions, rule)
            spelled = words.take(pa.array(ids))
            yield pa.RecordBatch.from_arrays([spelled, pa.array(weights)], ["key", "weight"])

    register_sums(spark, sums_of_blocks, "key string, weight bigint")
