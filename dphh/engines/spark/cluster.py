"""Which Spark runs a corpus: the one that the corpus or the process has, or a new local one."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession, is_remote

from dphh.corpus import Corpus
from dphh.engines.session import Limits
from dphh.errors import UsageError
from dphh.files.private_folder import PrivateFolder
from dphh.wording.warned import warn

#: What a session of dphh's own is told, lest it show or store how much of the data there is, or
#: leave rows that can be read.
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    # Rows that it shuffles or spills, which a killed Java leaves on the disk.
    "spark.io.encryption.enabled": "true",
    "spark.shuffle.service.removeShuffle": "true",
}
_NO_EVENT_LOG = "spark.eventLog.enabled=false"
#: What Java is told when Python starts it; the launcher reads it.
_JAVA = "SPARK_SUBMIT_OPTS"
#: A run is many short queries, of which Java would compile code for longer than it runs them: to be
#: compiled again with all optimisations, code has to run ten times as often as by Java's default.
_LESS_COMPILED = " ".join((
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
))  # fmt: skip
_SIZE = re.compile(r"(\d+)\s*([KMGT])i?B?", re.IGNORECASE)


def find_spark(corpus: Corpus, limits: Limits) -> tuple[SparkSession, bool]:
    """A session, and whether it was started here and must be stopped here."""
    # Spark's Python side logs every error a second time, with what it was about.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if isinstance(corpus.source, DataFrame):
        return _within(corpus.source.sparkSession, limits), False
    if SparkContext._active_spark_context is not None or is_remote():
        return _within(SparkSession.builder.getOrCreate(), limits), False
    return _start(limits), True


def _within(spark: SparkSession, limits: Limits) -> SparkSession:
    """Spark takes its limits when it starts: others can only be refused."""
    if spark.conf.get("spark.eventLog.enabled", None) == "true":
        warn(
            "spark.eventLog.enabled is on: Spark writes the exact number of rows of every step to "
            f"its event log, and these are private. Start Spark with --conf {_NO_EVENT_LOG}, or "
            "let only those read that log who may read the corpus",
        )
    master = spark.conf.get("spark.master", None) or "Spark Connect"
    if limits.threads is not None and not re.match(rf"local\[{limits.threads}[\],]", master):
        raise UsageError(
            f"threads: found {limits.threads}, but Spark is already running, on {master}, and "
            "reads its limits only at its start; leave threads out"
        )
    if limits.memory is not None:
        raise UsageError(
            f"memory_limit: found {limits.memory!r}, but Spark is already running and reads its "
            "limits only at its start; leave memory_limit out, and set spark.executor.memory there"
        )
    return spark


def _start(limits: Limits) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # What Spark itself writes: rows that it shuffles, which Java would leave in /tmp where it is
    # killed; and tables of its own, none of a run's, but not in the folder it is started in.
    own = PrivateFolder()
    atexit.register(own.close)
    builder = SparkSession.builder.appName("dphh").master(f"local[{limits.threads or '*'}]")
    builder = builder.config("spark.local.dir", f"{own.path}/local")
    builder = builder.config("spark.sql.warehouse.dir", f"{own.path}/tables")
    for setting, value in _QUIET.items():
        builder = builder.config(setting, value)
    if limits.memory is not None:
        if SparkContext._gateway is not None:
            raise UsageError(
                f"memory_limit: found {limits.memory!r}, but this process has already run Spark, "
                "whose memory cannot change; leave memory_limit out, or run in a new process"
            )
        builder = builder.config("spark.driver.memory", _memory(limits.memory))
    try:
        with _options_of_java(), _same_tree(), _no_java_left():
            spark = builder.getOrCreate()
    except PySparkRuntimeError as problem:
        raise UsageError(
            f"engine: Spark could not be started ({problem.getCondition()}); it needs Java 17 or "
            "later, found by JAVA_HOME or on the PATH"
        ) from None
    spark.sparkContext.setLogLevel("OFF")
    return spark


@contextmanager
def _options_of_java() -> Iterator[None]:
    """Spark logs from its first line on, before it can be told a level; whoever chose a log keeps
    it, and all other options: of two that contradict one another, Java takes the last."""
    before = os.environ.get(_JAVA)
    options = [_LESS_COMPILED, before or ""]
    if "log4j" not in (before or ""):
        quiet = Path(__file__).with_name("log4j2.properties").as_uri()
        options.append(f"-Dlog4j2.configurationFile={quiet}")
    os.environ[_JAVA] = " ".join(options)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_JAVA, None)
        else:
            os.environ[_JAVA] = before


@contextmanager
def _no_java_left() -> Iterator[None]:
    """Where a signal cuts the start short, PySpark removes the folder in which Java is to say that
    it is ready, and Java, which fails to, would wait for good."""
    started: list[Any] = []
    launcher: Any = java_gateway
    begin = launcher.Popen

    def remembered(*given: Any, **more: Any) -> Any:
        started.append(begin(*given, **more))
        return started[-1]

    launcher.Popen = remembered
    try:
        yield
    except BaseException:
        for java in started:
            java.kill()
        raise
    finally:
        launcher.Popen = begin


@contextmanager
def _same_tree() -> Iterator[None]:
    """Workers that Java starts import this process's dphh, whatever folder they are started in."""
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    wanted = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _memory(limit: str) -> str:
    """As Spark writes it: the memory of the one process that a local Spark is."""
    size = _SIZE.fullmatch(limit.strip())
    if size is None:
        raise UsageError(f"memory_limit: found {limit!r}; write it as 500MB or 4GB")
    return f"{size[1]}{size[2].lower()}"
