"""Spark as a host: a session of its own for one run, and a private folder with its tables.

A table is written whole before anything reads it. A task that runs twice (its executor died, or
Spark tried it twice to be quicker) may draw its noise twice, but only one attempt of each task is
let to commit, what others wrote is never moved into the table, and the table is read only when
the whole job has been committed. So every reader sees the same draw each time.
"""

from __future__ import annotations

import re
import uuid
from contextlib import ExitStack
from decimal import Decimal
from functools import partial
from typing import Any

import pyspark
from pyspark.sql import DataFrame
from pyspark.sql.functions import collect_list, struct

from dphh.engines.host import Host, Lookup
from dphh.engines.spark import blocks
from dphh.engines.spark.cluster import check_workers, find_or_start_spark
from dphh.engines.spark.content import open_corpus
from dphh.engines.spark.dialect import spark_sql, statements
from dphh.engines.spark.failures import (
    JAVA_CALL_ERRORS,
    hide_spark_errors,
    java_is_gone,
    quiet_py4j,
)
from dphh.engines.spark.folder import RunFolder
from dphh.engines.spark.functions import Broadcast, refuse_large_broadcast, register, register_arrow
from dphh.errors import warn
from dphh.reader.corpus import Corpus
from dphh.reader.identity import digest_of_sum, sums_of_batches
from dphh.reader.rows import Limits
from dphh.sql import query
from dphh.udfs.functions import functions, functions_called_in
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.noise.randomness import Randomness

#: Settings on which results and privacy depend; they replace the cluster's defaults.
_SESSION_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.adaptive.enabled": "true",
    # To broadcast a table, Spark collects it on the driver. The run's own tables are private, so
    # that none may be broadcast but the public ones, for which `put` asks.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    # Spark would give the driver checksums of all shuffled rows, private ones too, to see whether a
    # task that runs again makes other rows. Here nothing that draws is ever shuffled.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.partitionOverwriteMode": "static",
}


class SparkHost(Host):
    """A Spark session for one run, and the tables that it wrote."""

    name = "spark"
    version: str = pyspark.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        self.randomness, self.joiner = randomness, corpus.content.joiner
        self._functions = functions(randomness)
        #: For each table, by its name: its rows as they were written, and the name of its files.
        self._tables: dict[str, tuple[DataFrame, str]] = {}
        #: For each brought value, by its name: the table whose blocks have it.
        self._brought: dict[str, str] = {}
        self._count = 0
        self._is_open = False
        self._folder: RunFolder | None = None
        #: What is undone when the run ends, the last first, whether or not Spark still answers.
        self._undone_at_close = ExitStack()
        self._undone_at_close.push(self._ignore_ended_java)
        quiet_py4j()
        frame = corpus.source
        own = frame.sparkSession if isinstance(frame, DataFrame) else None
        self.owner, is_started_here = find_or_start_spark(own, limits)
        if is_started_here:
            self._undone_at_close.callback(self.owner.stop)
        # The run's own session has its own views, functions and settings, on the same executors.
        self.spark = self.owner.newSession()
        self._context: Any = self.owner.sparkContext
        described: Any = self._context.getLocalProperty("spark.job.description")
        self._undone_at_close.callback(
            self._context.setLocalProperty, "spark.job.description", described
        )
        self._tag = f"dphh-{uuid.uuid4().hex}"
        self._context.addJobTag(self._tag)
        self._undone_at_close.callback(self._context.removeJobTag, self._tag)
        try:
            self._configure_session()
            check_workers(self.spark)
            self._folder = RunFolder(self.spark)
            self._undone_at_close.callback(self._folder.close)  # it holds private rows
            for statement in query("text", "spark").strip().split(";\n"):
                self.spark.sql(statement)
            self._load, self._tokens = open_corpus(
                self.spark, corpus, self._undone_at_close.callback
            )
        except BaseException:
            self.close()
            raise

    def _configure_session(self) -> None:
        for setting, value in _SESSION_SETTINGS.items():
            self.spark.conf.set(setting, value)
        partitions = "spark.sql.shuffle.partitions"
        local = str(self._context.master).startswith("local")
        if local and self._context.getConf().get(partitions) is None:
            self.spark.conf.set(partitions, str(self._context.defaultParallelism))

    def close(self) -> None:
        with self._undone_at_close:
            self._context.cancelJobsWithTag(self._tag)

    def _ignore_ended_java(self, _: Any, problem: BaseException | None, __: Any) -> bool:
        """Ignore that closing failed because Java has ended: a step has raised this error already.
        Warn of a folder that only Java could have removed."""
        if not java_is_gone(problem):
            return False
        if self._folder is not None and self._folder.local is None:
            warn(
                "Spark's Java process ended, and left private rows in "
                f"{self._folder.path}: remove this folder"
            )
        return True

    def open(self) -> None:
        """Make the views rows_of_corpus (user_id, content, group_name) and tokens_of_rows."""
        if not self._is_open:
            with hide_spark_errors("rows_of_corpus"):
                self._load()
            self._is_open = True

    def digest(self, key: bytes) -> str:
        self.open()
        with hide_spark_errors("digest"):
            self._describe_job("digest")
            rows = self.spark.table("rows_of_corpus")
            sums = rows.mapInArrow(sums_of_batches(key), "total string").collect()
        return digest_of_sum(sum(int(row.total, 16) for row in sums), key)

    def gather(self, table: str, reading: ReadWords) -> None:
        self.open()
        with hide_spark_errors("gather_texts"):
            self._describe_job("gather_texts")
            rows = self.spark.table("rows_of_corpus").repartition("user_id")
            gathered = blocks.blocks_of(reading, *self._tokens)
            made = rows.mapInArrow(gathered, blocks.BLOCKS_SCHEMA)
            self.write(table, made.selectExpr("monotonically_increasing_id() AS block", "*"))

    def run(self, step: str, **parameters: Any) -> None:
        with hide_spark_errors(step):
            arguments = self._register_functions(step, parameters)
            for kind, made, select in statements(step):
                rows = self.lazy_frame(step, select, arguments)
                if kind == "VIEW":
                    rows.createOrReplaceTempView(made)
                else:
                    self.write(made, rows)

    def take(self, step: str, **parameters: Any) -> Any:
        with hide_spark_errors(step):
            arguments = self._register_functions(step, parameters)
            return self.lazy_frame(step, spark_sql(step), arguments).toArrow()

    def _register_functions(self, step: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Register the functions that a step calls, with the objects among its parameters. Returns
        the parameters as Spark takes them: in place of an object its index, and in place of an
        integer from 2^63 on, which Spark's integers cannot be, a decimal."""
        objects: list[Broadcast] = []
        arguments = {"is_test": self.randomness.is_test, **parameters}
        for name, value in parameters.items():
            if isinstance(value, Lookup) and value.value is None:
                arguments[name] = None
            elif isinstance(value, Lookup):
                arguments[name] = len(objects)
                objects.append(Broadcast(self.spark, name, value.value))
                self._undone_at_close.callback(objects[-1].destroy)
            elif isinstance(value, int) and value >= 1 << 63:
                arguments[name] = Decimal(value)
        for name in dict.fromkeys(functions_called_in(spark_sql(step))):
            if name in self._functions:
                register(self.spark, name, self._functions[name], objects)
        return arguments

    def lazy_frame(self, step: str, select: str, arguments: dict[str, Any]) -> DataFrame:
        """The rows of a select with `:name` parameters, not run yet. Values that were brought to a
        table are joined where the select names them."""
        self._describe_job(step)
        for name, to in self._brought.items():
            if re.search(rf":{name}\b", select):
                select = re.sub(rf":{name}\b", name, select)
                select = re.sub(rf"\bFROM {to}\b", f"FROM {to}_with_{name}", select)
        named = {
            name: value for name, value in arguments.items() if re.search(rf":{name}\b", select)
        }
        return self.spark.sql(select, args=named)

    def _describe_job(self, step: str) -> None:
        # By default Spark would describe the job by this program's path and line.
        self._context.setJobDescription(f"dphh: {step}")

    def write(self, table: str, rows: DataFrame) -> None:
        """Write a table of the run, whole, and only then let it be read."""
        self._count += 1
        name = f"t{self._count:04}_{table}"
        assert self._folder is not None
        written = self._folder.write(name, rows)
        self._forget_and_delete(table)
        self._tables[table] = written, name
        written.createOrReplaceTempView(table)

    def put(self, table: str, rows: Any) -> None:
        refuse_large_broadcast(table, rows.nbytes)
        self.drop(table)
        self.spark.createDataFrame(rows).hint("broadcast").createOrReplaceTempView(table)

    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        """Keys of blocks and values are divided into parts by a hash of the key. Tasks look up the
        values of each part's keys, and a join brings them to the blocks as a column: so a process
        has in memory no more than a block or a part."""
        # 16 parts for each task: with fewer, some tasks would have many and others none.
        part_count = 16 * int(str(self.spark.conf.get("spark.sql.shuffle.partitions")))
        table, _ = self._tables[to]
        held, kind = ("words", "string") if "words" in table.columns else ("keys", "bigint")
        with hide_spark_errors(step):
            arguments = self._register_functions(step, parameters)
            values = self.lazy_frame(step, spark_sql(step), arguments)
            register_arrow(self.spark, "dphh_part", blocks.part_of_key(part_count), "int")
            of_values = values.selectExpr("dphh_part(key) AS part", "key", "value").groupBy("part")
            of_blocks = table.select("block", held).mapInArrow(
                partial(blocks.keys_of_blocks, part_count=part_count),
                f"part int, block bigint, places array<bigint>, keys array<{kind}>",
            )
            of_parts = of_blocks.groupBy("part").cogroup(of_values)
            found = of_parts.applyInArrow(blocks.values_of_keys, blocks.VALUES_SCHEMA)
            lists = collect_list(struct("places", "values")).alias(name)
            brought = found.groupBy("block").agg(lists)
            whole = table.join(brought, "block", "left")
            whole.createOrReplaceTempView(f"{to}_with_{name}")
            self._brought[name] = to

    def rename_replacing(self, table: str, name: str) -> None:
        with hide_spark_errors(table):
            self._forget_and_delete(name)
            written, _ = self._tables[name] = self._tables.pop(table)
            written.createOrReplaceTempView(name)
            self.spark.catalog.dropTempView(table)

    def drop(self, *tables: str) -> None:
        for table in tables:
            try:
                self.spark.catalog.dropTempView(table)
                self._forget_and_delete(table)
            except JAVA_CALL_ERRORS as problem:
                # If Java has ended, it has no views left, and a step has raised this error already.
                if not java_is_gone(problem):
                    raise

    def _forget_and_delete(self, table: str) -> None:
        self._brought = {name: to for name, to in self._brought.items() if to != table}
        if table in self._tables and self._folder is not None:
            _, name = self._tables.pop(table)
            self._folder.drop(name)
