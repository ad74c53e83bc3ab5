"""Which of a block's words or grams were released, and their numbers among the released ones.

Few released keys are sent to the executors whole, and each worker looks keys up among them. Where
they are more than a worker should hold, Spark joins the keys of each block with them
(`sql/spark/blocks_and_numbers.sql`), and a block comes with the numbers of its own keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from dphh.udfs.kernel.blocks import block_at
from dphh.udfs.kernel.positions import Released
from dphh.udfs.spark.sent import everywhere
from dphh.udfs.text.arrow_bytes import unpacked
from dphh.udfs.text.hashes import Integers

Numbers = NDArray[np.integer[Any]]
#: Of the keys of a block, in a row of a batch, the numbers; -1 for each that was not released.
NumbersOf = Callable[[pa.RecordBatch, int, Any], Numbers]


def numbers_of_words(spark: SparkSession, released: Any | None) -> NumbersOf:
    """A function that returns the numbers of a block's words among the released ones. `released` is
    None if a join added the numbers to the rows."""
    if released is None:
        return lambda rows, row, words: _numbers_from_join(rows, row, len(words))
    sent = everywhere(spark, released)

    def looked_up(rows: pa.RecordBatch, row: int, words: pa.Array) -> Numbers:
        found = pc.index_in(words, value_set=sent.value.cast(words.type)).fill_null(-1)
        numbers: Numbers = found.to_numpy()
        return numbers

    return looked_up


def numbers_of_grams(spark: SparkSession, released: Integers | None) -> NumbersOf:
    """The same for the keys at a block's positions; the released keys are ascending."""
    if released is None:

        def joined(rows: pa.RecordBatch, row: int, keys: Integers) -> Numbers:
            distinct, at = np.unique(keys, return_inverse=True)
            return _numbers_from_join(rows, row, len(distinct))[at]

        return joined
    sent = everywhere(spark, released)
    made: list[Released] = []

    def looked_up(rows: pa.RecordBatch, row: int, keys: Integers) -> Numbers:
        if not made:
            made.append(Released(sent.value))
        return made[0].positions(keys)

    return looked_up


def _numbers_from_join(rows: pa.RecordBatch, row: int, keys: int) -> Numbers:
    """The numbers that a join added to a row, as structs of a key's place and its number."""
    return brought(rows, row, "numbers", np.full(keys, -1, dtype=np.int32))


def brought(rows: pa.RecordBatch, row: int, column: str, values: Numbers) -> Numbers:
    """Write the values that a join added to a row, structs of a place and a value, into
    `values`."""
    known: Any = rows.column(column)[row].values
    if known is not None:
        places, given = (column.to_numpy() for column in known.flatten())
        refuse_places_of_two_blocks(places)
        values[places] = given
    return values


def refuse_places_of_two_blocks(places: Integers) -> None:
    """A join brings one value at most to each place of a block; blocks are joined by a hash, and
    two blocks of one hash would get each other's values."""
    if len(places) and np.bincount(places).max() > 1:
        raise RuntimeError("dphh: two blocks have one number, and each has the other's values")


def words_of_block(rows: pa.RecordBatch, row: int) -> tuple[Integers, Any]:
    words = vocabulary(rows, row)
    return np.arange(len(words)), words.cast("string")


def grams_of_block(rows: pa.RecordBatch, row: int) -> tuple[Integers, Any]:
    """The distinct keys of a block, and the index of each position's key among them (-1 for
    none)."""
    distinct = np.unique(block_at(rows, row, "keys").positions)
    places = np.flatnonzero(distinct >= 0)
    return places, distinct[places]


def vocabulary(rows: pa.RecordBatch, row: int) -> pa.Array:
    """A block's list of words; its positions are indices in this list."""
    column: Any = rows.column("words")
    words: pa.Array = unpacked(column[row].as_buffer()).column("word").combine_chunks()
    return words
