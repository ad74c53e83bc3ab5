"""A cache of the ids of short words: a hash table, whose slots keep the first word hashed to each.

Many words are looked up at a time, which is faster than Polars. A word of up to twelve bytes is one
sixteen-byte number, as in Arrow's string views: its length, its bytes and zeros. Two such words
are equal if and only if these numbers are.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

#: Word ids plus 1: 0 is the empty word, whose id is -1.
IdsPlusOne = NDArray[np.int32]
#: Words as Arrow's string views, of sixteen bytes each.
StringViews = NDArray[np.void]
_VIEW_TYPE = np.dtype("V16")

#: How many bytes a short word has at most: they fit into its view.
_LONGEST_SHORT_WORD = 12
#: How many slots the table has, and below which word id a word may be cached: frequent words tend
#: to appear early, so their ids are low.
_SLOTS, _CACHED_IDS_BELOW = 1 << 20, 1 << 20
#: How many words are looked up at a time: they stay in the processor's cache.
_WORDS_AT_ONCE = 1 << 15


def views_of(words: pl.Series) -> StringViews:
    """The words of a series as string views, without a copy."""
    array = words.to_arrow(compat_level=pl.CompatLevel.newest())
    assert array.type == pa.string_view()
    views: StringViews = np.frombuffer(array.buffers()[1], _VIEW_TYPE)
    return views[array.offset : array.offset + len(array)]


class ShortWords:
    """The hash table; a slot has the id plus one of the first word that hashed there.

    A lookup compares the word with the one stored for that id. That one is stored first, and
    never changes, so some threads may add words while others look them up.
    """

    def __init__(self) -> None:
        # The empty word, all zeros, is alone in slot 0.
        self._table = np.zeros(_SLOTS, dtype=np.int32)
        self._words = np.zeros(_CACHED_IDS_BELOW, dtype=_VIEW_TYPE)

    def ids_plus_one(self, views: StringViews) -> tuple[IdsPlusOne, NDArray[np.int64]]:
        """The id plus one of each word in the cache, and the indices of the words not in it."""
        ids_plus_one = np.empty(len(views), dtype=np.int32)
        unknown = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(views), _WORDS_AT_ONCE):
            piece = views[start : start + _WORDS_AT_ONCE]
            here = self._table.take(
                _slots_of(piece), out=ids_plus_one[start : start + _WORDS_AT_ONCE], mode="clip"
            )
            same = self._words.take(here).view(np.uint64) == piece.view(np.uint64)
            both = same.view(np.uint16) == 0x0101  # both halves of the view are equal
            unknown.append(np.flatnonzero(~both) + start)
        return ids_plus_one, np.concatenate(unknown)

    def learn(self, views: StringViews, ids_plus_one: IdsPlusOne) -> None:
        """Adds these words with their ids, if they are short and their slots are free."""
        slots = _slots_of(views)
        lengths = views.view(np.uint32)[::4]
        free = (self._table.take(slots) == 0) & (slots > 0)
        some = np.flatnonzero(
            free & (lengths <= _LONGEST_SHORT_WORD) & (ids_plus_one < _CACHED_IDS_BELOW)
        )
        ids_plus_one = ids_plus_one.take(some)
        self._words[ids_plus_one] = views.take(some)
        self._table[slots.take(some)] = ids_plus_one


def _slots_of(views: StringViews) -> NDArray[np.int64]:
    halves = views.view(np.uint64)
    spread = halves[1::2] * np.uint64(0x9E3779B97F4A7C15)
    spread ^= halves[::2]
    spread *= np.uint64(0xBF58476D1CE4E5B9)
    spread >>= np.uint64(65 - _SLOTS.bit_length())
    return spread.view(np.int64)
