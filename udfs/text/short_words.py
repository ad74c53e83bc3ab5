"""Short words that were met, by number: looked up many at a time, in place of asking Polars.

A word of up to twelve bytes is a number itself: sixteen bytes, as Arrow's string views have it, its
length, its own bytes and zeros. So two words are one where two numbers are.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
#: Sixteen bytes each.
Views = NDArray[np.void]
_VIEW = np.dtype("V16")

#: What fits into a view, in bytes.
_SHORT = 12
#: Slots of the table, and numbers whose words are kept: those that are met first are met most.
_SLOTS, _KEPT = 1 << 19, 1 << 20
#: Words that are looked up together: they stay in the processor's cache.
_PIECE = 1 << 15


def views_of(words: pl.Series) -> Views:
    """The words of a series as they lie in memory."""
    array = words.to_arrow(compat_level=pl.CompatLevel.newest())
    assert array.type == pa.string_view()
    views: Views = np.frombuffer(array.buffers()[1], _VIEW)
    return views[array.offset : array.offset + len(array)]


class ShortWords:
    """A slot has the number of the word that came there first.

    Whether a word is the one of that number is seen from the word kept for it, which is kept before
    the number comes into a slot, and never another: so threads may learn while others look.
    """

    def __init__(self) -> None:
        # Number 0 is the empty word, all zeros, and alone in slot 0.
        self._table = np.zeros(_SLOTS, dtype=np.int32)
        self._words = np.zeros(_KEPT, dtype=_VIEW)

    def numbers(self, views: Views) -> tuple[Numbers, NDArray[np.int64]]:
        """The number of each, and where they are that have none here."""
        numbers = np.empty(len(views), dtype=np.int32)
        unknown = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(views), _PIECE):
            piece = views[start : start + _PIECE]
            here = self._table.take(_slots(piece), out=numbers[start : start + _PIECE], mode="clip")
            same = self._words.take(here).view(np.uint64) == piece.view(np.uint64)
            both = same.view(np.uint16) == 0x0101  # halves
            unknown.append(np.flatnonzero(~both) + start)
        return numbers, np.concatenate(unknown)

    def learn(self, views: Views, numbers: Numbers) -> None:
        """More words: those that are short, and find their slot free."""
        slots = _slots(views)
        lengths = views.view(np.uint32)[::4]
        free = (self._table.take(slots) == 0) & (slots > 0)
        some = np.flatnonzero(free & (lengths <= _SHORT) & (numbers < _KEPT))
        numbers = numbers.take(some)
        self._words[numbers] = views.take(some)
        self._table[slots.take(some)] = numbers


def _slots(views: Views) -> NDArray[np.int64]:
    halves = views.view(np.uint64)
    spread = halves[1::2] * np.uint64(0x9E3779B97F4A7C15)
    spread ^= halves[::2]
    spread *= np.uint64(0xBF58476D1CE4E5B9)
    spread >>= np.uint64(65 - _SLOTS.bit_length())
    return spread.view(np.int64)
