"""What whole users add to a level's sums: their distinct keys, bounded, weighed and summed.

For an engine that keeps a user in one place (`blocks.py`): nothing has to be sorted or joined among
machines, and the users of a block leave it as one sum.

Which keys of an over-full user count hangs on that user's own keys and name, and on the level's
salt: not on who else is in the block, and not on which attempt of a task asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
#: Of sums that are kept in memory: some tens of MB.
ROWS = 1 << 20


def contributions(
    owner: Integers, codes: Integers, keys: Any, lots: Integers, weights: Integers, salt: int
) -> pa.RecordBatch:
    """The batch (key, weight): what all these users together add to each key.

    The user number `owner[i]` holds `keys[codes[i]]`, any number of times; `lots` has a number a
    user that hangs on the user's name; `weights[t]` is for who holds t keys, or, at its last
    place, that many or more. `keys` are an Arrow array without repetitions.
    """
    bits = len(keys).bit_length()
    held = np.unique((owner << bits) | codes)
    owner, code = held >> bits, held & ((1 << bits) - 1)
    number = np.bincount(owner, minlength=len(lots))
    cap = len(weights) - 1
    weight = weights[np.minimum(number, cap)][owner]

    over = number[owner] > cap
    if over.any():
        hashed = _hashed(keys, code[over], salt)
        keep = below_cut(owner[over], _mixed(hashed ^ _mixed(_word(lots), salt)[owner[over]]), cap)
        weight[np.flatnonzero(over)[~keep]] = 0

    sums = np.zeros(len(keys), dtype=np.int64)
    np.add.at(sums, code, weight)
    there = pa.array(sums > 0)
    return pa.RecordBatch.from_arrays(
        [keys.filter(there), pa.array(sums).filter(there)], names=["key", "weight"]
    )


class Sums:
    """Contributions of block after block, added up as far as memory goes."""

    def __init__(self, rows: int = ROWS) -> None:
        self.rows = rows
        self._parts: list[pa.Table] = []
        self._count = 0

    def with_more(self, made: pa.RecordBatch) -> Iterator[pa.Table]:
        """Takes it in. What comes out is not kept: many keys, each seen too seldom to add up."""
        self._parts.append(pa.Table.from_batches([made]))
        self._count += made.num_rows
        if self._count > self.rows:
            added = self._added()
            if added.num_rows > self.rows // 2:
                yield added
            else:
                self._parts, self._count = [added], added.num_rows

    def left(self) -> Iterator[pa.Table]:
        if self._parts:
            yield self._added()

    def _added(self) -> pa.Table:
        parts, self._parts, self._count = self._parts, [], 0
        added = pa.concat_tables(parts).group_by("key").aggregate([("weight", "sum")])
        return added.select(["key", "weight_sum"]).rename_columns(["key", "weight"])


def below_cut(owner: Integers, places: Words, cap: int) -> NDArray[np.bool_]:
    """Which of these over-full users' keys lie below their owner's (cap + 1)st smallest place.

    `owner` is ascending. At most `cap` of a user's keys do, fewer where places are equal.
    """
    order = np.lexsort((places, owner))
    start = np.flatnonzero(np.diff(owner, prepend=-1))
    cut = places[order[start + cap]]
    return places < np.repeat(cut, np.diff(start, append=len(owner)))


def _hashed(kinds: Any, code: Integers, salt: int) -> Words:
    """A number for the key of each code, which hangs on the key and the salt alone."""
    if pa.types.is_integer(kinds.type):
        return _mixed(_word(kinds.to_numpy())[code], salt)
    wanted = np.unique(code)
    key = salt.to_bytes(8, "little")
    spelled = kinds.take(pa.array(wanted)).to_pylist()
    hashes = np.zeros(len(kinds), dtype=np.uint64)
    hashes[wanted] = np.frombuffer(
        b"".join(blake2b(word.encode(), digest_size=8, key=key).digest() for word in spelled),
        dtype="<u8",
    )
    return hashes[code]


def _mixed(words: Words, salt: int = 0) -> Words:
    """Every bit moves every other: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    words = words + np.uint64((salt + 0x9E3779B97F4A7C15) % 2**64)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _word(numbers: Any) -> Words:
    return np.ascontiguousarray(numbers, dtype=np.int64).view(np.uint64)
