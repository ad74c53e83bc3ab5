"""What is sent to the executors whole, once: released keys, and the rules of weights.

As bytes: where Spark encrypts what it writes (`spark.io.encryption.enabled`), PySpark cannot send
arrays of more than 64 kB.
"""

from __future__ import annotations

import pickle
from typing import Any

from pyspark.sql import SparkSession


class Sent:
    def __init__(self, spark: SparkSession, value: Any) -> None:
        self._written = spark.sparkContext.broadcast(pickle.dumps(value))
        self._read: list[Any] = []

    @property
    def value(self) -> Any:
        """Read where it is first asked for, in each task."""
        if not self._read:
            self._read.append(pickle.loads(self._written.value))
        return self._read[0]
