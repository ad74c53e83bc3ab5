"""What a function of Spark's holds on executors, beside its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dphh.lineage.spark_connect import is_connect


@dataclass(frozen=True)
class Sent:
    value: Any


def everywhere(spark: SparkSession, value: Any) -> Any:
    """Something public, whole, for all executors: `.value` is it there. Spark broadcasts it once;
    by Spark Connect it goes with the function that holds it."""
    return Sent(value) if is_connect(spark) else spark.sparkContext.broadcast(value)
