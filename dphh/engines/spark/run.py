"""A Spark session of its own for one run, and a private folder of Parquet for its tables.

A table is written whole before anything reads it. A task that runs twice (its executor died, or
Spark tried it twice to be quicker) may draw its noise twice, but only one attempt of each task is
let to commit, what others wrote is never moved into the table, and the table is read only when
the whole job has been committed. So whoever reads, and however often, sees one draw.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pyspark
from pyspark.sql import DataFrame

from dphh.corpus import Corpus
from dphh.engines.spark.access import access_to
from dphh.engines.spark.cluster import find_spark
from dphh.engines.spark.content import open_corpus
from dphh.engines.spark.failures import (
    FROM_JAVA,
    engine_errors,
    java_is_gone,
    without_py4j_tracebacks,
)
from dphh.engines.spark.folder import FolderOfSpark
from dphh.engines.spark.rows import frame_of
from dphh.engines.spark.workers import check_workers
from dphh.errors import CorpusError, UsageError
from dphh.rows.user import ROWS_WITHOUT_USER
from dphh.session.protocol import Limits
from dphh.sql import query_for
from dphh.udfs.draws.randomness import Randomness
from dphh.wording.warned import warn

#: What the levels rely on, whatever a cluster's defaults are.
_SESSION_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.adaptive.enabled": "true",
    # To broadcast a table, Spark collects it on the driver. The run's own are private; what is
    # public says so itself (`show`).
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    # Spark would hash every shuffled row, private ones too, and give the sums to the driver, to see
    # whether a task that runs again makes other rows. Here nothing that draws is ever shuffled.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.partitionOverwriteMode": "static",
}
#: What a file of `sql/` makes, before the query that makes it.
_CREATE_TABLE_OR_VIEW = re.compile(r"^CREATE (?:TEMP )?(TABLE|VIEW) (\w+) AS$", re.MULTILINE)
#: Of Spark's own configuration: public tables of so many bytes, released keys among them, are sent
#: to every executor whole. Larger ones are joined by a shuffle.
SENT_WHOLE = "spark.dphh.sentWhole"
#: DuckDB writes a parameter $name, Spark :name.
_PARAMETER = re.compile(r"\$(\w+)")


class SparkRun:
    """A Spark session for one run, and the tables that it wrote."""

    name = "spark"
    version: str = pyspark.__version__
    #: In bytes: see SENT_WHOLE.
    sent_whole = 64 * 2**20

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        self.randomness = randomness
        #: The content column, and the expression that makes tokens of it (`content.py`).
        self.tokens = ("", "")
        self._written: dict[str, str] = {}
        self._count = 0
        self.owner, self._started = find_spark(corpus, limits)
        self._folder: FolderOfSpark | None = None
        self._shut: list[Any] = []
        # Views, functions and settings of its own, on the same executors.
        self._access = access_to(self.owner)
        self.spark = self._access.spark
        try:
            with warnings.catch_warnings(action="ignore"):  # Spark Connect tells of old settings
                for setting, value in _SESSION_SETTINGS.items():
                    self.spark.conf.set(setting, value)
            check_workers(self.spark)
            self._folder = self._access.folder()
            if (limit := self.owner.conf.get(SENT_WHOLE, None)) is not None:
                self.sent_whole = _spark_size(limit)
            for statement in query_for("spark", "text").strip().split(";\n"):
                self.spark.sql(statement)
            self.load, self._has_rows_without_user = open_corpus(self, corpus)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if (problem := self._access.why_lost()) is not None:
            place = "" if self._folder is None else f"; it left private rows in {self._folder.path}"
            warn(f"Spark Connect's server is gone ({problem}){place}")
            return
        # The folder holds private rows: it goes whether or not Spark still answers.
        with without_py4j_tracebacks(), ExitStack() as at_last:
            at_last.push(self._bear_that_java_is_gone)
            if self._started:
                at_last.callback(self.owner.stop)
            at_last.callback(self._access.leave)
            for undo in self._shut:
                at_last.callback(undo)
            if self._folder is not None:
                at_last.callback(self._folder.close)
            at_last.callback(self._access.end_jobs)

    def _bear_that_java_is_gone(self, _: Any, problem: BaseException | None, __: Any) -> bool:
        """Whether closing failed because Java no longer answers, of which whatever failed before
        tells; then what only Java could remove is named."""
        if not java_is_gone(problem):
            return False
        if self._folder is not None and not self._folder.is_gone():
            warn(
                "Spark's Java process ended, and left private rows in "
                f"{self._folder.path}: remove this folder"
            )
        return True

    def when_closed(self, undo: Any) -> None:
        self._shut.append(undo)

    def execute(self, name: str, **parameters: Any) -> None:
        """Run one file of `sql/` and write the tables that it makes, one after the other."""
        with engine_errors(name):
            for kind, made, select in _statements_of_file(name):
                rows = self.ask(name, select, parameters)
                if kind == "VIEW":
                    rows.createOrReplaceTempView(made)
                else:
                    self.write(made, rows)

    def look(self, name: str, **parameters: Any) -> None:
        """As `execute`, with a view instead of a table: for what is cheap, certain and drawn of
        nothing."""
        with engine_errors(name):
            for _, made, select in _statements_of_file(name):
                self.ask(name, select, parameters).createOrReplaceTempView(made)

    def fetch(self, query_name: str, **parameters: Any) -> Any:
        """Run the query in `sql/` with this name and return its result as an Arrow table."""
        with engine_errors(query_name):
            select = _mark_parameters(query_for("spark", query_name))
            return self.ask(query_name, select, parameters).toArrow()

    def ask(self, step: str, select: str, parameters: dict[str, Any]) -> DataFrame:
        self._access.describe(step)
        args = {k: _parameter_value(v) for k, v in parameters.items() if f":{k}" in select}
        return self.spark.sql(select, args=args)

    def has(self, table: str) -> bool:
        return table in self._written

    def write(self, table: str, rows: DataFrame) -> None:
        """Write a table of the run, whole, and only then let it be read."""
        self._count += 1
        name = f"t{self._count:04}_{table}"
        assert self._folder is not None
        self._folder.write(name, rows).createOrReplaceTempView(table)
        self._unregister(table)
        self._written[table] = name

    def show(self, table: str, rows: Any) -> None:
        """Let queries read an Arrow table of the driver's: what is public."""
        self.drop(table)
        shown = frame_of(self.spark, rows)
        if self.is_sent_whole(rows):
            shown = shown.hint("broadcast")
        shown.createOrReplaceTempView(table)

    def is_sent_whole(self, rows: Any) -> bool:
        """Whether an Arrow table is small enough to be sent whole to every executor."""
        return bool(rows.nbytes < self.sent_whole)

    def has_rows_without_user(self) -> bool:
        """Whether a row has NULL in all of the user's columns."""
        with engine_errors("look"):
            return self._has_rows_without_user()

    def refuse_null_users(self, table: str) -> None:
        # Such rows belong to no user, so both of two neighbouring corpora hold them or neither
        # does: refusing them says nothing of anyone.
        with engine_errors(table):
            found = self.ask(table, f"SELECT 1 FROM {table} WHERE user_id IS NULL LIMIT 1", {})
            if found.count():
                raise CorpusError(ROWS_WITHOUT_USER)

    def rename(self, table: str, name: str) -> None:
        with engine_errors(table):
            self.spark.table(table).createOrReplaceTempView(name)
            self.spark.catalog.dropTempView(table)
            self._unregister(name)
            self._written[name] = self._written.pop(table)

    def drop(self, table: str) -> None:
        try:
            self.spark.catalog.dropTempView(table)
            self._unregister(table)
        except FROM_JAVA as problem:
            # With Java its views have gone, and the error that a step raised for it is to be seen.
            if not java_is_gone(problem):
                raise

    def _unregister(self, table: str) -> None:
        name = self._written.pop(table, None)
        if name is not None and self._folder is not None:
            self._folder.drop(name)


def _statements_of_file(name: str) -> Iterator[tuple[str, str, str]]:
    """What a file of `sql/` makes, one after the other: a table or a view, its name, its query."""
    _, *parts = _CREATE_TABLE_OR_VIEW.split(query_for("spark", name))
    for kind, made, text in zip(*(parts[i::3] for i in range(3)), strict=True):
        yield kind, made, _mark_parameters(text.partition(";\n")[0])


def _mark_parameters(text: str) -> str:
    return _PARAMETER.sub(r":\1", text).rstrip().removesuffix(";")


def _spark_size(limit: str) -> int:
    """As Spark writes sizes: a number of bytes, or one with k, m or g."""
    size = re.fullmatch(r"(\d+)\s*([kmg]?)b?", limit.strip().lower())
    if size is None:
        raise UsageError(f"{SENT_WHOLE}: found {limit!r}; write bytes, or a size as 64m or 1g")
    return int(size[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[size[2]]


def _parameter_value(value: Any) -> Any:
    """Spark's integers end at 2^63 - 1."""
    return Decimal(value) if isinstance(value, int) and value >= 1 << 63 else value
