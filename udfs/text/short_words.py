"""A cache of the numbers of short words, read many words at a time, which is faster than Polars.

A word of up to twelve bytes is one sixteen-byte number, as in Arrow's string views: its length, its
bytes and zeros. Two such words are equal if and only if these numbers are.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

#: Word ids plus 1: 0 is the empty word.
Numbers = NDArray[np.int32]
#: Arrow's string views, of sixteen bytes each.
Views = NDArray[np.void]
_VIEW_TYPE = np.dtype("V16")

#: How many bytes a short word has at most: they fit into its view.
_LONGEST_SHORT_WORD = 12
#: How many slots the table has, and below which number a word may be cached: frequent words tend to
#: appear early.
_SLOTS, _CACHEABLE = 1 << 20, 1 << 20
#: How many words are looked up at a time: they stay in the processor's cache.
_WORDS_AT_ONCE = 1 << 15


def views_of(words: pl.Series) -> Views:
    """The words of a series as string views, without a copy."""
    array = words.to_arrow(compat_level=pl.CompatLevel.newest())
    assert array.type == pa.string_view()
    views: Views = np.frombuffer(array.buffers()[1], _VIEW_TYPE)
    return views[array.offset : array.offset + len(array)]


class ShortWords:
    """A hash table in which a slot has the number of the first word that hashed there.

    A lookup compares the word with the one stored for that number. That one is stored first, and
    never changes, so some threads may add words while others look them up.
    """

    def __init__(self) -> None:
        # Number 0 is the empty word, all zeros, and alone in slot 0.
        self._table = np.zeros(_SLOTS, dtype=np.int32)
        self._words = np.zeros(_CACHEABLE, dtype=_VIEW_TYPE)

    def numbers(self, views: Views) -> tuple[Numbers, NDArray[np.int64]]:
        """The number of each word, and the indices of the words that are not in the cache."""
        numbers = np.empty(len(views), dtype=np.int32)
        unknown = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(views), _WORDS_AT_ONCE):
            piece = views[start : start + _WORDS_AT_ONCE]
            here = self._table.take(
                _slots_of(piece), out=numbers[start : start + _WORDS_AT_ONCE], mode="clip"
            )
            same = self._words.take(here).view(np.uint64) == piece.view(np.uint64)
            both = same.view(np.uint16) == 0x0101  # both halves of the view are equal
            unknown.append(np.flatnonzero(~both) + start)
        return numbers, np.concatenate(unknown)

    def learn(self, views: Views, numbers: Numbers) -> None:
        """Add these words with their numbers, if they are short and their slots are free."""
        slots = _slots_of(views)
        lengths = views.view(np.uint32)[::4]
        free = (self._table.take(slots) == 0) & (slots > 0)
        some = np.flatnonzero(free & (lengths <= _LONGEST_SHORT_WORD) & (numbers < _CACHEABLE))
        numbers = numbers.take(some)
        self._words[numbers] = views.take(some)
        self._table[slots.take(some)] = numbers


def _slots_of(views: Views) -> NDArray[np.int64]:
    halves = views.view(np.uint64)
    spread = halves[1::2] * np.uint64(0x9E3779B97F4A7C15)
    spread ^= halves[::2]
    spread *= np.uint64(0xBF58476D1CE4E5B9)
    spread >>= np.uint64(65 - _SLOTS.bit_length())
    return spread.view(np.int64)
