"""Spark as a host: a session of its own for one run, and the tables that the run keeps there.

All that is asked of Spark here, Spark Connect answers too: sessions, SQL, Arrow functions and local
checkpoints. A table is a local checkpoint: its rows stay on the executors that made them, and
Spark has forgotten how they were made. So a drawn value is drawn once:

- A checkpoint is eager: nothing can read a table before all its rows have been made.
- Until then a task may run again (its executor died, or shuffled rows that it reads were lost) and
  draw again. Nothing has read the first draw: nothing that draws is shuffled before it is kept, and
  a job that makes a table returns the number of its rows and nothing else. A later attempt that
  finds the block of an earlier one takes it as it is.
- Two attempts of one task at once could leave two blocks of one name with different draws. Spark
  runs two at once if it speculates, and where a stage that has lost shuffled rows starts again
  while its tasks run on. A session that may do either is refused (`cluster.py`).
- Rows that are lost later, with their executor, are not made again: the run fails, and under its
  run id it goes on with what its journal has.
"""

from __future__ import annotations

import logging
import pickle
import re
from contextlib import ExitStack, suppress
from decimal import Decimal
from functools import partial
from typing import Any

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import collect_list, struct

from dphh.engines.host import Host, Lookup
from dphh.engines.spark import blocks
from dphh.engines.spark.cluster import check_workers, find_or_start_spark, is_of_connect
from dphh.engines.spark.content import frame_of, open_corpus
from dphh.engines.spark.dialect import (
    refuse_large_object,
    register,
    register_arrow,
    spark_sql,
    statements,
)
from dphh.reader.corpus import Corpus
from dphh.reader.failures import EngineFailures
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
}
#: Where tables are: on disk, so that memory is for what is being made.
TABLES_ARE_KEPT = StorageLevel.DISK_ONLY


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


class SparkHost(Host):
    """A Spark session for one run, and the tables that it keeps."""

    name = "spark"
    version: str = pyspark.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        self.randomness, self.joiner = randomness, corpus.content.joiner
        self._functions = functions(randomness)
        #: The tables of the run. Spark keeps their rows as long as anything refers to them.
        self._tables: dict[str, DataFrame] = {}
        #: For each brought value, by its name: the table whose blocks have it.
        self._brought: dict[str, str] = {}
        self._is_open = False
        #: What is undone when the run ends, the last first. If Spark does not answer any more, a
        #: step has raised this error already.
        self._undone_at_close = ExitStack()
        self._undone_at_close.enter_context(suppress(*SPARK_ERRORS))
        quiet_py4j()
        frame = corpus.source
        own = frame.sparkSession if isinstance(frame, DataFrame) else None
        owner, is_started_here = find_or_start_spark(own, limits)
        if is_started_here:
            self._undone_at_close.callback(owner.stop)
        # The run's own session has its own views, functions and settings, on the same executors.
        self.spark = owner.newSession()
        self._undone_at_close.callback(self._end_session)
        try:
            for setting, value in _SESSION_SETTINGS.items():
                self.spark.conf.set(setting, value)
            check_workers(self.spark)
            for statement in query("text", "spark").strip().split(";\n"):
                self.spark.sql(statement)
            self._load, self._tokens_query = open_corpus(
                self.spark, corpus, self._undone_at_close.callback
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._undone_at_close.close()

    def _end_session(self) -> None:
        """Stop what the session runs, and leave nothing that refers to its tables."""
        self.spark.interruptAll()
        self.drop(*self._tables)
        if is_of_connect(self.spark):
            client: Any = self.spark.client
            client.release_session()
            client.close()

    def open(self) -> None:
        """Make the view rows_of_corpus (user_id, content, group_name)."""
        if not self._is_open:
            with hide_spark_errors("rows_of_corpus"):
                self._load()
            self._is_open = True

    def digest(self, key: bytes) -> str:
        self.open()
        with hide_spark_errors("digest"):
            rows = self.spark.table("rows_of_corpus")
            sums = rows.mapInArrow(sums_of_batches(key), "total string").collect()
        return digest_of_sum(sum(int(row.total, 16) for row in sums), key)

    def gather(self, table: str, reading: ReadWords) -> None:
        self.open()
        with hide_spark_errors("gather_texts"):
            rows = self.spark.table("rows_of_corpus").repartition("user_id")
            gathered = blocks.blocks_of(reading, self._tokens_query)
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
        objects: list[Any] = []
        arguments = {"is_test": self.randomness.is_test, **parameters}
        for name, value in parameters.items():
            if isinstance(value, Lookup) and value.value is None:
                arguments[name] = None
            elif isinstance(value, Lookup):
                refuse_large_object(name, len(pickle.dumps(value.value)))
                arguments[name] = len(objects)
                objects.append(value.value)
            elif isinstance(value, int) and value >= 1 << 63:
                arguments[name] = Decimal(value)
        for name in dict.fromkeys(functions_called_in(spark_sql(step))):
            if name in self._functions:
                register(self.spark, name, self._functions[name], objects)
        return arguments

    def lazy_frame(self, step: str, select: str, arguments: dict[str, Any]) -> DataFrame:
        """The rows of a select with `:name` parameters, not run yet. Values that were brought to a
        table are joined where the select names them."""
        for name, to in self._brought.items():
            if re.search(rf":{name}\b", select):
                select = re.sub(rf":{name}\b", name, select)
                select = re.sub(rf"\bFROM {to}\b", f"FROM {to}_with_{name}", select)
        named = {
            name: value for name, value in arguments.items() if re.search(rf":{name}\b", select)
        }
        return self.spark.sql(select, args=named)

    def write(self, table: str, rows: DataFrame) -> None:
        """Keep the rows as a table of the run. They are made now, and never again."""
        kept: Any = rows.localCheckpoint(True, TABLES_ARE_KEPT)
        if kept.sparkSession is not self.spark:  # PySpark 4.3 takes Connect's for the active one's
            session: Any = self.spark
            kept = session._create_remote_dataframe(kept._plan._relation_id)
        self._forget(table)
        self._tables[table] = kept
        kept.createOrReplaceTempView(table)

    def put(self, table: str, rows: Any) -> None:
        refuse_large_object(table, rows.nbytes)
        self._forget(table)
        frame_of(self.spark, rows).hint("broadcast").createOrReplaceTempView(table)

    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        """Keys of blocks and values are divided into parts by a hash of the key. Tasks look up the
        values of each part's keys, and a join brings them to the blocks as a column: so a process
        has in memory no more than a block or a part."""
        # 16 parts for each task: with fewer, some tasks would have many and others none.
        part_count = 16 * int(str(self.spark.conf.get("spark.sql.shuffle.partitions")))
        table = self._tables[to]
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
            rows = self._tables[table]
            self._forget(name)
            self._tables[name] = rows
            rows.createOrReplaceTempView(name)
            self.drop(table)

    def drop(self, *tables: str) -> None:
        for table in tables:
            self._forget(table)
            self._drop_view(table)

    def _forget(self, table: str) -> None:
        self._tables.pop(table, None)
        for name in [name for name, to in self._brought.items() if to == table]:
            del self._brought[name]
            self._drop_view(f"{table}_with_{name}")

    def _drop_view(self, name: str) -> None:
        # If Spark does not answer any more, a step has raised this error already.
        with suppress(*SPARK_ERRORS):
            self.spark.catalog.dropTempView(name)
