"""A step in Spark: its query, the text in `sql/` with what differs from DuckDB's SQL replaced, and
the functions of `udfs/` that it calls, registered as Arrow functions that run on the executors.

A file of `sql/spark/` is an exception, in Spark's own SQL, and its first line says why it is one.

Spark copies what a function holds, what it looks up too, to its executors when the function is
registered, so each step registers those that it calls. All that draw are marked non-deterministic:
Spark then neither calls them twice for one row nor moves them. What they draw is kept before
anything reads it (`SparkHost.write`), since a task that runs again draws again.

A row of whole users is a block, with its lists of numbers as bytes: as lists, each number would
pass through Java by itself. A function of users is called for one block at a time.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas import functions
from pyspark.sql.pandas.types import from_arrow_type

from dphh.errors import EngineOutOfResources
from dphh.sql import query, query_paths
from dphh.udfs.arrays import lists_of, one_array
from dphh.udfs.functions import INTS, LONGS, LOOKUP, ROW_WORDS, ArgumentKind, Constant, Function
from dphh.udfs.kernel.positions import WordsOfBlock, values_by_key

#: Patterns of DuckDB's SQL and what replaces them in Spark's SQL, one after the other.
SQL_DIFFERENCES = tuple(
    (re.compile(duckdb), spark)
    for duckdb, spark in (
        (r"\bunnest\(", "explode("),
        (r"\blambda (\w+):", r"\1 ->"),
        (r"\blist_filter\(", "filter("),
        (r"\blist_transform\(", "transform("),
        (r"\blist_contains\(", "array_contains("),
        (r"\blist_position\(", "array_position("),
        (r"\blist_slice\(", "dphh_slice("),
        (r"\btokens_of\(", "dphh_tokens("),
        (r"\berror\(", "raise_error("),
        (r"\barray_to_string\(", "array_join("),
        (r"\brow\(", "struct("),
        (r"\bVARCHAR\b", "STRING"),
    )
)
#: Matches $name, a parameter in DuckDB's SQL; in Spark's SQL it is :name.
_PARAMETER_PATTERN = re.compile(r"\$(\w+)")
#: Matches the last line of a statement, if it is no comment.
_LAST_LINE_PATTERN = re.compile(r"^(?!\s*--).*;$", re.MULTILINE)
_CREATE_PATTERN = re.compile(r"^CREATE (?:TEMP )?(TABLE|VIEW) (\w+) AS$", re.MULTILINE)


class Statement(NamedTuple):
    """A table or view that a step makes, and its query."""

    kind: str
    made: str
    select: str


@cache
def statements(step: str) -> tuple[Statement, ...]:
    """The tables and views that a step makes, in their order."""
    _, *parts = _CREATE_PATTERN.split(spark_sql(step))
    made = []
    for kind, name, select in zip(*(parts[i::3] for i in range(3)), strict=True):
        last = _LAST_LINE_PATTERN.search(select)
        made.append(Statement(kind, name, select[: last.end() - 1] if last else select))
    return tuple(made)


@cache
def spark_sql(step: str) -> str:
    """The text of a step in Spark's SQL."""
    text = query(step, "spark")
    if not query_paths(step, "spark")[0].startswith("spark/"):
        for duckdb, spark in SQL_DIFFERENCES:
            text = duckdb.sub(spark, text)
    return _PARAMETER_PATTERN.sub(r":\1", text).rstrip().removesuffix(";")


#: Typed as Any, because its overloads need annotations that Arrow's types do not have here.
_arrow_udf: Any = functions.arrow_udf
_NUMPY_FORMATS = {INTS: "<i4", LONGS: "<i8"}
#: The most bytes of a public table or object, such as the released keys of a level. It is sent
#: whole to every executor; a larger one is refused. (A server of Spark Connect may take fewer.)
MOST_BYTES_SENT = 1 << 30


def register(spark: SparkSession, name: str, function: Function, objects: Sequence[Any]) -> None:
    """Register a function of `udfs/` as `dphh_NAME`. Queries name an object of the driver's by its
    index in `objects`, or they give the values that were brought to a block: for each part of its
    keys, a list of places and a list of values."""
    gives = _type_for_block(function) if function.takes_whole_users else function.gives
    looked_up = objects if LOOKUP in function.takes else ()

    def call_on_executor(*columns: pa.Array) -> pa.Array:
        _exempt_modules_from_garbage_collection()
        if function.takes_whole_users:
            return _call_for_each_block(function, columns, looked_up)
        if not len(columns[0]):
            return pa.array([], gives)
        arguments = zip(function.takes, columns, strict=True)
        return function.body(*(_argument(kind, of, None, looked_up) for kind, of in arguments))

    register_arrow(spark, f"dphh_{name}", call_on_executor, from_arrow_type(gives).simpleString())


def register_arrow(spark: SparkSession, name: str, function: Any, result_type: str) -> None:
    spark.udf.register(name, _arrow_udf(function, result_type).asNondeterministic())


def refuse_large_object(name: str, byte_count: int) -> None:
    """The error does not say how many bytes: they may follow from levels that the run draws again,
    because they were not stored."""
    if byte_count > MOST_BYTES_SENT:
        raise EngineOutOfResources(
            f"{name} takes more than {MOST_BYTES_SENT:,} bytes, and Spark's executors are sent no "
            "more: find less, by a smaller max_n, spurious or epsilon, or by a shorter list"
        )


def _call_for_each_block(
    function: Function, columns: Sequence[pa.Array], objects: Sequence[Any]
) -> pa.Array:
    made = []
    for row in range(len(columns[0])):
        of_row = [column.slice(row, 1) for column in columns]
        words = None
        if ROW_WORDS in function.takes:
            words = WordsOfBlock(of_row[function.takes.index(ROW_WORDS)].flatten())
        arguments = zip(function.takes, of_row, strict=True)
        found = function.body(*(_argument(kind, of, words, objects) for kind, of in arguments))
        if function.keys_are_words and words is not None:
            keys, weights = one_array(found).flatten().flatten()
            pairs = [words.spellings(keys), weights]
            found = lists_of(
                np.array([len(keys)]), pa.StructArray.from_arrays(pairs, ["key", "weight"])
            )
        made.append(_lists_as_bytes(found))
    return pa.concat_arrays(made) if made else pa.array([], _type_for_block(function))


def _argument(
    kind: ArgumentKind, column: Any, words: WordsOfBlock | None, objects: Sequence[Any]
) -> Any:
    if kind == ROW_WORDS:
        return words
    if kind == LOOKUP:
        return _lookup_value(column, words, objects)
    if kind in (INTS, LONGS):
        numbers = _numbers_from_bytes(column, kind)
        return lists_of(np.array([len(numbers)]), numbers)
    if isinstance(kind, Constant):
        return column[0].as_py()
    if pa.types.is_struct(kind):
        fields = zip(kind, column.flatten(), strict=True)
        lists = [_argument(field.type, of, words, objects) for field, of in fields]
        return pa.StructArray.from_arrays(lists, [field.name for field in kind])
    # Cast as in DuckDB: in Spark small numbers have four bytes, in which functions would overflow.
    return column.cast(kind) if pa.types.is_integer(kind) else column


def _lookup_value(column: Any, words: WordsOfBlock | None, objects: Sequence[Any]) -> Any:
    if pa.types.is_list(column.type):
        lists = (each.flatten() for each in column.flatten().flatten())
        return values_by_key(pa.table([*lists], ["key", "value"]), words)
    number = column[0].as_py()
    if number is None:
        return None
    value = objects[number]
    return value.by_id(words) if hasattr(value, "by_id") else value


def _numbers_from_bytes(column: Any, kind: pa.DataType) -> Any:
    """The numbers of the column's only row, which has them as bytes."""
    value = column[0]
    return np.frombuffer(value.as_buffer() if value.is_valid else b"", _NUMPY_FORMATS[kind])


def _lists_as_bytes(result: Any) -> pa.Array:
    """A function's result for one block, with bytes in place of its lists of numbers."""
    result = one_array(result)
    if pa.types.is_struct(result.type):
        fields = [_lists_as_bytes(result.field(i)) for i in range(result.type.num_fields)]
        return pa.StructArray.from_arrays(fields, [field.name for field in result.type])
    if (number_format := _NUMPY_FORMATS.get(result.type)) is None:
        return result
    return pa.array([result.flatten().to_numpy().astype(number_format).tobytes()], pa.binary())


def _type_for_block(function: Function) -> pa.DataType:
    """The type of a function's result for a block: with keys that are words spelled, because no
    process knows all words, and with bytes in place of lists of numbers."""
    if function.keys_are_words:
        return pa.list_(pa.struct([("key", pa.string()), ("weight", pa.int64())]))
    return _type_with_bytes(function.gives)


def _type_with_bytes(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _type_with_bytes(field.type)) for field in kind])
    return pa.binary() if kind in _NUMPY_FORMATS else kind


@cache
def _exempt_modules_from_garbage_collection() -> None:
    """Exempt what modules hold from Python's garbage collection. PySpark collects garbage after
    each task; with the objects of NumPy, Arrow, Polars and DuckDB it would take 50 ms."""
    gc.freeze()
