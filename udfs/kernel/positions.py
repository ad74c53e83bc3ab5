"""The ladder's positions: which released gram starts at which position of the users' texts.

Neighbours in an array of positions are neighbours in a text. -1 marks a position where no released
gram starts, and the end of each text, so that no pair spans two texts or two users. Among word ids
any negative number marks a text's end.

What functions look up at positions is here too: keys of grams, and the words that word ids stand
for (in one process the run's vocabulary, on Spark the list of words that a block has), with public
values of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.udfs.arrays import (
    Hashes,
    Integers,
    hash_texts,
    lengths_of,
    lists_of,
    one_array,
    sums_of_runs,
    unmixed_hashes,
    values_of,
)

#: How many positions are processed at a time: they stay in the processor's cache.
PIECE_SIZE = 1 << 16
#: A hash table gets up to four times the slots that it needs, for fewer collisions, as long as it
#: has at most 2^17: a table of that size still fits into the processor's cache.
_LOG2_SLOTS_IN_CACHE = 17


def positions_of_texts(
    lengths: Integers, ids: Any, marks_ends: bool = True
) -> tuple[Integers, Any]:
    """How many positions each text takes, and the word id at each. With `marks_ends` each text has
    one more position, after its last word, with -1.

    `lengths` says how many tokens each text has, and `ids` are their word ids. An id of -1 is no
    token: it is removed, and the tokens on its two sides become neighbours.
    """
    there = ids >= 0
    if not there.all():
        lengths, ids = sums_of_runs(lengths, there), ids[there]
    if not marks_ends:
        return lengths, ids
    positions = np.full(len(ids) + len(lengths), -1, dtype=ids.dtype)
    text_ends = np.cumsum(lengths + 1) - 1
    words = np.ones(len(positions), dtype=np.bool_)
    words[text_ends] = False
    positions[words] = ids
    return lengths + 1, positions


def pairs_of_neighbours(lengths: Integers, grams: Any) -> tuple[Integers, Integers]:
    """The pairs of a gram and the gram at the next position, without the positions that belong to
    no pair. `lengths` says how many positions each user has. Returns how many positions each user
    keeps, and the key of the pair that begins at each of them.

    At level k, these are a gram's first and last k - 1 tokens. One -1
    stays after each run of kept positions, so that neighbours stay neighbours. What is dropped
    depends on the user's own texts and on releases, so it changes no user's candidates.
    """
    keep = np.zeros(len(grams), dtype=np.bool_)
    begins = (grams[:-1] | grams[1:]) >= 0
    keep[:-1] |= begins
    keep[1:] |= begins
    kept = np.flatnonzero(keep)
    keys: Integers = grams.take(kept).astype(np.int64)
    keys <<= np.int64(32)
    keys |= grams.take(kept + 1, mode="clip")
    # A pair is negative if either half is: a right half of -1 sets all bits.
    np.maximum(keys, -1, out=keys)
    if keep[-1:].any():
        keys[-1] = -1  # no position follows the last one
    return sums_of_runs(lengths, keep).astype(lengths.dtype), keys


class KeyIndex:
    """Finds keys among distinct ones, such as a level's: each key's index among them, or -1.

    A hash table with open addressing (linear probing), at most half full, read many keys at a time.
    """

    def __init__(self, keys: Any) -> None:
        self.keys = np.asarray(keys, dtype=np.int64)
        self._none = len(self.keys)
        self._held = np.append(self.keys, -2)  # -2 stands in free slots: neither a key nor -1
        bits = (2 * len(self.keys)).bit_length() + 1
        bits = max(4, bits, min(bits + 2, _LOG2_SLOTS_IN_CACHE))
        self._shift = np.uint64(64 - bits)
        self._table = np.full((1 << bits) + len(self.keys) + 1, self._none, dtype=np.int32)
        waiting = np.arange(len(self.keys), dtype=np.int32)
        slots = self._first_slots(self.keys)
        while len(waiting):
            free = self._table[slots] == self._none
            self._table[slots[free]] = waiting[free]  # the last of several for one slot gets it
            left = self._table[slots] != waiting
            waiting, slots = waiting[left], slots[left] + 1

    def indices(self, keys: Integers) -> NDArray[np.int32]:
        found = np.empty(len(keys), dtype=np.int32)
        for start in range(0, len(keys), PIECE_SIZE):
            piece = slice(start, start + PIECE_SIZE)
            found[piece] = self._indices_of_piece(keys[piece])
        return found

    def _indices_of_piece(self, keys: Integers) -> NDArray[np.int32]:
        slots = self._first_slots(keys)
        found, on = self._look_up_slots(keys, slots)
        # A loop, not recursion: how far a key is from its slot may depend on users' data.
        waiting = on
        while len(waiting):
            keys, slots = keys.take(on), slots.take(on) + 1
            more, on = self._look_up_slots(keys, slots)
            found[waiting] = more
            waiting = waiting.take(on)
        return found

    def _look_up_slots(self, keys: Integers, slots: Integers) -> tuple[NDArray[np.int32], Integers]:
        """For each key the index that its slot has, or -1 if the slot has another key; and which
        keys (as indices of `keys`) must be sought in the next slot."""
        there = self._table.take(slots)
        hit = self._held.take(there) == keys
        found: NDArray[np.int32] = there | (hit.view(np.int8) - np.int8(1))
        return found, np.flatnonzero((there < self._none) & (hit < (keys >= 0)))

    def _first_slots(self, keys: Integers) -> Integers:
        spread = unmixed_hashes(keys) * np.uint64(0x9E3779B97F4A7C15)
        spread >>= self._shift
        return spread.view(np.int64)


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


def values_of_ids(values_by_id: NDArray[Any], ids: Any) -> NDArray[Any]:
    """The values of these word ids; at a text's end the last element, which is for no word."""
    values: NDArray[Any] = values_by_id.take(np.maximum(ids, -1), mode="wrap")
    return values


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


def numbers_of_released_words(
    ids: Any, words: WordsWithIds, released: NDArray[np.int32]
) -> pa.Array:
    """`dphh_numbers_of_words(ids, words, released)`: for each word id of `ids`, its `released[id]`,
    a word's number among the released words or -1. The engine makes it by word id, from `words`."""
    lists = one_array(ids)
    return lists_of(lengths_of(lists), values_of_ids(released, values_of(lists)))


def numbers_of_released_grams(keys: Any, released: KeyIndex) -> pa.Array:
    """`dphh_numbers_of_grams(keys, released)`: at each position the number of the gram among the
    released ones, or -1."""
    lists = one_array(keys)
    return lists_of(lengths_of(lists), released.indices(values_of(lists)))


def pairs_of_rows(lengths: Any, grams: Any) -> pa.Array:
    """`dphh_pairs(lengths, grams)`: how many positions each user has, and the key of the pair that
    begins at each position: the gram there and the gram at the next one. Positions that belong to
    no pair are removed."""
    users = one_array(lengths)
    kept, keys = pairs_of_neighbours(values_of(users), values_of(one_array(grams)))
    counts = lengths_of(users)
    found = lists_of(counts, kept), lists_of(sums_of_runs(counts, kept), keys)
    return pa.StructArray.from_arrays(found, ["lengths", "keys"])
