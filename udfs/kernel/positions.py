"""The ladder's positions: which released gram starts at which position of the users' texts.

Neighbours in an array of positions are neighbours in a text. -1 marks a position where no released
gram starts, and the end of each text, so that no pair spans two texts or two users.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.udfs.text.hashes import Integers, number_bits

#: How many positions are processed at a time: they stay in the processor's cache.
PIECE_SIZE = 1 << 16
#: Bits of each half of a pair.
_BITS_OF_HALF = np.int64(32)
#: A hash table gets up to four times the slots that it needs, for fewer collisions, as long as it
#: has at most 2^17: a table of that size still fits into the processor's cache.
_LOG2_SLOTS_IN_CACHE = 17


def positions_of_texts(lengths: Integers, ids: Any, ends: bool = True) -> tuple[Integers, Any]:
    """How many positions each text takes, and the word id at each; with `ends`, -1 ends each text.

    `lengths` says how many tokens each text has, and `ids` are their word ids. An id of -1 is no
    token: it is removed, and the tokens on its two sides become neighbours.
    """
    there = ids >= 0
    if not there.all():
        before = np.concatenate([[0], np.cumsum(there)])
        lengths = np.diff(before[np.concatenate([[0], np.cumsum(lengths)])])
        ids = ids[there]
    if not ends:
        return lengths, ids
    positions = np.full(len(ids) + len(lengths), -1, dtype=ids.dtype)
    text_ends = np.cumsum(lengths + 1) - 1
    words = np.ones(len(positions), dtype=np.bool_)
    words[text_ends] = False
    positions[words] = ids
    return lengths + 1, positions


def look_up_ids(by_id: NDArray[Any], ids: Any) -> NDArray[Any]:
    """The element of `by_id` for each word id; the last element for id -1."""
    found = np.empty(len(ids), dtype=by_id.dtype)
    for start in range(0, len(ids), PIECE_SIZE):
        piece = found[start : start + PIECE_SIZE]
        by_id.take(ids[start : start + PIECE_SIZE], out=piece, mode="wrap")
    return found


def candidate_pairs(grams: Any, ends: Any, ahead: int) -> Integers:
    """The pair that begins at each position, left * 2^32 + right: the number there in `grams`, and
    the number `ahead` positions later in `ends`, which has last parts; -1 if either is -1.

    DPNE at level k: the grams whose pieces were released. Pruning "both": the first and the last
    k - 1 tokens, which are two released grams at neighbouring positions. Pruning "single": the
    first k - 1 tokens as a gram, and the last as a word, k - 1 positions ahead.
    """
    keys = np.full(len(grams), -1, dtype=np.int64)
    for start in range(0, len(grams) - ahead, PIECE_SIZE):
        stop = min(start + PIECE_SIZE, len(grams) - ahead)
        keys[start:stop] = _pairs_of_numbers(grams[start:stop], ends[start + ahead : stop + ahead])
    return keys


def _pairs_of_numbers(left: Any, right: Any) -> Integers:
    pairs: Integers = left.astype(np.int64)
    pairs <<= _BITS_OF_HALF
    pairs |= right
    # The pair is negative if either half is: a right half of -1 sets all bits.
    return np.maximum(pairs, -1, out=pairs)


def pairs_at_kept_positions(lengths: Integers, grams: Any) -> tuple[Integers, Integers]:
    """How many positions each user keeps, and the key of the pair that begins at each. A pair is a
    gram and the next one; positions that belong to no pair are dropped. `lengths`: how many
    positions each user has.

    One -1 stays after each run of kept positions, so that neighbours stay neighbours. What is
    dropped depends on the user's own texts and on releases, so it changes no user's candidates.
    """
    matter = np.zeros(len(grams), dtype=np.bool_)
    for start in range(0, len(grams) - 1, PIECE_SIZE):
        right = grams[start + 1 : start + 1 + PIECE_SIZE]
        begins = (grams[start : start + len(right)] | right) >= 0
        matter[start : start + len(right)] |= begins
        matter[start + 1 : start + 1 + len(right)] |= begins
    keys = np.empty(np.count_nonzero(matter), dtype=np.int64)
    for rows, there in _kept_positions_by_piece(matter):
        keys[there] = _pairs_of_numbers(grams.take(rows), grams.take(rows + 1, mode="clip"))
    if matter[-1:].any():
        keys[-1] = -1  # no position follows the last one
    return _kept_by_user(lengths, matter), keys


def _kept_by_user(lengths: Integers, keep: NDArray[np.bool_]) -> Integers:
    """How many of each user's positions are kept."""
    kept_before = np.zeros(len(keep) + 1, dtype=np.int32)
    np.cumsum(keep, dtype=np.int32, out=kept_before[1:])
    until = kept_before.take(np.cumsum(lengths))
    return np.diff(until, prepend=np.int32(0)).astype(lengths.dtype)


def _kept_positions_by_piece(keep: NDArray[np.bool_]) -> Iterator[tuple[Integers, slice]]:
    """For each piece: the indices of the positions that are kept, and their slice of the result."""
    done = 0
    for start in range(0, len(keep), PIECE_SIZE):
        rows = np.flatnonzero(keep[start : start + PIECE_SIZE])
        rows += start
        yield rows, slice(done, done + len(rows))
        done += len(rows)


class KeyIndex:
    """An index of distinct keys, such as a level's: the place of a key among them, or -1.

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
        at = self._first_slot(self.keys)
        while len(waiting):
            free = self._table[at] == self._none
            self._table[at[free]] = waiting[free]  # of several for one slot the last gets it
            left = self._table[at] != waiting
            waiting, at = waiting[left], at[left] + 1

    def indices(self, keys: Integers) -> NDArray[np.int32]:
        found = np.empty(len(keys), dtype=np.int32)
        for start in range(0, len(keys), PIECE_SIZE):
            piece = keys[start : start + PIECE_SIZE]
            found_of_piece = self._search_from_slot(piece, self._first_slot(piece))
            found[start : start + PIECE_SIZE] = found_of_piece
        return found

    def _search_from_slot(self, keys: Integers, at: Integers) -> NDArray[np.int32]:
        found, on = self._look_up_slot(keys, at)
        # A loop, not recursion: how far a key is from its slot may depend on users' data.
        waiting = on
        while len(waiting):
            keys, at = keys.take(on), at.take(on) + 1
            more, on = self._look_up_slot(keys, at)
            found[waiting] = more
            waiting = waiting.take(on)
        return found

    def _look_up_slot(self, keys: Integers, at: Integers) -> tuple[NDArray[np.int32], Integers]:
        """The index in each key's slot, -1 if another's; and the keys to seek in the next slot."""
        there = self._table.take(at)
        hit = self._held.take(there) == keys
        found: NDArray[np.int32] = there | (hit.view(np.int8) - np.int8(1))
        return found, np.flatnonzero((there < self._none) & (hit < (keys >= 0)))

    def _first_slot(self, keys: Integers) -> Integers:
        spread = number_bits(keys) * np.uint64(0x9E3779B97F4A7C15)
        spread >>= self._shift
        return spread.view(np.int64)
