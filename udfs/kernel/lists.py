"""Lists of integers in the rows that engines hand to the kernel: from Arrow to NumPy and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.errors import EngineOutOfMemory
from dphh.udfs.text.hashes import Integers

#: The most positions in a batch of rows: offsets in its lists have four bytes.
MOST_POSITIONS = 2**31 - 1


def one_array(column: Any) -> Any:
    """A column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def lengths_of(lists: Any) -> Integers:
    lengths = pc.list_value_length(lists)
    if lengths.null_count:
        lengths = lengths.fill_null(0)
    return np.asarray(lengths.to_numpy(), dtype=np.int64)


def values_of(lists: Any) -> Any:
    return lists.flatten().to_numpy()


def sums_of(lists: Any, values: Integers) -> Integers:
    """For each list, the sum of its elements' `values` (one for each element of all lists)."""
    before = np.concatenate([[0], np.cumsum(values)])
    sums: Integers = np.diff(before[np.concatenate([[0], np.cumsum(lengths_of(lists))])])
    return sums


def lists_of(lengths: Integers, values: Any) -> pa.Array:
    if int(lengths.sum(dtype=np.int64)) > MOST_POSITIONS:
        # If the offsets overflowed, Arrow would read memory that is not in these lists.
        raise EngineOutOfMemory(
            f"the rows of one user have more than {MOST_POSITIONS:,} words together, and a user "
            "cannot be divided; leave out some or all rows of such users"
        )
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def in_first_row(rows: int, key: Integers, weight: Integers) -> pa.Array:
    """A list for each row: that of the first row has all pairs (key, weight), the others none."""
    pairs = pa.StructArray.from_arrays([pa.array(key), pa.array(weight)], ["key", "weight"])
    return lists_of(np.where(np.arange(rows) == 0, len(key), 0), pairs)
