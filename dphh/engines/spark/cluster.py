"""Chooses the Spark session of a run: the corpus's, the process's, or a new local one; and asks
before anything is paid whether its Python workers can run what dphh sends them."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession, is_remote

from dphh.errors import UsageError, warn
from dphh.files.private_folder import PrivateFolder
from dphh.reader.rows import Limits

#: Java's memory where no option sets it: Spark's default of 1 GB is soon full of a run's classes
#: and blocks, and Java then collects garbage over and over.
_JAVA_MEMORY = "2g"
#: Java's options, before those that the caller has set, which take precedence.
_JAVA_OPTIONS = (
    # Java's default garbage collector searches its whole memory for each array of megabytes, such
    # as a block of users. Half of the memory is for new objects, most of which are soon garbage.
    "-XX:+UseParallelGC -XX:NewRatio=1",
    # A run is many short queries, and Java would compile their code for longer than it runs. So
    # code is compiled with all optimisations only after ten times as many calls as by default.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
    # With less room for Spark's classes, Java would collect garbage several times as it loads them.
    "-XX:MetaspaceSize=256m",
    "-XX:+IgnoreUnrecognizedVMOptions",
    # This file turns logging off from the start, as Spark logs before its log level can be set.
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
)
_WORKER_FAULT_PATTERN = re.compile(
    r"""Cannot run program "[^"]+"|No module named '[\w.]+'|different version: [\d.]+\d than"""
)
#: The ids of the Spark applications whose workers were asked, and have this version of dphh.
_applications_with_checked_workers: set[str] = set()
#: Settings of a session that dphh starts, so that it does not show or store how much data there is,
#: or leave rows that others can read.
_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    # Encrypts rows that Spark shuffles or spills, which a killed Java leaves on the disk.
    "spark.io.encryption.enabled": "true",
    "spark.shuffle.service.removeShuffle": "true",
    # A run's queries make some 250 classes, most of them at each level and in each run. Spark would
    # keep 100, and compile all others again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Memory for sums and sorts comes in pages of this size. Spark's own would be 16 MB and more,
    # which Java fills with zeros for each small task.
    "spark.buffer.pageSize": "1m",
}


def find_or_start_spark(own: SparkSession | None, limits: Limits) -> tuple[SparkSession, bool]:
    """A session, the corpus's `own` if it has one; and whether it was started here: then it is
    stopped when the run ends."""
    # PySpark logs every error a second time, with the query that it is about.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # PySpark warns about the version of pandas, which dphh does not use here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    _forget_ended_java()
    if limits.memory is not None:
        raise UsageError(
            f"memory_limit: found {limits.memory!r}, but Spark's memory is fixed when it starts: "
            "leave memory_limit out, and set SPARK_DRIVER_MEMORY or spark.driver.memory before"
        )
    if own is not None:
        return _checked_running_session(own, limits), False
    if SparkContext._active_spark_context is not None or is_remote():
        return _checked_running_session(SparkSession.builder.getOrCreate(), limits), False
    return _start_local_spark(limits), True


def _forget_ended_java() -> None:
    """Make PySpark forget a Java process that has ended, so that a new one starts. By itself
    PySpark would go on asking the ended one."""
    java = getattr(SparkContext._gateway, "proc", None)
    if java is not None and java.poll() is not None:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def is_of_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _checked_running_session(spark: SparkSession, limits: Limits) -> SparkSession:
    """The session of a running Spark, if it draws noise once and no limit of threads is asked for.
    Warns if it writes an event log."""
    if is_of_connect(spark) and "newSession" not in vars(type(spark)):
        raise UsageError(
            "engine: found a session of Spark Connect before 4.3, and a run needs a session of its "
            "own; install PySpark 4.3 or later"
        )
    if spark.conf.get("spark.speculation", "false") == "true":
        raise UsageError(
            "spark.speculation: it is on, so Spark may run a task twice at once, and noise could "
            "be drawn twice; start Spark with --conf spark.speculation=false"
        )
    if spark.conf.get("spark.eventLog.enabled", None) == "true":
        warn(
            "spark.eventLog.enabled is on: Spark writes the exact number of rows of every step to "
            "its event log, and these are private. Start Spark with --conf "
            "spark.eventLog.enabled=false, or let only those read that log who may read the corpus"
        )
    if limits.threads is not None:
        raise UsageError(
            f"threads: found {limits.threads}, but Spark is already running, with the threads that "
            "it was started with; leave threads out"
        )
    return spark


def _start_local_spark(limits: Limits) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_DRIVER_MEMORY", _JAVA_MEMORY)
    # Spark's own files: shuffled rows, which a killed Java would leave in /tmp, and Spark's
    # warehouse, which is unused but must not be in the working folder.
    own = PrivateFolder()
    atexit.register(own.close)
    builder = SparkSession.builder.appName("dphh").master(f"local[{limits.threads or '*'}]")
    builder = builder.config("spark.local.dir", f"{own.path}/local")
    builder = builder.config("spark.sql.warehouse.dir", f"{own.path}/tables")
    builder = builder.config("spark.sql.shuffle.partitions", limits.threads or os.cpu_count())
    # Workers import this process's dphh, whatever their working folder.
    paths = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    builder = builder.config("spark.executorEnv.PYTHONPATH", paths)
    builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", "1")
    builder = builder.config("spark.driver.defaultJavaOptions", " ".join(_JAVA_OPTIONS))
    for setting, value in _LOCAL_SETTINGS.items():
        builder = builder.config(setting, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as problem:
        raise UsageError(
            f"engine: Spark could not be started ({problem.getCondition()}); it needs Java 17 or "
            "later, found by JAVA_HOME or on the PATH, and no garbage collector (-XX:+Use...GC) in "
            "JAVA_TOOL_OPTIONS or in Spark's settings"
        ) from None
    spark.sparkContext.setLogLevel("OFF")
    # Without this, PySpark's thread for accumulators prints a traceback when Java ends.
    counting: Any = spark.sparkContext._accumulatorServer
    counting.handle_error = lambda *_: None
    return spark


def check_workers(spark: SparkSession) -> None:
    """Refuse a Spark whose Python workers cannot run dphh: a cluster's machines have a Python and
    packages of their own. Spark starts workers where it likes, so a few tasks find only what is
    missing on all machines, or on many."""
    application = str(spark.conf.get("spark.app.id"))
    if application in _applications_with_checked_workers:
        return
    tasks = 1 if str(spark.conf.get("spark.master")).startswith("local") else 8
    rows = spark.range(0, tasks, 1, tasks)
    try:
        asked = rows.mapInArrow(version_of_worker, "version string").distinct().collect()
        lacks = [f"dphh is {there} there" for (there,) in asked if there != version("dphh")]
    except (PySparkException, Py4JError) as problem:
        cause = _WORKER_FAULT_PATTERN.search(str(problem))
        lacks = [cause[0] if cause else type(problem).__name__]
    if lacks:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise UsageError(
            f"engine: Spark's Python workers cannot run dphh ({lacks[0]}); install dphh[spark] "
            f"{version('dphh')} where they run, or send a packed environment, and set "
            f"PYSPARK_PYTHON, or spark.pyspark.python, to a Python {here} that has it "
            "(docs/engines.md)"
        )
    _applications_with_checked_workers.add(application)


def version_of_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from dphh.reader.views import tokens_by_duckdb  # noqa: F401
    from dphh.udfs.functions import functions  # noqa: F401 - with all that they import

    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([version("dphh")])], ["version"])
