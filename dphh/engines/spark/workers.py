"""Whether Spark's Python workers can run what dphh sends them: asked once, before anything is paid.

A cluster's machines have a Python and packages of their own. Spark starts workers where it likes,
so that a few tasks can only find what is missing on all machines, or on many.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dphh.errors import UsageError
from dphh.udfs.spark.functions import register_arrow

#: What functions on executors import.
_NEEDED_MODULES = ("numpy", "pyarrow", "duckdb", "dphh.udfs.spark.functions")
_PROBE_TASKS = 8
_OTHER_PYTHON = re.compile(r"different version: (\S+?)\.? than that in driver:? (\d+\.\d+)")
_NOT_STARTED = re.compile(r'Cannot run program "([^"]+)"')
_NO_MODULE = re.compile(r"No module named '?([\w.]+)|\[PACKAGE_NOT_INSTALLED\] (\w+)")
_SAME_PYTHON_ADVICE = (
    "set spark.pyspark.python to one that all executors have, of this process's version"
)
_INSTALL_ADVICE = (
    "install the same dphh[spark] there as here, or send a packed environment; if it is there, "
    "they run another Python: set PYSPARK_PYTHON, or spark.pyspark.python, to one that has it "
    "(docs/engines.md)"
)
_checked_sessions: set[tuple[str | None, ...]] = set()


def check_workers(spark: SparkSession) -> None:
    """Raise a UsageError that says what workers lack."""
    asked = (spark.conf.get("spark.app.id", None), spark.conf.get("spark.pyspark.python", None))
    if asked in _checked_sessions:
        return
    tasks = 1 if str(spark.conf.get("spark.master", None)).startswith("local") else _PROBE_TASKS
    register_arrow(spark, "dphh_lacking", _make_probe(_NEEDED_MODULES, version("dphh")), "string")
    query = f"SELECT DISTINCT dphh_lacking(id) FROM range(0, {tasks}, 1, {tasks})"
    try:
        found = [lacking for (lacking,) in spark.sql(query).collect() if lacking]
    except (PySparkException, Py4JError) as problem:
        raise _error_from_workers(str(problem), problem) from None
    if found:
        raise UsageError(f"engine: Spark's Python workers lack {found[0]}; {_INSTALL_ADVICE}")
    _checked_sessions.add(asked)


def _make_probe(needed: tuple[str, ...], own_version: str) -> Any:
    """It is sent as code, for workers may have no dphh to find it in."""

    def lacking(ids: pa.Array) -> pa.Array:
        import importlib
        from importlib.metadata import version

        import pyarrow

        lacks = ""
        try:
            for name in needed:
                importlib.import_module(name)
            there = version("dphh")
            if there != own_version:
                lacks = f"dphh {own_version} (they have {there})"
        except ImportError as problem:
            lacks = f"the package {(problem.name or 'dphh').split('.')[0]}"
        return pyarrow.array([lacks] * len(ids))

    return lacking


def _error_from_workers(said: str, problem: BaseException) -> UsageError:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if other := _OTHER_PYTHON.search(said):
        return UsageError(
            f"engine: Spark's workers run Python {other[1]}, and dphh {here}; {_SAME_PYTHON_ADVICE}"
        )
    if absent := _NOT_STARTED.search(said):
        return UsageError(f"engine: Spark's workers cannot run {absent[1]}; {_SAME_PYTHON_ADVICE}")
    if module := _NO_MODULE.search(said):
        package = (module[1] or module[2]).split(".")[0]
        return UsageError(
            f"engine: Spark's Python workers lack the package {package}; {_INSTALL_ADVICE}"
        )
    return UsageError(
        f"engine: Spark cannot run a Python function ({type(problem).__name__}); it needs Python "
        f"{here} with dphh[spark] on its executors: {_SAME_PYTHON_ADVICE}"
    )
