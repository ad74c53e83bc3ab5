"""Whether Spark's Python workers can run what dphh sends them: asked once, before anything is paid.

A cluster's machines have a Python and packages of their own. Spark starts workers where it likes,
so that a few tasks can only find what is missing on all machines, or on many.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dphh.errors import UsageError

_CAUSE = re.compile(
    r"""Cannot run program "[^"]+"|No module named '[\w.]+'|different version: [\d.]+\d than"""
)
_checked: set[str] = set()


def check_workers(spark: SparkSession) -> None:
    application = str(spark.sparkContext.applicationId)
    if application in _checked:
        return
    tasks = 1 if str(spark.sparkContext.master).startswith("local") else 8
    rows = spark.range(0, tasks, 1, tasks)
    try:
        asked = rows.mapInArrow(version_of_worker, "version string").distinct().collect()
        lacks = [f"dphh is {there} there" for (there,) in asked if there != version("dphh")]
    except (PySparkException, Py4JError) as problem:
        cause = _CAUSE.search(str(problem))
        lacks = [cause[0] if cause else type(problem).__name__]
    if lacks:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise UsageError(
            f"engine: Spark's Python workers cannot run dphh ({lacks[0]}); install dphh[spark] "
            f"{version('dphh')} where they run, or send a packed environment, and set "
            f"PYSPARK_PYTHON, or spark.pyspark.python, to a Python {here} that has it "
            "(docs/engines.md)"
        )
    _checked.add(application)


def version_of_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from dphh.udfs.functions import functions  # noqa: F401 - with all that they import
    from dphh.udfs.text.tokens import tokens_of  # noqa: F401

    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([version("dphh")])], ["version"])
