"""Registers the functions of `udfs/` in Spark, as Arrow functions that run on the executors.

Spark copies what a function holds to its executors when the function is registered, so each step
registers those that it calls. All that draw are marked non-deterministic: Spark then neither calls
them twice for one row nor moves them. Write what they draw to Parquet before anything reads it,
since a task that runs again draws again.

A row of whole users is a block, with its lists of numbers as bytes: as lists, each number would
pass through Java by itself. A function of users is called for one block at a time.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas import functions
from pyspark.sql.pandas.types import from_arrow_type

from dphh.errors import EngineOutOfMemory
from dphh.udfs.functions import INTS, LONGS, LOOKUP, ROW_WORDS, ArgumentKind, Constant, Function
from dphh.udfs.kernel.lists import lists_of, one_array
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.kernel.words import WordsOfRow

#: Typed as Any, because its overloads need annotations that Arrow's types do not have here.
_arrow_udf: Any = functions.arrow_udf
_NUMBER_FORMATS = {INTS: "<i4", LONGS: "<i8"}
#: The most bytes of a public table or object, such as the released keys of a level. It is sent
#: whole to every executor; a larger one is refused.
MOST_BYTES_SENT = 1 << 30


def register(
    spark: SparkSession, name: str, function: Function, objects: Sequence[Broadcast]
) -> None:
    """Register a function of `udfs/` as `dphh_NAME`. Queries name an object by its index in
    `objects`; in its place they may give a block's brought values: from each part of its keys, a
    list of places and one of values."""
    call = _call_with_blocks if function.takes_whole_users else _call_with_columns
    gives = _type_of_result(function) if function.takes_whole_users else function.gives

    def call_on_executor(*columns: pa.Array) -> pa.Array:
        _exempt_modules_from_collection()
        return call(function, columns, objects)

    kind = from_arrow_type(gives).simpleString()
    register_arrow(spark, f"dphh_{name}", call_on_executor, kind)


def register_arrow(spark: SparkSession, name: str, function: Any, gives: str) -> None:
    spark.udf.register(name, _arrow_udf(function, gives).asNondeterministic())


@dataclass(frozen=True, eq=False)
class HeldWords(WordsOfRow):
    """The words of a block, and the word ids at its positions."""

    held: Any


class Broadcast:
    """An object of the driver's, sent to all executors once. As bytes: where Spark encrypts what it
    writes (`spark.io.encryption.enabled`), PySpark cannot broadcast arrays of more than 64 kB."""

    def __init__(self, spark: SparkSession, name: str, value: Any) -> None:
        written = pickle.dumps(value)
        refuse_large_broadcast(name, len(written))
        self._written = spark.sparkContext.broadcast(written)

    @cached_property
    def value(self) -> Any:
        """The object, read at its first use in each task."""
        return pickle.loads(self._written.value)

    def destroy(self) -> None:
        """Remove the object from the disks of all executors: it may be a secret of the run."""
        self._written.destroy()


def refuse_large_broadcast(name: str, sent: int) -> None:
    if sent > MOST_BYTES_SENT:
        raise EngineOutOfMemory(
            f"{name} takes {sent:,} bytes, and Spark's executors are sent {MOST_BYTES_SENT:,} at "
            "most: find less, by a smaller max_n, spurious or epsilon, or by a shorter list"
        )


def _call_with_columns(
    function: Function, columns: Sequence[pa.Array], objects: Sequence[Broadcast]
) -> pa.Array:
    if not len(columns[0]):
        return pa.array([], function.gives)
    arguments = zip(function.takes, columns, strict=True)
    return function.body(*(_argument(kind, column, None, objects) for kind, column in arguments))


def _call_with_blocks(
    function: Function, columns: Sequence[pa.Array], objects: Sequence[Broadcast]
) -> pa.Array:
    made = []
    for row in range(len(columns[0])):
        of_row = [column.slice(row, 1) for column in columns]
        words = None
        if ROW_WORDS in function.takes:
            place = function.takes.index(ROW_WORDS)
            words = HeldWords(of_row[place].flatten(), _numbers_from_bytes(of_row[place - 1], INTS))
        arguments = zip(function.takes, of_row, strict=True)
        found = function.body(*(_argument(kind, of, words, objects) for kind, of in arguments))
        if function.keys_are_words and words is not None:
            keys, weights = one_array(found).flatten().flatten()
            pairs = [words.spellings(keys), weights]
            found = lists_of(
                np.array([len(keys)]), pa.StructArray.from_arrays(pairs, ["key", "weight"])
            )
        made.append(_lists_as_bytes(found))
    return pa.concat_arrays(made) if made else pa.array([], _type_of_result(function))


def _argument(
    kind: ArgumentKind, column: Any, words: HeldWords | None, objects: Sequence[Broadcast]
) -> Any:
    if kind == ROW_WORDS:
        return words
    if kind == LOOKUP:
        return _lookup_value(column, words, objects)
    if kind in (INTS, LONGS):
        return _list_from_bytes(column, kind)
    if isinstance(kind, Constant):
        return column[0].as_py()
    # Cast as in DuckDB: in Spark small numbers have four bytes, in which functions would overflow.
    return column.cast(kind) if pa.types.is_integer(kind) else column


def _lookup_value(column: Any, words: HeldWords | None, objects: Sequence[Broadcast]) -> Any:
    if pa.types.is_list(column.type):
        places, values = (each.flatten().to_numpy() for each in column.flatten().flatten())
        return _brought_value(places, values, words)
    number = column[0].as_py()
    if number is None:
        return None
    value = objects[number].value
    return value.by_id(words) if hasattr(value, "by_id") else value


def _brought_value(places: Any, values: Any, words: HeldWords | None) -> Any:
    """The values that were brought to a block, by key or, if it has words, by word id."""
    if words is None:
        return KeyIndex(places), values
    there = np.zeros(len(words) + 1, dtype=np.bool_)
    there[places] = there[-1] = True
    if not there.take(words.held, mode="wrap").all():
        raise RuntimeError("dphh: a word came without its value")
    by_id = np.full(len(there), -1, dtype=np.int64)
    by_id[places] = values
    return by_id


def _list_from_bytes(column: Any, kind: pa.DataType) -> pa.Array:
    """One row's list, from its bytes."""
    numbers = _numbers_from_bytes(column, kind)
    return lists_of(np.array([len(numbers)]), numbers)


def _numbers_from_bytes(column: Any, kind: pa.DataType) -> Any:
    value = column[0]
    return np.frombuffer(value.as_buffer() if value.is_valid else b"", _NUMBER_FORMATS[kind])


def _lists_as_bytes(found: Any) -> pa.Array:
    """One row's lists of numbers as bytes."""
    found = one_array(found)
    if pa.types.is_struct(found.type):
        fields = [_lists_as_bytes(found.field(i)) for i in range(found.type.num_fields)]
        return pa.StructArray.from_arrays(fields, [field.name for field in found.type])
    if (kind := _NUMBER_FORMATS.get(found.type)) is None:
        return found
    return pa.array([found.flatten().to_numpy().astype(kind).tobytes()], pa.binary())


def _type_of_result(function: Function) -> pa.DataType:
    """The type of a function's result for a block. Keys that are words are spelled in it, because
    no process knows all words."""
    if function.keys_are_words:
        return pa.list_(pa.struct([("key", pa.string()), ("weight", pa.int64())]))
    return _type_as_bytes(function.gives)


def _type_as_bytes(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _type_as_bytes(field.type)) for field in kind])
    return pa.binary() if kind in _NUMBER_FORMATS else kind


@cache
def _exempt_modules_from_collection() -> None:
    """Exempt what modules hold from Python's garbage collection. PySpark starts one after each
    task, and with NumPy, Arrow, Polars and DuckDB it takes 50 ms of processor time."""
    gc.freeze()
