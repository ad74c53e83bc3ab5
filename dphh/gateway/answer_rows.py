"""Moves an answer's rows from the sandbox to the process that serves them, in measured batches.

One process serves all analysts, so an answer crosses in batches small enough that others get their
turn in between, and no piece that a client fetches later is large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from dphh.corpora.quoted import identifier
from dphh.errors import UsageError
from dphh.udfs.text.arrow_bytes import packed

#: The largest answer, by `weight`.
ANSWER_BYTES = 256 * 2**20
#: Rows of one vector where answers are served, and the bytes that it may have at most.
VECTOR, VECTOR_BYTES = 2048, 8 * 2**20
#: About the size of one batch: some tens of milliseconds of the serving process's time.
BATCH_BYTES = 4 * 2**20
#: DuckDB's overhead beyond Arrow's bytes, for each column and for each value.
_COLUMN_BYTES, _VALUE_BYTES = 128 << 10, 5


@dataclass(frozen=True)
class Rows:
    """An answer that is still in another process; its batches are fetched one by one."""

    names: list[str]
    size: int  # an upper bound in bytes of its size where it is served
    batches: int  # at least one, which may be empty
    batch: Callable[[int], bytes]  # returns an Arrow stream with columns `c0`, `c1`, ...


def of_table(table: pa.Table) -> Rows:
    """A small answer of the gateway itself."""
    (only,), size = in_batches(table.to_batches(), table.schema)
    return Rows(table.column_names, size, 1, lambda _: packed(only))


def in_batches(found: Iterable[pa.RecordBatch], schema: pa.Schema) -> tuple[list[pa.Table], int]:
    """The rows in batches, and their total size; refused as soon as they are too large."""
    kept = pa.schema([field.with_name(f"c{n}") for n, field in enumerate(schema)])
    leaves = sum(_stored_columns(field.type) for field in schema)
    size = leaves * _COLUMN_BYTES
    _check_size(size)
    batches: list[list[pa.RecordBatch]] = [[]]
    batch_size = 0
    for rows in _batches_of_vectors(found):
        weight = rows.nbytes + rows.num_rows * leaves * _VALUE_BYTES
        if weight > VECTOR_BYTES:
            raise UsageError(
                f"The answer's rows are too long: {rows.num_rows:,} of them take more than "
                f"{VECTOR_BYTES:,} bytes; select fewer or shorter columns"
            )
        size += weight
        _check_size(size)
        if batch_size and batch_size + weight > BATCH_BYTES:
            batches.append([])
            batch_size = 0
        batches[-1].append(pa.RecordBatch.from_arrays(rows.columns, schema=kept))
        batch_size += weight
    return [pa.Table.from_batches(batch, schema=kept) for batch in batches], size


def reading(place: str, names: list[str]) -> str:
    """The SQL that reads stored rows under their original column names."""
    selected = ", ".join(f"c{n} AS {identifier(name)}" for n, name in enumerate(names))
    return f"SELECT {selected} FROM {place}"


def _batches_of_vectors(found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in found:
        for start in range(0, rows.num_rows, VECTOR):
            yield rows.slice(start, VECTOR)


def _stored_columns(kind: pa.DataType) -> int:
    """How many columns DuckDB stores for this type: itself and all nested ones."""
    return 1 + sum(_stored_columns(kind.field(index).type) for index in range(kind.num_fields))


def _check_size(size: int) -> None:
    if size > ANSWER_BYTES:
        raise UsageError(f"The answer is larger than {ANSWER_BYTES:,} bytes; ask for less of it")
