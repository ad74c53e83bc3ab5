"""The distinct words of one run, numbered: lists of words become lists of integers, once.

A word's number says when it was first met, so nothing that is drawn, kept or released may hang on
it: where keys are chosen or noised, the spelling speaks (`hashes`, `words`).
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.text.hashes import Words, of_spellings
from dphh.udfs.text.short_words import ShortWords, views_of

Codes = NDArray[np.int32]
#: Of fewer words at a time, Polars is asked for all of them.
FEW = 1 << 13
#: Words that are spelled at a time, to be hashed: all at once would take what they do again.
SPELLED = 1 << 18


class Vocabulary:
    """Exact, and shared by threads: Polars' own categories, of a name that no other run has."""

    def __init__(self) -> None:
        self._kind = pl.Categorical(pl.Categories.random())
        # Polars forgets the words of categories that no column holds; and "", which is no word,
        # comes first, so that all others are numbered from 0 where it is -1.
        self._held = pl.Series([""], dtype=self._kind)
        self._short = ShortWords()
        self._hashes: Words = np.empty(0, dtype=np.uint64)
        self._count, self._met = 0, 0
        self._lock = Lock()

    def codes(self, words: Any) -> Codes:
        """The number of each word of an Arrow array; -1 for an empty one and for NULL."""
        # NULLs go in Arrow: on a series of Polars it would be a query of its own.
        there = words.cast(pa.large_string()).fill_null("") if words.null_count else words
        spelled = pl.Series(there, dtype=pl.String)
        most_are_new = 2 * self._count >= self._met  # as whole items may be
        if most_are_new or len(words) < FEW:
            numbers = self._numbers(spelled)
        else:
            views = views_of(spelled)
            numbers, unknown = self._short.numbers(views)
            if len(unknown):
                others = self._numbers(spelled[unknown])
                self._short.learn(views.take(unknown), others)
                numbers[unknown] = others
        with self._lock:
            self._met += len(numbers)
        numbers -= np.int32(1)
        return numbers

    def _numbers(self, spelled: pl.Series) -> Codes:
        numbers = spelled.cast(self._kind).to_physical().to_numpy().astype(np.int32)
        with self._lock:
            self._count = max(self._count, int(numbers.max(initial=0)))
        return numbers

    def spelled(self, codes: Any) -> pa.Array:
        """The words of these numbers, as an Arrow array."""
        numbers = pl.Series(np.asarray(codes) + 1, dtype=pl.UInt32)
        return numbers.cat.to(self._kind).cast(pl.String).to_arrow().cast(pa.string())

    def __len__(self) -> int:
        return self._count

    def hashes(self) -> Words:
        """A hash of each word's spelling, once a distinct word; one more for number -1."""
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
