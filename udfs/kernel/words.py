"""The words that word ids stand for: in one process the run's vocabulary, on Spark the list of
words that a block has. And public values of words, by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.udfs.kernel.lists import one_array
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.text.hashes import Hashes, hash_texts


class WordsWithIds(Protocol):
    """Words with the ids 0, 1, 2, ... A word's id depends on other users, so no result may depend
    on it."""

    def __len__(self) -> int: ...

    def ids(self, words: Any) -> NDArray[np.int32]:
        """The id of each word of an Arrow array; -1 for an empty text or NULL."""

    def spellings(self, ids: Any) -> pa.Array:
        """The words with these ids."""

    def hashes(self) -> Hashes:
        """The hash of each word's spelling, by its id; one more element for id -1."""


@dataclass(frozen=True, eq=False)
class WordsOfBlock:
    """The distinct words of a block's users. The block's word ids are indices of `words`."""

    words: Any

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Any) -> NDArray[np.int32]:
        found = pc.index_in(words.cast(self.words.type), value_set=self.words).fill_null(-1)
        ids: NDArray[np.int32] = found.to_numpy()
        return ids

    def spellings(self, ids: Any) -> pa.Array:
        return self.words.take(pa.array(ids))

    def hashes(self) -> Hashes:
        return np.append(hash_texts(self.words), np.uint64(0))


@dataclass(frozen=True, eq=False)
class ValuesByWord:
    """The value of each of `words`, and the value of every other word."""

    words: Any
    values: NDArray[Any]
    other_value: int

    def by_id(self, words_with_ids: WordsWithIds) -> NDArray[Any]:
        """The values by word id; the last element is for id -1, where no word stands."""
        ids = words_with_ids.ids(self.words)
        found = np.full(len(words_with_ids) + 1, self.other_value, dtype=self.values.dtype)
        there = ids >= 0
        found[ids[there]] = self.values[there]
        found[-1] = -1
        return found


def values_by_key(table: Any, words_with_ids: WordsWithIds | None) -> Any:
    """The values of a table (key, value), as functions look them up: an array by word id, if its
    keys are word ids or spellings; else, for keys of grams, an index of them and their values."""
    keys, values = table.column("key"), table.column("value").to_numpy()
    if words_with_ids is None:
        return KeyIndex(keys.to_numpy()), values
    if not pa.types.is_integer(keys.type):
        return ValuesByWord(one_array(keys), values, 0).by_id(words_with_ids)
    by_id = np.zeros(len(words_with_ids) + 1, dtype=np.int64)
    by_id[keys.to_numpy()] = values
    by_id[-1] = -1
    return by_id


def indices_by_word(words: Any) -> ValuesByWord:
    """By word, its index in this Arrow array of distinct words; -1 for every other word."""
    return ValuesByWord(words, np.arange(len(words), dtype=np.int32), -1)
