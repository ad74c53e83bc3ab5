"""Lists of integers in the rows that engines hand to the kernel: from Arrow to NumPy and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.errors import EngineOutOfResources
from dphh.udfs.arrays import Integers

#: The most positions in a batch of rows: the offsets of its lists have four bytes each.
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


def sums_of_runs(lengths: Any, values: Any) -> Integers:
    """Divides `values` into runs of these lengths: the sum of each run."""
    before = np.append(0, np.cumsum(values))
    return np.diff(before.take(np.cumsum(lengths)), prepend=0)


def lists_of(lengths: Integers, values: Any) -> pa.Array:
    if int(lengths.sum(dtype=np.int64)) > MOST_POSITIONS:
        # If the offsets overflowed, Arrow would read memory that is not in these lists.
        raise EngineOutOfResources(
            f"the rows of one user have more than {MOST_POSITIONS:,} words together, and a user "
            "cannot be divided; leave out some or all rows of such users"
        )
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def all_in_first_row(row_count: int, keys: Integers, weights: Integers) -> pa.Array:
    """A list for each row: that of the first row has all pairs (key, weight), the others none."""
    pairs = pa.StructArray.from_arrays([pa.array(keys), pa.array(weights)], ["key", "weight"])
    return lists_of(np.where(np.arange(row_count) == 0, len(keys), 0), pairs)
