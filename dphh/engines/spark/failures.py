"""How Spark's errors are classified and explained."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from dphh.engines.failures import Failures, query_of_step
from dphh.errors import EngineError

#: What a call may raise where Spark's Java process no longer answers.
FROM_JAVA = (Py4JError, ConnectionError)
_SIGNS_OF_NO_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "No space left on device")


def java_is_gone(problem: BaseException | None) -> bool:
    """Whether Java did not answer a call: where it fails, it answers with a Py4JJavaError."""
    return isinstance(problem, FROM_JAVA) and not isinstance(problem, Py4JJavaError)


def quiet_py4j() -> None:
    """From here on keep Py4J from logging a lost connection, with its traceback, besides raising
    it: also where Python's collector is what asks Java."""
    logging.getLogger().addFilter(_is_of_another)  # to which Py4J writes this one message


def _is_of_another(record: logging.LogRecord) -> bool:
    raised = record.exc_info[0] if record.exc_info else None
    return raised is None or not issubclass(raised, Py4JNetworkError)


class SparkFailures(Failures):
    """Of a classic Spark session, the loss of its Java process has a message of its own."""

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        with super().__call__(step):
            try:
                yield
            except FROM_JAVA as problem:
                if not java_is_gone(problem):
                    raise
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
    look=query_of_step("spark"),
)
