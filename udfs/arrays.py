"""What most functions here take and return: arrays of integers, lists of them in Arrow's columns,
and hashes of spellings and numbers.

A hash depends on the spelling or the number alone, and is the same in every engine, process and
run. Bounding chooses a user's keys by such hashes of users and words, never by numbers that would
change if another user were added or removed. They need not be secret or free of collisions: two
spellings with one hash are still two keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.errors import EngineOutOfResources

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

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


Hashes = NDArray[np.uint64]
# Hashes.

#: How many bytes are hashed at a time.
_BYTES_A_STEP = 8


def mix_bits(hashes: Any, salt: int = 0) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): mixes all bits of each hash."""
    found: Hashes = hashes + np.uint64((salt + 0x9E3779B97F4A7C15) % 2**64)
    shifted = found >> np.uint64(30)
    found ^= shifted
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= np.right_shift(found, np.uint64(27), out=shifted)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= np.right_shift(found, np.uint64(31), out=shifted)
    return found


def unmixed_hashes(numbers: Any) -> Hashes:
    """The numbers themselves, as hashes whose bits are not mixed yet."""
    return np.ascontiguousarray(numbers, dtype=np.int64).view(np.uint64)


def hash_texts(texts: Any) -> Hashes:
    """A hash of each text's bytes. A step hashes the next eight bytes of all texts."""
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    starts, lengths = ends[:-1], np.diff(ends)
    hashes = mix_bits(unmixed_hashes(lengths))
    if not len(texts) or not lengths.any():
        return hashes
    first, last = int(ends[0]), int(ends[-1])
    text = np.zeros(last - first + _BYTES_A_STEP, dtype=np.uint8)
    text[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    eights = np.ndarray(len(text) - _BYTES_A_STEP + 1, "<u8", text, strides=(1,))
    rows = np.flatnonzero(lengths > 0)
    done = 0
    while len(rows):
        left = lengths[rows] - done
        word = eights[starts[rows] - first + done]
        short = left < _BYTES_A_STEP
        word[short] &= (np.uint64(1) << (left[short] * 8).astype(np.uint64)) - np.uint64(1)
        hashes[rows] = mix_bits(hashes[rows] ^ word)
        done += _BYTES_A_STEP
        rows = rows[left > _BYTES_A_STEP]
    return hashes
