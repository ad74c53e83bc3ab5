"""Brings private values to the blocks of whole users that have their keys, by
`sql/spark/brought.sql`.

A block is numbered by its place among the files of its table, and not by what it holds: two blocks
may hold the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]

#: The columns of a block, and an even number for it: its values get the odd number after it.
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
