"""The ladder's places, many users at a time: which released gram starts where in their texts.

Neighbours in an array of places are neighbours in a text: -1 stands where nothing released starts,
and after each text, so that no pair crosses from one into the next, nor from user to user.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.udfs.hashes import Integers, of_numbers

#: Places that are looked up at a time: they stay in the processor's cache.
PIECE = 1 << 18
_PAIR = np.int64(32)


def candidates(grams: Any, ends: Any, ahead: int) -> Integers:
    """At each place the pair that begins there, left * 2^32 + right: what stands there in `grams`
    and, so many places ahead, in `ends`; -1 where either is none.

    DPNE at level k: the grams whose pieces were released. Pruning "both": the first and the last
    k - 1 tokens, which are two released grams side by side. "single": the first k - 1 tokens as a
    gram, and the last one as a word, k - 1 places ahead.
    """
    keys = np.full(len(grams), -1, dtype=np.int64)
    for start in range(0, len(grams) - ahead, PIECE):
        stop = min(start + PIECE, len(grams) - ahead)
        pairs = grams[start:stop].astype(np.int64) << _PAIR
        pairs |= ends[start + ahead : stop + ahead]
        # Either's sign is the pair's: a -1 on the right is all ones.
        np.maximum(pairs, -1, out=keys[start:stop])
    return keys


class Released:
    """The released keys of a level, each to be found by itself: its place among them, or -1.

    A table of hashes, twice as wide as need be at least, read many keys at a time; keys are put
    where they belong or as near behind as is free, and sought there.
    """

    def __init__(self, keys: Any) -> None:
        self.keys = np.asarray(keys, dtype=np.int64)
        bits = max(4, (2 * len(self.keys)).bit_length() + 1)
        self._shift = np.uint64(64 - bits)
        self._table = np.full((1 << bits) + len(self.keys) + 1, -1, dtype=np.int32)
        self._reach = 0
        waiting = np.arange(len(self.keys), dtype=np.int32)
        at = self._home(self.keys)
        while len(waiting):
            free = self._table[at] < 0
            self._table[at[free]] = waiting[free]  # of several, the last one stays
            left = self._table[at] != waiting
            waiting, at = waiting[left], at[left] + 1
            self._reach += 1

    def places(self, keys: Integers) -> NDArray[np.int32]:
        found = np.full(len(keys), -1, dtype=np.int32)
        if not len(self.keys):
            return found
        for start in range(0, len(keys), PIECE):
            self._seek(keys[start : start + PIECE], found[start : start + PIECE])
        return found

    def _seek(self, keys: Integers, found: NDArray[np.int32]) -> None:
        rows = np.flatnonzero(keys >= 0)
        sought = keys[rows]
        at = self._home(sought)
        for _ in range(self._reach):
            there = self._table[at]
            hit = self.keys[there] == sought
            hit &= there >= 0
            found[rows[hit]] = there[hit]
            on = (there >= 0) & ~hit
            if not on.any():
                return
            rows, sought, at = rows[on], sought[on], at[on] + 1

    def _home(self, keys: Integers) -> Integers:
        spread = of_numbers(keys) * np.uint64(0x9E3779B97F4A7C15)
        return (spread >> self._shift).view(np.int64)


def that_matter(keys: Integers) -> NDArray[np.bool_]:
    """The places where a pair begins, and of one -1 after each run of them.

    No other can be part of a longer gram; neighbours stay neighbours.
    """
    there = keys >= 0
    return there | _one_on(there)


def _one_on(there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.concatenate([[False], there[:-1]])
