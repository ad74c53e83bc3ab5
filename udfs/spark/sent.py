"""What a function of Spark's holds on executors, beside its code."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dphh.lineage.spark_connect import is_connect


@dataclass(frozen=True)
class Sent:
    value: Any


class Broadcast:
    """As bytes: where Spark encrypts what it writes (`spark.io.encryption.enabled`), PySpark cannot
    broadcast arrays of more than 64 kB."""

    def __init__(self, spark: SparkSession, value: Any) -> None:
        self._written = spark.sparkContext.broadcast(pickle.dumps(value))
        self._read: list[Any] = []

    @property
    def value(self) -> Any:
        """Read where it is first asked for, in each task."""
        if not self._read:
            self._read.append(pickle.loads(self._written.value))
        return self._read[0]


def everywhere(spark: SparkSession, value: Any) -> Any:
    """Something public, whole, for all executors: `.value` is it there. Spark broadcasts it once;
    by Spark Connect it goes with the function that holds it."""
    return Sent(value) if is_connect(spark) else Broadcast(spark, value)
