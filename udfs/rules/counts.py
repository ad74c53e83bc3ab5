"""What a user adds to the counts of n public keys.

A key has a factor f, a public integer: 1, or, of a list, more the fewer users are thought to hold
the key, since noise is then 1 / f of what it would be. One user is f g units of the grid at a key,
with g = 2^bits. A user has a cap, which the square of the user's L2 norm is never above, in
integers: K g^2 with K = `max_items`, or a cap of one's own of at least as much (what earlier rounds
left of a user's purse). Let m be the sum of f^2 over the keys that a user holds: how many they are,
where all factors are 1. A user with m g^2 at most the cap adds f g to each. A user of more is
bounded: adds f w to each, with w < g, and

    e = ceil(S (g - w) / g),   S = floor(g sqrt(K)),

to a loss, one more coordinate, which says what bounding removed from each of the user's keys, in
units of 1/S of a user. This is the same part of a user at each key, because weights are whole
multiples of factors. w is the largest integer with m w^2 + e^2 <= cap. There is one, as w = 0 gives
e = S, whose square no cap is below. With the cap K g^2, w is about 2 K g / (m + K).

Where each item is counted in several groups, each group has a loss, for users who hold keys of this
group alone, and a last one is for users of several groups. So a key has lost no more than its
group's loss and the last one say. If K is at least the sum of all keys' f^2, nobody is bounded, and
there are no losses.

Given sequences are found in texts by the tree of their prefixes, whose nodes at depth k are the
distinct beginnings of k tokens, numbered. From each position of a text the search walks down the
tree, one step for each word: a step looks up (node, next word). So each sequence is found wherever
it starts. A text ends with a negative number, which is no word, so no sequence spans two texts.
With `beginnings` (for `trie`) the search starts at the first position only, and a text's end is a
word of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.arrays import (
    Integers,
    all_in_first_row,
    lengths_of,
    lists_of,
    one_array,
    sums_of_runs,
    values_of,
)
from dphh.udfs.kernel.contributions import distinct_of_users
from dphh.udfs.kernel.positions import KeyIndex, WordsWithIds, indices_by_word, values_of_ids
from dphh.udfs.rules.weights import floor_roots

#: The token that stands for a text's end, where the end counts as a token. No other token is empty.
END_OF_TEXT = ""


class GivenGrams:
    """Given sequences to find in texts: distinct, of a token or more; counted in `groups` groups.

    A text holds the sequences that occur in it. With `beginnings`, it holds those that it begins
    with; a sequence whose last token is `END_OF_TEXT` must be the whole text.
    """

    def __init__(
        self, sequences: Sequence[Sequence[str]], groups: int, *, beginnings: bool
    ) -> None:
        self.groups = groups
        self.beginnings = beginnings
        #: The different tokens, sorted.
        self.words = sorted({word for sequence in sequences for word in sequence})
        number = {word: position for position, word in enumerate(self.words)}
        self._end = number.get(END_OF_TEXT, -1)
        #: For each length: an index of the steps to the prefixes of this length, and the number of
        #: the sequence that each prefix is, or -1. A step is a number: (number of the prefix that
        #: is one word shorter) * (how many words there are) + (number of the last word).
        self._steps: list[tuple[KeyIndex, Integers]] = []
        at = [0] * len(sequences)  # the number of each sequence's prefix of this length
        for depth in range(1, max(map(len, sequences), default=0) + 1):
            prefixes: dict[int, int] = {}
            ends: dict[int, int] = {}
            for position, sequence in enumerate(sequences):
                if len(sequence) < depth:
                    continue
                step = at[position] * len(self.words) + number[sequence[depth - 1]]
                at[position] = prefixes.setdefault(step, len(prefixes))
                if len(sequence) == depth:
                    ends[at[position]] = position
            wholes = np.array([ends.get(node, -1) for node in range(len(prefixes))], np.int64)
            self._steps.append((KeyIndex([*prefixes]), wholes))

    def by_id(self, words_with_ids: WordsWithIds) -> GivenGramsByWordId:
        """The same, to be found among word ids."""
        words = pa.array(self.words, pa.large_string())
        return GivenGramsByWordId(self, indices_by_word(words).by_id(words_with_ids))

    def matches(self, ids: Any, indices_by_id: Any) -> Iterator[tuple[Integers, Integers]]:
        """For each length of the sequences: the positions, ascending, where one begins, and its
        number. `ids` are the word ids of whole texts; `indices_by_id` has the index in `words` of
        each."""
        indices = values_of_ids(indices_by_id, ids)
        if self.beginnings:
            ends = np.flatnonzero(ids < 0)
            indices[ends] = self._end
            starts = np.append(0, ends[:-1] + 1)
        else:
            starts = np.flatnonzero(indices >= 0)
        at, nodes = starts, np.zeros(len(starts), dtype=np.int64)
        for ahead, (prefixes_by_step, wholes) in enumerate(self._steps):
            reach = np.searchsorted(at, len(indices) - ahead)
            at, nodes = at[:reach], nodes[:reach]
            next_words = indices.take(at + ahead)
            on = np.flatnonzero(next_words >= 0)
            steps = nodes.take(on) * len(self.words) + next_words.take(on)
            reached = prefixes_by_step.indices(steps)
            there = np.flatnonzero(reached >= 0)
            at, nodes = at.take(on.take(there)), reached.take(there).astype(np.int64)
            sequences = wholes.take(nodes)
            whole = np.flatnonzero(sequences >= 0)
            yield at.take(whole), sequences.take(whole)


@dataclass(frozen=True, eq=False)
class GivenGramsByWordId:
    """Given sequences to be found among word ids."""

    given: GivenGrams
    #: For each word id, the index of the word among those of the sequences, or -1; one more element
    #: for no word.
    indices_by_id: NDArray[np.int32]

    def keys_of_users(self, lengths: Integers, ids: Any) -> tuple[Integers, Integers]:
        """The distinct sequences that each user holds, as keys: how many a user has, and all keys,
        one user after the other. A key is the sequence's number times the number of groups, plus
        the number of the group of a text with it.

        `lengths` says how many positions each user has. A text's end says the text's group: it is
        -1 - (the group's number). Texts without ends are found in as if each were a user's only
        one, so only sequences of one token may then be given.
        """
        groups, ends = self.given.groups, ids < 0
        users = np.arange(len(lengths))
        user_at = np.repeat(users, lengths)
        owners, found = [users[:0]], [users[:0]]
        for at, sequences in self.given.matches(ids, self.indices_by_id):
            keys = sequences * groups
            if groups > 1:
                keys += (-1 - ids[ends])[np.cumsum(ends)[at]]
            held = np.bincount(user_at.take(at), minlength=len(lengths))
            counts, distinct = distinct_of_users(held, keys)
            owners.append(np.repeat(users, counts))
            found.append(distinct)
        owner = np.concatenate(owners)
        in_order = np.concatenate(found).take(owner.argsort(kind="stable"))
        return np.bincount(owner, minlength=len(lengths)), in_order.astype(np.int32)


def keys_of_given_items(
    lengths: Any, ids: Any, words: WordsWithIds, given: GivenGramsByWordId
) -> pa.Array:
    """`dphh_keys_of_items(lengths, ids, words, given)`: how many keys each user has, and the keys:
    one for each given item that the user holds, and each group of texts in which the user does. The
    engine makes `given` by word id, from `words`."""
    users, held = one_array(lengths), one_array(ids)
    counts, keys = given.keys_of_users(values_of(users), values_of(held))
    rows = lengths_of(users)
    found = lists_of(rows, counts.astype(np.int32)), lists_of(sums_of_runs(rows, counts), keys)
    return pa.StructArray.from_arrays(found, ["lengths", "ids"])


@dataclass(frozen=True, eq=False)
class HeldItems:
    """Distinct pairs of a user (0 to `users` - 1) and a key, in ascending order of user."""

    users: int
    owner: Integers
    keys: Integers

    def sums(self, numbers: Integers) -> Integers:
        """The sum of each user's pairs. Floats represent it exactly: it is less than 2^53."""
        return np.bincount(self.owner, numbers, minlength=self.users).astype(np.int64)

    def groups(self, groups: int) -> Integers:
        """The group of each user's keys; `groups` if they are of several."""
        found = np.zeros(self.users, np.int64)
        if groups > 1 and len(self.owner):
            first = np.flatnonzero(np.diff(self.owner, prepend=-1))
            of_pairs = self.keys % groups
            least, most = (each.reduceat(of_pairs, first) for each in (np.minimum, np.maximum))
            found[self.owner[first]] = np.where(least == most, least, groups)
        return found


class Contributions(Protocol):
    """A rule for what users add to public coordinates, by the distinct keys that each holds."""

    @property
    def coordinates(self) -> int: ...

    def added(self, held: HeldItems, caps: Integers) -> tuple[Integers, Integers]:
        """The coordinates that users add to, and what. `caps` has the users' own, or nothing."""
        ...


@dataclass(frozen=True)
class Weighing:
    """What a user adds to the counts of `keys` public keys and to the losses. Without caps of
    their own for users, the L2 sensitivity is sqrt(K) g."""

    keys: int
    max_items: int
    bits: int
    #: In how many groups each item is counted: the key of an item and group is item groups + group.
    groups: int = 1
    #: f of each key; empty if all are 1.
    factors: tuple[int, ...] = ()

    @property
    def unit(self) -> int:
        """g: the grid units of one user at a key of factor 1."""
        return 1 << self.bits

    @cached_property
    def factor(self) -> Integers:
        return np.array(self.factors or [1] * self.keys, np.int64)

    @cached_property
    def most(self) -> int:
        """The m of a user who holds all keys."""
        return int((self.factor**2).sum())

    @property
    def most_in_full(self) -> int:
        """K: a user of at most this m adds one whole user to each key."""
        return min(self.max_items, self.most)

    @property
    def least_cap(self) -> int:
        """K g^2: the cap of a user who has none of one's own; no cap may be less."""
        return self.most_in_full * self.unit**2

    @property
    def loss_unit(self) -> int:
        """S: what a user would add to a loss if bounding left the user nothing at any key."""
        return isqrt(self.least_cap)

    @property
    def losses(self) -> int:
        """How many losses there are."""
        if self.most_in_full >= self.most:
            return 0
        return self.groups + 1 if self.groups > 1 else 1

    @cached_property
    def least_weight(self) -> int:
        """The least w that a user can have, whatever the cap."""
        return int(self.weights(np.array([self.most]), np.array([self.least_cap]))[0])

    @property
    def coordinates(self) -> int:
        return self.keys + self.losses

    def weights(self, held: Integers, caps: Integers) -> Integers:
        """w of users of this m, by their caps."""
        if len(caps) != len(held) or (caps < self.least_cap).any():
            raise ValueError("a user has no cap, or one below the least cap")
        g, square = self.unit, (self.loss_unit / self.unit) ** 2
        # The larger root of m w^2 + (S (g - w) / g)^2 = cap is an upper bound but for rounding.
        slack = np.maximum(square**2 * g**2 - (held + square) * (square * g**2 - caps), 0.0)
        roots = (square * g + np.sqrt(slack)) / (held + square)
        found = np.where(held * g**2 <= caps, g, np.minimum(roots.astype(np.int64) + 2, g))
        while (over := held * found**2 + self.lost(found) ** 2 > caps).any():
            found -= over
        weights: Integers = found.astype(np.int64)
        return weights

    def lost(self, weights: Integers) -> Integers:
        """e, what users of this w add to a loss."""
        return -(self.loss_unit * (weights - self.unit) // self.unit)

    def added(self, held: HeldItems, caps: Integers) -> tuple[Integers, Integers]:
        factor = self.factor[held.keys]
        of_user = held.sums(factor**2)
        weights = self.weights(of_user, caps if len(caps) else np.full(held.users, self.least_cap))
        bounded = np.flatnonzero(weights < self.unit)
        losses = self.keys + held.groups(self.groups)[bounded]
        coordinates = np.append(held.keys, losses)
        return coordinates, np.append(factor * weights[held.owner], self.lost(weights[bounded]))


@dataclass(frozen=True)
class RoughWeights:
    """How many users hold each of `keys` keys, roughly: a user adds floor(2^bits / sqrt(t)) to each
    of t keys. The L2 sensitivity is 2^bits, whatever users hold."""

    keys: int
    bits: int

    @property
    def coordinates(self) -> int:
        return self.keys

    def added(self, held: HeldItems, caps: Integers) -> tuple[Integers, Integers]:
        counts = np.maximum(held.sums(np.ones_like(held.owner)), 1)
        return held.keys, floor_roots(4**self.bits // counts)[held.owner]


@dataclass(frozen=True)
class HeldHistogram:
    """How many users have which m, by a weighing: a user of some key adds 1 to one bin. Users of
    several groups have bins of their own, after the others. The L2 sensitivity is 1, a grid unit.
    """

    weighing: Weighing

    @cached_property
    def tops(self) -> Integers:
        """The largest m of each bin; each is some 1.4 times the one before, or 1 more."""
        tops, most = [int(self.weighing.factor.min()) ** 2], self.weighing.most
        while tops[-1] < most:
            tops.append(min(max(tops[-1] + 1, tops[-1] * 7 // 5), most))
        return np.array(tops, np.int64)

    @property
    def coordinates(self) -> int:
        return len(self.tops) * min(self.weighing.groups, 2)

    def added(self, held: HeldItems, caps: Integers) -> tuple[Integers, Integers]:
        of_user, groups = held.sums(self.weighing.factor[held.keys] ** 2), self.weighing.groups
        bins = np.searchsorted(self.tops, of_user)
        bins += len(self.tops) * (groups > 1) * (held.groups(groups) == groups)
        bins = bins[of_user > 0].astype(np.int64)
        return bins, np.ones_like(bins)


def contributions_to_counts(lengths: Any, ids: Any, caps: Any, rule: Contributions) -> pa.Array:
    """`dphh_contributions_to_counts(lengths, ids, caps, rule)`: what the users of all these rows
    add to public coordinates by the keys of given items that they hold, which the ids are. A user's
    keys may repeat. `caps` has the users' own, beside `lengths`; if it is NULL, every user has the
    least cap."""
    rows, counts = one_array(ids), values_of(one_array(lengths))
    number, keys = distinct_of_users(counts, values_of(rows))
    held = HeldItems(len(counts), np.repeat(np.arange(len(counts)), number), keys)
    coordinates, added = rule.added(held, values_of(one_array(caps)))
    # Floats represent the sums of a batch exactly: no user adds 2^24, and no batch has 2^29 users.
    sums = np.bincount(coordinates, added, minlength=rule.coordinates)
    added_to = np.flatnonzero(sums)  # all other sums are 0; their keys get noise too
    return all_in_first_row(len(rows), added_to, sums[added_to].astype(np.int64))
