"""The vocabulary of one run: numbers its distinct words, so that lists of words become word ids.

A word id depends on when the word first appeared, so no draw, choice or release may depend on it:
keys are chosen and noised by their spelling (`hashes`, `spelled`).

While texts are read it is open: it finds any word's id, in about 110 bytes a word. Closed, it has
the spellings alone, in a quarter of that.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.udfs.arrays import Hashes, hash_texts

Ids = NDArray[np.int32]
#: How many words are spelled at a time to be hashed; all at once would double their memory.
SPELLED_AT_ONCE = 1 << 18


class Vocabulary:
    """Words and their ids, for several threads: Polars categories of a name unique to the run."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._count = 0
        self._lock = Lock()
        #: The spellings of a closed vocabulary, by word id.
        self._closed: Any = None
        self._start_new_categories()

    def _start_new_categories(self) -> None:
        self._kind: Any = pl.Categorical(pl.Categories.random())
        # Polars forgets categories that no column uses. "", which is no word, comes first, so that
        # it gets the id -1 and the words get ids from 0.
        self._held: Any = pl.Series([""], dtype=self._kind)

    def open(self) -> None:
        """Prepares to find many words' ids; words keep the ids that they have. A new vocabulary is
        open."""
        if self._closed is None:
            return
        closed, self._closed = self._closed, None
        self._start_new_categories()
        for start in range(0, len(closed), SPELLED_AT_ONCE):
            self.ids(closed.slice(start, SPELLED_AT_ONCE))

    def close(self) -> None:
        """Frees the memory that finding ids takes; meanwhile no other thread may ask for ids."""
        if self._closed is not None:
            return
        pieces = [pa.array([], pa.large_string())]
        for start in range(0, self._count, SPELLED_AT_ONCE):
            some = np.arange(start, min(start + SPELLED_AT_ONCE, self._count))
            pieces.append(self._large_spellings(some))
        self._kind = self._held = None
        self._closed = pa.concat_arrays(pieces)

    def take_words(self, other: Vocabulary) -> None:
        """Take the words of another closed vocabulary, with their ids, in place of its own."""
        self._hashes, self._count, self._closed = other.hashes(), len(other), other._closed
        self._kind = self._held = None

    def ids(self, words: Any) -> Ids:
        """The word id of each word of an Arrow array; -1 for an empty word and for NULL."""
        # NULLs are replaced in Arrow; a Polars series would need a query for it.
        there = words.cast(pa.large_string())
        if there.null_count:  # without any, it would copy all words
            there = there.fill_null("")
        if self._closed is not None:
            return self._ids_when_closed(there)
        # Of a batch's equal words, Polars sees one: its own lookup takes longer than Arrow's.
        encoded = there.dictionary_encode()
        spelled = pl.Series(encoded.dictionary, dtype=pl.String)
        ids = spelled.cast(self._kind).to_physical().to_numpy().astype(np.int32) - np.int32(1)
        with self._lock:
            self._count = max(self._count, int(ids.max(initial=-1)) + 1)
        of_words: Ids = ids.take(encoded.indices.to_numpy())
        return of_words

    def _ids_when_closed(self, words: Any) -> Ids:
        """The ids of these words, found by the hashes of all spellings; new words get new ids."""
        distinct = words.filter(pc.not_equal(words, "")).unique()
        alike = self._ids_with_hashes(np.sort(hash_texts(distinct)))
        found = pc.index_in(distinct, value_set=self._closed.take(alike))
        new = distinct.filter(pc.is_null(found))
        if len(new):
            alike = np.append(alike, np.arange(self._count, self._count + len(new)))
            self._closed, self._count = pa.concat_arrays([self._closed, new]), len(self) + len(new)
        at = pc.index_in(words, value_set=self._closed.take(alike)).fill_null(len(alike))
        ids: Ids = np.append(alike, -1).astype(np.int32).take(at.to_numpy())
        return ids

    def _ids_with_hashes(self, sought: Hashes) -> NDArray[np.int64]:
        """The ids of all words with these hashes, in ascending order: two may have the same
        hash."""
        known, ids = self.hashes()[:-1], [np.empty(0, dtype=np.int64)]
        for start in range(0, len(known) if len(sought) else 0, SPELLED_AT_ONCE):
            piece = known[start : start + SPELLED_AT_ONCE]
            there = sought.take(np.searchsorted(sought, piece), mode="clip") == piece
            ids.append(np.flatnonzero(there) + start)
        return np.concatenate(ids)

    def spellings(self, ids: Any) -> pa.Array:
        """The words with these word ids, as an Arrow array."""
        return self._large_spellings(ids).cast(pa.string())

    def _large_spellings(self, ids: Any) -> pa.Array:
        """The words with these word ids, as an Arrow array that may be larger than 2 GiB."""
        if self._closed is not None:
            return self._closed.take(pa.array(ids))
        numbers = pl.Series(np.asarray(ids) + 1, dtype=pl.UInt32)
        return numbers.cat.to(self._kind).cast(pl.String).to_arrow().cast(pa.large_string())

    def __len__(self) -> int:
        return self._count

    def hashes(self) -> Hashes:
        """The hash of each word's spelling, by word id; one more element for id -1."""
        with self._lock:
            known, count = max(len(self._hashes) - 1, 0), len(self)
            if known < count or not len(self._hashes):
                hashes = np.zeros(count + 1, dtype=np.uint64)
                hashes[:known] = self._hashes[:known]
                for start in range(known, count, SPELLED_AT_ONCE):
                    missing = np.arange(start, min(start + SPELLED_AT_ONCE, count))
                    hashes[missing] = hash_texts(self._large_spellings(missing))
                self._hashes = hashes
            return self._hashes
