"""The ladder of released n-grams: each of two or more tokens is stored by its two released parts.

Everything here depends on released sets only. A gram of level k >= 2 is (u, v): its first k - 1
tokens and its last k - 1 tokens, each by its number among the released grams of level k - 1. A pair
is stored as one integer key, u * 2^32 + v. A gram's number is the rank of its key in its level, so
it depends on the released set only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.host import Host, Lookup
from dphh.level import Level
from dphh.mechanisms.running import renamed
from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.positions import KeyIndex, indices_by_word

#: The bits of each of the two gram numbers in a pair's key.
GRAM_NUMBER_BITS = 32
#: `key & RIGHT_MASK` is the second of the two numbers.
RIGHT_MASK = np.int64(2**GRAM_NUMBER_BITS - 1)


@dataclass(frozen=True, eq=False)
class Rung:
    """The released grams of one level, ordered by number."""

    level: int
    #: The key of each gram, ascending; for words, their own numbers.
    keys: Integers
    #: Each gram's words by their numbers: (grams, level).
    words: Integers

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class Ladder:
    """The released grams so far: the words as a sorted Arrow array, and all rungs, words first. A
    gram's number is its index in its rung."""

    vocabulary: Any
    rungs: tuple[Rung, ...]

    @property
    def top(self) -> Rung:
        return self.rungs[-1]

    def valid_grams(self) -> ValidGrams:
        """V_k, the valid grams of the level above the top rung."""
        below = self.top
        if below.level == 1:  # two words overlap in nothing: each meets each
            ends_in = begins_with = np.zeros(len(below), dtype=np.int64)
        else:
            ends_in, begins_with = below.keys & RIGHT_MASK, below.keys >> GRAM_NUMBER_BITS
        overlaps = 1 + max(ends_in.max(initial=-1), begins_with.max(initial=-1))
        ends = np.bincount(ends_in, minlength=overlaps).astype(np.int64)
        begins = np.bincount(begins_with, minlength=overlaps).astype(np.int64)
        return ValidGrams(
            ending=np.argsort(ends_in, kind="stable"),
            beginning=np.argsort(begins_with, kind="stable"),
            starts_ending=np.cumsum(ends) - ends,
            starts_beginning=np.cumsum(begins) - begins,
            begins=begins,
            cumulative=np.cumsum(ends * begins),
        )

    def with_next(self, keys: Integers) -> Ladder:
        """The ladder with one more rung, of the released pairs `keys`, which must ascend."""
        left, right = keys >> GRAM_NUMBER_BITS, keys & RIGHT_MASK
        words = np.hstack([self.top.words[left], self.top.words[right, -1:]])
        return replace(self, rungs=(*self.rungs, Rung(self.top.level + 1, keys, words)))


def first_ladder(vocabulary: Any) -> Ladder:
    """The ladder of these released words, which are sorted."""
    numbers = np.arange(len(vocabulary), dtype=np.int64)
    return Ladder(vocabulary, (Rung(1, numbers, numbers.reshape(-1, 1)),))


@dataclass(frozen=True, eq=False)
class ValidGrams:
    """V_k, the valid grams of a level, counted and indexed without listing them.

    V_k is what S_{k-1} x S_1 and S_1 x S_{k-1} share: the pairs (u, v) where u without its first
    token equals v without its last. They share an overlap c, so |V_k| is the sum over overlaps of
    (grams that end in c) x (grams that begin with c).
    """

    #: Grams sorted by the overlap that they end in, and by the overlap that they begin with.
    ending: Integers
    beginning: Integers
    #: For each overlap: where both sides start in these orders, and how many grams begin with it.
    starts_ending: Integers
    starts_beginning: Integers
    begins: Integers
    #: For each overlap: how many valid grams it and all overlaps before it have.
    cumulative: Integers

    def __len__(self) -> int:
        return int(self.cumulative[-1]) if len(self.cumulative) else 0

    def keys(self, indices: Integers) -> Integers:
        """The keys of the valid grams at these indices, from 0 to len - 1."""
        overlap = np.searchsorted(self.cumulative, indices, side="right")
        within = indices - np.where(overlap > 0, self.cumulative[overlap - 1], 0)
        left = self.ending[self.starts_ending[overlap] + within // self.begins[overlap]]
        right = self.beginning[self.starts_beginning[overlap] + within % self.begins[overlap]]
        return (left << GRAM_NUMBER_BITS) | right


def texts_of_grams(rung: Rung, vocabulary: Any, joiner: str) -> tuple[Any, Any]:
    """The grams as text: Arrow arrays of their items (tokens joined) and of their tokens."""
    flat = vocabulary.take(pa.array(rung.words.ravel()))
    offsets = pa.array(np.arange(len(rung) + 1, dtype=np.int32) * np.int32(rung.level))
    tokens = pa.ListArray.from_arrays(offsets, flat)
    return pc.binary_join(tokens, joiner), tokens


def number_positions(host: Host, ladder: Ladder) -> None:
    """Make the table `numbered`: where in users' texts the grams of the ladder's top rung are. It
    follows from `users` or, above words, from `positions` of the rung's level."""
    if ladder.top.level == 1:
        host.run("numbers_of_words", released=Lookup(indices_by_word(ladder.vocabulary)))
    else:
        host.run("numbers_of_grams", released=Lookup(KeyIndex(ladder.top.keys)))
    # numbered (block, user_hashes, lengths, grams)


def add_finds(host: Host) -> None:
    """Add to each user's finds, in the table `purses`, the grams in `numbered` that they hold."""
    host.run("finds")
    host.rename_replacing("next_purses", "purses")


def update_positions(
    host: Host, ladder: Ladder, *, keeps_users: bool = False, keeps_levels: bool = False
) -> None:
    """Make of `numbered` the table `positions` of the level above the ladder: where in users' texts
    its valid grams are.

    `keeps_users`: what is found will be counted in `users`. `keeps_levels`: the table of each level
    from 2 on stays, as positions_2 and so on, for a later round of that level.
    """
    if ladder.top.level == 1 and not keeps_users:
        host.drop("users")
    if ladder.top.level > 1 and keeps_levels:
        host.rename_replacing("positions", f"positions_{ladder.top.level}")
    host.run("valid_grams")
    # next_positions (block, user_hashes, lengths, keys)
    host.rename_replacing("next_positions", "positions")
    host.drop("numbered")


def positions_steps(level: Level, *between: str) -> tuple[str, ...]:
    """What `number_positions` and `update_positions` ask for this level, and others in between."""
    numbers = f"numbers_of_{'words' if level.level == 2 else 'grams'}"
    return numbers, *between, "valid_grams", renamed("next_positions", "positions")
