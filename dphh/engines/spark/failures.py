"""How Spark's errors are classified and explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from dphh.engines.failures import Failures
from dphh.errors import EngineError

#: What a call raises where Spark's Java process no longer answers.
JAVA_IS_GONE = (Py4JNetworkError, ConnectionError)
_SIGNS_OF_NO_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "No space left on device")


class SparkFailures(Failures):
    """Of a classic Spark session, the loss of its Java process has a message of its own."""

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        with super().__call__(step):
            try:
                yield
            except JAVA_IS_GONE:
                raise EngineError(
                    f"Spark's Java process ended in the step {step!r}; it was killed, or ran out "
                    "of memory: start it with more (spark.driver.memory; for a Spark that dphh "
                    "starts, the memory limit)"
                ) from None


engine_errors = SparkFailures(
    "Spark",
    errors=(PySparkException, Py4JError),
    is_out_of_memory=lambda problem: any(sign in str(problem) for sign in _SIGNS_OF_NO_MEMORY),
    ran_out_of="memory or of disk",
    more_memory="give its executors more of either (spark.executor.memory; for a Spark that dphh "
    "starts, the memory limit), or lower max_items",
    look="The step's query is sql/spark/{step}.sql or sql/{step}.sql",
)
