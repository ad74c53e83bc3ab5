"""How Spark's errors are classified and explained."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from dphh.engines.failures import Failures

_SIGNS_OF_NO_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "No space left on device")

engine_errors = Failures(
    "Spark",
    errors=(PySparkException, Py4JError),
    is_out_of_memory=lambda problem: any(sign in str(problem) for sign in _SIGNS_OF_NO_MEMORY),
    ran_out_of="memory or of disk",
    more_memory="give its executors more of either (spark.executor.memory; for a Spark that dphh "
    "starts, the memory limit), or lower max_items",
    look="The step's query is sql/spark/{step}.sql or sql/{step}.sql",
)
