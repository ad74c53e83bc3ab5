"""Public data that a Spark function needs on executors."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dphh.udfs.spark.connection import is_connect


@dataclass(frozen=True)
class Sent:
    """A value that was sent to executors."""

    value: Any


class Broadcast:
    """As bytes: where Spark encrypts what it writes (`spark.io.encryption.enabled`), PySpark cannot
    broadcast arrays of more than 64 kB."""

    def __init__(self, spark: SparkSession, value: Any) -> None:
        self._written = spark.sparkContext.broadcast(pickle.dumps(value))
        self._read: list[Any] = []

    @property
    def value(self) -> Any:
        """The value, read at its first use in each task."""
        if not self._read:
            self._read.append(pickle.loads(self._written.value))
        return self._read[0]


def everywhere(spark: SparkSession, value: Any) -> Any:
    """Send a public value to all executors, where `.value` returns it. Spark broadcasts it once;
    with Spark Connect it is sent with the function."""
    return Sent(value) if is_connect(spark) else Broadcast(spark, value)
