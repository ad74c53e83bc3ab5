"""How Spark's errors are classified and explained."""

from __future__ import annotations

import logging

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from dphh.reader.failures import EngineFailures

#: The errors that a call of Spark's Java process raises, if it fails or is not answered.
JAVA_CALL_ERRORS = (Py4JError, ConnectionError)
SPARK_ERRORS = (PySparkException, *JAVA_CALL_ERRORS)
_SIGNS_OF_NO_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "No space left on device")


def java_is_gone(problem: BaseException | None) -> bool:
    """Whether Java did not answer a call. An answer that the call failed is a Py4JJavaError."""
    return isinstance(problem, JAVA_CALL_ERRORS) and not isinstance(problem, Py4JJavaError)


def quiet_py4j() -> None:
    """From here on, keep Py4J from logging a lost connection with its traceback. A call that needs
    the connection raises the error too; others come from Python's garbage collector."""
    logging.getLogger().addFilter(_tells_no_lost_connection)  # Py4J logs it to the root logger


def _tells_no_lost_connection(record: logging.LogRecord) -> bool:
    raised = record.exc_info[0] if record.exc_info else None
    return raised is None or not issubclass(raised, Py4JNetworkError)


#: In the context hide_spark_errors(step), Spark's errors are replaced by messages without data.
hide_spark_errors = EngineFailures(
    "Spark",
    errors=SPARK_ERRORS,
    is_out_of_memory=lambda problem: (
        java_is_gone(problem) or any(sign in str(problem) for sign in _SIGNS_OF_NO_MEMORY)
    ),
    ran_out_of="memory or of disk, or its Java process ended,",
    more_memory="give it more of either (spark.driver.memory, spark.executor.memory; for a Spark "
    "that dphh starts, SPARK_DRIVER_MEMORY), or lower max_items",
)
