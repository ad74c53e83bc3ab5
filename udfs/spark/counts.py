"""Counts for Spark: what whole users of texts add to the sums of given items' keys.

It draws nothing: what it makes of a row depends on that row and on the list that was given, so a
task that runs again makes the same of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.given_grams import GivenGrams, counted
from dphh.udfs.spark.table_functions import register_sums
from dphh.udfs.text.tokens import tokens_of


def register_counted(
    spark: SparkSession,
    column: str,
    expression: str,
    given: GivenGrams,
    keys: int,
) -> None:
    """`dphh_counted(table(users), max_items, grid_bits)`: from (contents, groups) to (key, weight).
    `keys` is how many there are: one for each given item in each group."""

    def of_users(users: pa.RecordBatch, max_items: int, grid_bits: int) -> Iterator[pa.RecordBatch]:
        weighing = _weighing(keys, max_items, grid_bits)
        texts: Any = users.column("contents")
        groups: Any = users.column("groups")
        tokens = tokens_of(texts.flatten(), column, expression)
        lengths, held = given.keys(tokens, groups.flatten().to_numpy())
        ends = np.cumsum(pc.list_value_length(texts).to_numpy())
        of_texts = np.append(0, np.cumsum(lengths))
        added = counted(weighing, np.diff(of_texts[np.append(0, ends)]), held)
        yield pa.RecordBatch.from_arrays([*map(pa.array, added)], ["key", "weight"])

    register_sums(spark, "dphh_counted", of_users, "key bigint, weight bigint")


@lru_cache(maxsize=8)
def _weighing(keys: int, max_items: int, grid_bits: int) -> Weighing:
    """One for all batches, so that its weights are computed once."""
    return Weighing(keys, max_items, grid_bits)
