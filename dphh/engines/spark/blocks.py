"""Blocks of whole users on Spark: each task gathers the users of its part of the rows; and private
values are brought to the blocks that have their keys.

To group rows by user would shuffle every row at every level. So the positions of many users are
stored as one row, a block, which is never divided: users are bounded within their block, and only
the sums of blocks are shuffled. A block has its own list of words, in which its ids are indices.
What a task makes of its part depends on that part alone, so a task that runs again makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from dphh.udfs.kernel.gathering import Gathering, Users, slices_of_bytes
from dphh.udfs.kernel.lists import one_array
from dphh.udfs.kernel.reading import Reading
from dphh.udfs.text.tokens import tokens_of
from dphh.udfs.text.vocabulary import Vocabulary

SCHEMA = "user_hashes binary, lengths binary, ids binary, words array<string>"
#: A block has at least so many positions, where there are as many.
POSITIONS = 1 << 22
Batches = Iterator[pa.RecordBatch]


def blocks_of(reading: Reading, column: str, expression: str) -> Callable[[Batches], Batches]:
    """From batches (user_id, content, group_name), of all rows of their users, to rows of
    SCHEMA."""

    def blocks(batches: Batches) -> Batches:
        words = Vocabulary()
        gathering = Gathering(reading.reader(words))
        for batch in batches:
            for rows in slices_of_bytes(pa.Table.from_batches([batch])):
                content = one_array(rows.column("content"))
                tokens = tokens_of(content, column, expression)
                gathering.add(rows.column("user_id"), tokens, rows.column("group_name"))
        gathering.end()
        if gathering.holds_null_users:
            raise RuntimeError("dphh: NULL user")
        words.close()
        for users in _full(gathering.users()):
            yield _block(users, words)

    return blocks


def _full(users: Iterator[Users]) -> Iterator[Users]:
    """The same users, with some POSITIONS at a time."""
    waiting: list[Users] = []
    for some in users:
        waiting.append(some)
        if sum(len(each.positions) for each in waiting) >= POSITIONS:
            yield Users(*map(np.concatenate, zip(*waiting, strict=True)))
            waiting = []
    if waiting:
        yield Users(*map(np.concatenate, zip(*waiting, strict=True)))


def _block(users: Users, words: Vocabulary) -> pa.RecordBatch:
    ids, spelled = users.positions, pa.nulls(1, pa.list_(pa.string()))
    if len(words):
        there = np.zeros(len(words) + 1, dtype=np.bool_)
        there[ids] = True
        own = np.flatnonzero(there[:-1])
        numbers = np.full(len(there), -1, dtype=np.int32)
        numbers[own] = np.arange(len(own), dtype=np.int32)
        ids = numbers.take(ids, mode="wrap")
        spelled = pa.array([words.spelled(own)], pa.list_(pa.string()))
    columns = [
        pa.array([users.user_hashes.astype("<i8").tobytes()], pa.binary()),
        pa.array([users.lengths.astype("<i4").tobytes()], pa.binary()),
        pa.array([ids.astype("<i4").tobytes()], pa.binary()),
        spelled,
    ]
    return pa.RecordBatch.from_arrays(columns, ["user_hashes", "lengths", "ids", "words"])


# What is private comes to the blocks that have its keys by `sql/spark/brought.sql`.

#: An even number for each block, by its place among the files of its table and not by what it
#: holds, since two blocks may hold the same; and its columns.
NUMBERED = (
    "shiftleft(xxhash64(_metadata.file_path, _metadata.row_index), 1) AS block",
    "struct(*) AS whole",
)
#: How many keys are given to Spark at a time.
_KEYS = 1 << 16


def keys_schema(table: DataFrame) -> str:
    return f"block bigint, place bigint, key {'string' if 'words' in table.columns else 'bigint'}"


def schema_with(name: str, table: DataFrame) -> str:
    """The table's columns and what is brought: places, which are word ids or keys, and the value at
    each, as bytes."""
    columns = [f"{field.name} {field.dataType.simpleString()}" for field in table.schema.fields]
    return ", ".join([*columns, f"{name} struct<places: binary, values: binary>"])


def keys_of_blocks(batches: Batches) -> Batches:
    """The keys of each block, each once: its words, at their ids, or numbers, at themselves."""
    for rows in batches:
        for row, block in enumerate(rows.column("block").to_pylist()):
            whole = rows.column("whole").slice(row, 1)
            if whole.type.get_field_index("words") >= 0:
                keys = whole.field("words").flatten()
                places = pa.array(np.arange(len(keys)))
            else:
                held = np.unique(np.frombuffer(whole.field("keys")[0].as_buffer(), "<i8"))
                keys = places = pa.array(held[held >= 0])
            blocks = pa.array(np.full(len(keys), block))
            yield from pa.table([blocks, places, keys], ["block", "place", "key"]).to_batches(_KEYS)


def with_brought(batches: Batches) -> Batches:
    """From rows (block, place, value, whole), where a block comes after its values, to the columns
    of each block and what was brought to it."""
    last: int | None = None
    waiting: list[pa.RecordBatch] = []
    for rows in batches:
        start = 0
        for stop in np.flatnonzero(rows.column("whole").is_valid().to_numpy(False)).tolist():
            block = rows.column("block")[stop].as_py()
            if block == last:
                raise RuntimeError("dphh: two blocks have one number")
            yield _with(rows.column("whole").slice(stop, 1), [*waiting, rows[start:stop]])
            last, waiting, start = block, [], stop + 1
        waiting.append(rows[start:])


def _with(whole: pa.StructArray, rows: list[pa.RecordBatch]) -> pa.RecordBatch:
    places, values = (
        pa.array([b"".join(each.column(name).to_numpy().tobytes() for each in rows)], pa.binary())
        for name in ("place", "value")
    )
    brought = pa.StructArray.from_arrays([places, values], ["places", "values"])
    names = [field.name for field in whole.type]
    return pa.RecordBatch.from_arrays([*whole.flatten(), brought], [*names, "brought"])
