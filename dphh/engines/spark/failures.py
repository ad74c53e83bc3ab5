"""How Spark's errors are classified and explained."""

from __future__ import annotations

import logging
from functools import partial

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from dphh.engines.failures import EngineFailures, query_of_step

#: What a call may raise where Spark's Java process no longer answers.
FROM_JAVA = (Py4JError, ConnectionError)
_SIGNS_OF_NO_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "No space left on device")


def java_is_gone(problem: BaseException | None) -> bool:
    """Whether Java did not answer a call: where it fails, it answers with a Py4JJavaError."""
    return isinstance(problem, FROM_JAVA) and not isinstance(problem, Py4JJavaError)


def quiet_py4j() -> None:
    """From here on keep Py4J from logging a lost connection, with its traceback, besides raising
    it: also where Python's collector is what asks Java."""
    logging.getLogger().addFilter(_is_no_lost_connection)  # to which Py4J writes this one message


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    raised = record.exc_info[0] if record.exc_info else None
    return raised is None or not issubclass(raised, Py4JNetworkError)


hide_engine_errors = EngineFailures(
    "Spark",
    errors=(PySparkException, *FROM_JAVA),
    is_out_of_memory=lambda problem: (
        java_is_gone(problem) or any(sign in str(problem) for sign in _SIGNS_OF_NO_MEMORY)
    ),
    ran_out_of="memory or of disk, or its Java process ended,",
    more_memory="give it more of either (spark.driver.memory, spark.executor.memory; for a Spark "
    "that dphh starts, SPARK_DRIVER_MEMORY), or lower max_items",
    look=partial(query_of_step, "spark"),
)
