"""What becomes of Spark's own errors: they may quote data, so they are told in other words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from dphh.engines.sources import NOT_UTF8, ROWS_OF_NOBODY, TOO_LONG
from dphh.errors import (
    SHOW_ERRORS,
    CorpusError,
    DphhError,
    EngineError,
    EngineOutOfMemory,
)

_NO_MEMORY = ("OutOfMemoryError", "SparkOutOfMemoryError", "No space left on device")


@contextmanager
def engine_errors(step: str) -> Iterator[None]:
    """Spark's messages may quote data, so they stop here: only their kind passes."""
    try:
        yield
    except DphhError:
        raise
    except (PySparkException, Py4JError) as problem:
        if os.environ.get(SHOW_ERRORS) == "1":
            raise
        said = str(problem)
        if "dphh: too long" in said:
            raise CorpusError(TOO_LONG) from None
        if "dphh: not UTF-8" in said:
            raise CorpusError(NOT_UTF8) from None
        if "dphh: nobody" in said:
            raise CorpusError(ROWS_OF_NOBODY) from None
        if any(sign in said for sign in _NO_MEMORY):
            raise EngineOutOfMemory(
                f"Spark ran out of memory or of disk in the step {step!r}: give its executors "
                "more of either (spark.executor.memory; for a Spark that dphh starts, the memory "
                "limit), or lower max_items"
            ) from None
        raise EngineError(
            f"Spark failed in the step {step!r} with {type(problem).__name__}; its message is "
            "withheld because it may quote data. The step's query is sql/spark/"
            f"{step}.sql or sql/{step}.sql; on data that may be seen, {SHOW_ERRORS}=1 shows it"
        ) from None
