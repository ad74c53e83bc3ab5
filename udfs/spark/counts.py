"""Counts for Spark: what whole users of texts add to the sums of given items' keys.

It draws nothing: what it makes of a row depends on that row and on the list that was given, so a
task that runs again makes the same of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.given_grams import GivenGrams, counted
from dphh.udfs.spark.ladder import register_sums
from dphh.udfs.text.texts import tokens_of


def register_counted(
    spark: SparkSession,
    column: str,
    expression: str,
    given: GivenGrams,
    weighing: Weighing,
) -> None:
    """`dphh_contributions(table(users))`: from (contents, groups) to (key, weight)."""

    def of_users(users: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        texts: Any = users.column("contents")
        groups: Any = users.column("groups")
        tokens = tokens_of(texts.flatten(), column, expression)
        lengths, keys = given.keys(tokens, groups.flatten().to_numpy())
        ends = np.cumsum(pc.list_value_length(texts).to_numpy())
        of_texts = np.append(0, np.cumsum(lengths))
        added = counted(weighing, np.diff(of_texts[np.append(0, ends)]), keys)
        yield pa.RecordBatch.from_arrays([*map(pa.array, added)], ["key", "weight"])

    register_sums(spark, of_users, "key bigint, weight bigint")
