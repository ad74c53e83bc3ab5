"""The vocabulary of one run: numbers its distinct words, so that lists of words become word ids.

A word id depends on when the word first appeared, so no draw, choice or release may depend on it:
keys are chosen and noised by their spelling (`hashes`, `spelled`).
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.text.hashes import Words, of_spellings
from dphh.udfs.text.short_words import ShortWords, views_of

Ids = NDArray[np.int32]
#: For fewer words than this at a time, the cache is not used.
FEW = 1 << 13
#: How many words are numbered at a time: what the first of a large batch teach the cache, the
#: others find there.
NUMBERED = 1 << 17
#: How many words are spelled at a time to be hashed; all at once would double their memory.
SPELLED = 1 << 18


class Vocabulary:
    """An exact mapping, shared by threads: Polars categories with a name unique to the run."""

    def __init__(self) -> None:
        self._kind = pl.Categorical(pl.Categories.random())
        # Polars forgets categories that no column uses. "", which is no word, comes first, so that
        # it gets the id -1 and the words get ids from 0.
        self._held = pl.Series([""], dtype=self._kind)
        self._hashes: Words = np.empty(0, dtype=np.uint64)
        self._count, self._met = 0, 0
        self._lock = Lock()

    @cached_property
    def _short(self) -> ShortWords:
        # Its tables take 20 MB, which a small corpus never needs. Threads may each make one at
        # first: what one of them has learnt is then asked of Polars again.
        return ShortWords()

    def ids(self, words: Any) -> Ids:
        """The word id of each word of an Arrow array; -1 for an empty word and for NULL."""
        # NULLs are replaced in Arrow; a Polars series would need a query for it. So are strings by
        # string views, which Polars keeps as they are: Arrow releases Python's lock for it.
        there = words.cast(pa.large_string()).fill_null("") if words.null_count else words
        spelled = pl.Series(there.cast(pa.string_view()), dtype=pl.String)
        numbers = np.empty(len(words), dtype=np.int32)
        for start in range(0, len(words), NUMBERED):
            numbers[start : start + NUMBERED] = self._numbers(spelled[start : start + NUMBERED])
        numbers -= np.int32(1)
        return numbers

    def _numbers(self, spelled: pl.Series) -> Ids:
        most_are_new = 2 * self._count >= self._met  # whole items may all be different
        if most_are_new or len(spelled) < FEW:
            numbers = self._ids_of_spellings(spelled)
        else:
            views = views_of(spelled)
            numbers, unknown = self._short.numbers(views)
            if len(unknown):
                others = self._ids_of_spellings(spelled[unknown])
                self._short.learn(views.take(unknown), others)
                numbers[unknown] = others
        with self._lock:
            self._met += len(numbers)
        return numbers

    def _ids_of_spellings(self, spelled: pl.Series) -> Ids:
        numbers = spelled.cast(self._kind).to_physical().to_numpy().astype(np.int32)
        with self._lock:
            self._count = max(self._count, int(numbers.max(initial=0)))
        return numbers

    def spelled(self, ids: Any) -> pa.Array:
        """The words with these word ids, as an Arrow array."""
        numbers = pl.Series(np.asarray(ids) + 1, dtype=pl.UInt32)
        return numbers.cat.to(self._kind).cast(pl.String).to_arrow().cast(pa.string())

    def __len__(self) -> int:
        return self._count

    def hashes(self) -> Words:
        """The hash of each word's spelling, by word id; one more element for id -1."""
        with self._lock:
            known, count = max(len(self._hashes) - 1, 0), len(self)
            if known < count or not len(self._hashes):
                hashes = np.zeros(count + 1, dtype=np.uint64)
                hashes[:known] = self._hashes[:known]
                for start in range(known, count, SPELLED):
                    missing = np.arange(start, min(start + SPELLED, count))
                    hashes[missing] = of_spellings(self.spelled(missing))
                self._hashes = hashes
            return self._hashes
