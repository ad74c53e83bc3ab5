"""Chooses the Spark session of a run: the corpus's, the process's, or a new local one."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession, is_remote

from dphh.corpus import Corpus
from dphh.engines.host import Limits
from dphh.errors import UsageError
from dphh.files.private_folder import PrivateFolder
from dphh.wording.warned import warn

#: Java's memory where no option sets it: Spark's default of 1 GB is soon full of a run's classes
#: and blocks, and Java then collects garbage over and over.
_JAVA_MEMORY = "2g"
#: Options that the user has set come after these and take precedence.
_JAVA_OPTIONS = " ".join((
    # A run is many short queries, of which Java would compile code for longer than it runs them: to
    # be compiled again with all optimisations, code has to run ten times as often as by default.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
    # Or Java would collect several times for the sake of Spark's classes, until it has them all.
    "-XX:MetaspaceSize=256m",
    "-XX:+IgnoreUnrecognizedVMOptions",
    # Spark logs before its log level can be set.
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
))  # fmt: skip
#: Java's default collector looks through its whole memory at each array of megabytes, as a block of
#: users is one. Half of the memory is for what is new, as most of it soon goes. Java refuses to
#: start with two collectors, so one that the user chose stays.
_COLLECTOR = "-XX:+UseParallelGC -XX:NewRatio=1"
_OTHER_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_OPTIONS_OF_OTHERS = (
    "SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
    "PYSPARK_SUBMIT_ARGS",
)  # fmt: skip
#: Settings of a session that dphh starts, so that it does not show or store how much data there is,
#: or leave rows that others can read.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    # Rows that it shuffles or spills, which a killed Java leaves on the disk.
    "spark.io.encryption.enabled": "true",
    "spark.shuffle.service.removeShuffle": "true",
    # A run's queries make some 250 classes, most of them at each level and in each run. Spark would
    # keep 100, and compile all others again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Memory for sums and sorts comes in pages of this size. Spark's own would be 16 MB and more,
    # which Java fills with zeros for each small task.
    "spark.buffer.pageSize": "1m",
}
_NO_EVENT_LOG = "spark.eventLog.enabled=false"
_MEMORY_SIZE = re.compile(r"(\d+)\s*([KMGT])i?B?", re.IGNORECASE)


def find_spark(corpus: Corpus, limits: Limits) -> tuple[SparkSession, bool]:
    """Find or start a session; also returns whether it was started here and must be stopped
    here."""
    # Spark's Python side logs every error a second time, with what it was about.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # PySpark warns about the version of pandas, which dphh does not use here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    _forget_ended_java()
    if isinstance(corpus.source, DataFrame):
        return _check_running_limits(corpus.source.sparkSession, limits), False
    if SparkContext._active_spark_context is not None or is_remote():
        return _check_running_limits(SparkSession.builder.getOrCreate(), limits), False
    return _start_local_spark(limits), True


def _forget_ended_java() -> None:
    """PySpark keeps a Java process that has ended, and would ask it for ever: let the next one
    start."""
    java = getattr(SparkContext._gateway, "proc", None)
    if java is not None and java.poll() is not None:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _check_running_limits(spark: SparkSession, limits: Limits) -> SparkSession:
    """Refuse limits of a running Spark, and a session without Java."""
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise UsageError(
            "engine: found a Spark Connect session, and a run needs a session with Java beside it, "
            "for its private folder; run on the cluster (spark-submit), or start one with "
            "SparkSession.builder.master(URL)"
        )
    if spark.conf.get("spark.eventLog.enabled", None) == "true":
        warn(
            "spark.eventLog.enabled is on: Spark writes the exact number of rows of every step to "
            f"its event log, and these are private. Start Spark with --conf {_NO_EVENT_LOG}, or "
            "let only those read that log who may read the corpus",
        )
    for option, found in (("threads", limits.threads), ("memory_limit", limits.memory)):
        if found is not None:
            raise UsageError(
                f"{option}: found {found!r}, but Spark is already running and reads its limits "
                f"only at its start; leave {option} out"
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
    # Workers import this process's dphh, whatever their working folder.
    paths = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    builder = builder.config("spark.executorEnv.PYTHONPATH", paths)
    builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", "1")
    builder = builder.config("spark.driver.defaultJavaOptions", _java_options())
    for setting, value in _SETTINGS.items():
        builder = builder.config(setting, value)
    if limits.memory is not None:
        if SparkContext._gateway is not None:
            raise UsageError(
                f"memory_limit: found {limits.memory!r}, but this process has already run Spark, "
                "whose memory cannot change; leave memory_limit out, or run in a new process"
            )
        builder = builder.config("spark.driver.memory", _memory_for_spark(limits.memory))
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as problem:
        raise UsageError(
            f"engine: Spark could not be started ({problem.getCondition()}); it needs Java 17 or "
            "later, found by JAVA_HOME or on the PATH"
        ) from None
    spark.sparkContext.setLogLevel("OFF")
    # PySpark's thread for accumulators prints a traceback where Java has ended.
    counting: Any = spark.sparkContext._accumulatorServer
    counting.handle_error = lambda *_: None
    return spark


def _java_options() -> str:
    given = [os.environ.get(name, "") for name in _OPTIONS_OF_OTHERS]
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf")
    if defaults.is_file():
        given.append(defaults.read_text(errors="replace"))
    if _OTHER_COLLECTOR.search("\n".join(given)):
        return _JAVA_OPTIONS
    return f"{_COLLECTOR} {_JAVA_OPTIONS}"


def _memory_for_spark(limit: str) -> str:
    """The memory limit in Spark's notation; a local Spark is a single process."""
    size = _MEMORY_SIZE.fullmatch(limit.strip())
    if size is None:
        raise UsageError(f"memory_limit: found {limit!r}; write it as 500MB or 4GB")
    return f"{size[1]}{size[2].lower()}"
