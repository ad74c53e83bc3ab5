"""The ladder's places, many users at a time: which released gram starts where in their texts.

Neighbours in an array of places are neighbours in a text: -1 stands where nothing released starts,
and after each text, so that no pair crosses from one into the next, nor from user to user.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.udfs.text.hashes import Integers, of_numbers

#: Places that are looked at together: they stay in the processor's cache.
PIECE = 1 << 16
_PAIR = np.int64(32)
#: A table of so many bits stays there too, and may be wider than need be.
_IN_CACHE = 17


def of_words(numbers: NDArray[np.int32], codes: Any) -> NDArray[np.int32]:
    """At each place the number of the released word, by the word's code; the last one for -1."""
    found = np.empty(len(codes), dtype=np.int32)
    for start in range(0, len(codes), PIECE):
        piece = found[start : start + PIECE]
        numbers.take(codes[start : start + PIECE], out=piece, mode="wrap")
    return found


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
        keys[start:stop] = _pairs(grams[start:stop], ends[start + ahead : stop + ahead])
    return keys


def _pairs(left: Any, right: Any) -> Integers:
    pairs: Integers = left.astype(np.int64)
    pairs <<= _PAIR
    pairs |= right
    # Either's sign is the pair's: a -1 on the right is all ones.
    return np.maximum(pairs, -1, out=pairs)


def candidates_that_matter(lengths: Integers, grams: Any) -> tuple[Integers, Integers]:
    """The candidates of grams side by side, at the places that matter alone: how many places are
    left of each user's, and what begins there.

    The places that matter are those where a pair begins, and of one -1 after each run of them. No
    other can be part of a longer gram; neighbours stay neighbours. Which they are follows from the
    user's own texts and from what was released: leaving the others out changes nobody's candidates.
    """
    matter = np.zeros(len(grams), dtype=np.bool_)
    for start in range(0, len(grams) - 1, PIECE):
        right = grams[start + 1 : start + 1 + PIECE]
        begins = (grams[start : start + len(right)] | right) >= 0
        matter[start : start + len(right)] |= begins
        matter[start + 1 : start + 1 + len(right)] |= begins
    keys = np.empty(np.count_nonzero(matter), dtype=np.int64)
    for rows, there in _kept_rows(matter):
        keys[there] = _pairs(grams.take(rows), grams.take(rows + 1, mode="clip"))
    if matter[-1:].any():
        keys[-1] = -1  # nothing stands ahead of the last place
    return _left(lengths, matter), keys


def _left(lengths: Integers, keep: NDArray[np.bool_]) -> Integers:
    """How many places are left of each user's."""
    starts = np.cumsum(lengths) - lengths
    number: Integers = np.add.reduceat(np.append(keep, False), starts, dtype=np.int32)
    number[lengths == 0] = 0  # of no places, reduceat gives what stands next
    return number.astype(lengths.dtype)


def _kept_rows(keep: NDArray[np.bool_]) -> Iterator[tuple[Integers, slice]]:
    """Piece by piece: which places are kept, and where they go."""
    done = 0
    for start in range(0, len(keep), PIECE):
        rows = np.flatnonzero(keep[start : start + PIECE])
        rows += start
        yield rows, slice(done, done + len(rows))
        done += len(rows)


class Released:
    """The released keys of a level, each to be found by itself: its place among them, or -1.

    A table of hashes, twice as wide as need be at least, read many keys at a time; keys are put
    where they belong or as near behind as is free, and sought there.
    """

    def __init__(self, keys: Any) -> None:
        self.keys = np.asarray(keys, dtype=np.int64)
        self._none = len(self.keys)
        self._held = np.append(self.keys, -2)  # at what is free: no key, and not -1
        bits = (2 * len(self.keys)).bit_length() + 1
        bits = max(4, bits, min(bits + 2, _IN_CACHE))
        self._shift = np.uint64(64 - bits)
        self._table = np.full((1 << bits) + len(self.keys) + 1, self._none, dtype=np.int32)
        waiting = np.arange(len(self.keys), dtype=np.int32)
        at = self._home(self.keys)
        while len(waiting):
            free = self._table[at] == self._none
            self._table[at[free]] = waiting[free]  # of several, the last one stays
            left = self._table[at] != waiting
            waiting, at = waiting[left], at[left] + 1

    def places(self, keys: Integers) -> NDArray[np.int32]:
        found = np.empty(len(keys), dtype=np.int32)
        for start in range(0, len(keys), PIECE):
            piece = keys[start : start + PIECE]
            found[start : start + PIECE] = self._seek(piece, self._home(piece))
        return found

    def _seek(self, keys: Integers, at: Integers) -> NDArray[np.int32]:
        found, on = self._looked_up(keys, at)
        # A loop: how far keys stand behind their places may hang on what users hold.
        waiting = on
        while len(waiting):
            keys, at = keys.take(on), at.take(on) + 1
            more, on = self._looked_up(keys, at)
            found[waiting] = more
            waiting = waiting.take(on)
        return found

    def _looked_up(self, keys: Integers, at: Integers) -> tuple[NDArray[np.int32], Integers]:
        """What stands there, -1 if it is another key; and which keys are to be sought behind it."""
        there = self._table.take(at)
        hit = self._held.take(there) == keys
        found: NDArray[np.int32] = there | (hit.view(np.int8) - np.int8(1))
        return found, np.flatnonzero((there < self._none) & (hit < (keys >= 0)))

    def _home(self, keys: Integers) -> Integers:
        spread = of_numbers(keys) * np.uint64(0x9E3779B97F4A7C15)
        spread >>= self._shift
        return spread.view(np.int64)
