"""What a user adds to the counts of n public keys.

One user is g = 2^bits units of the grid. A user has a cap, which the square of the user's L2 norm
is never above, in integers: K g^2 with K = `max_items`, or a cap of one's own of at least as much
(what earlier rounds left of a user's purse). A user who holds m keys with m g^2 at most the cap
adds g to each. A user who holds more is bounded: adds w < g to each, and

    e = ceil(S (g - w) / g),   S = floor(g sqrt(K)),

to one more coordinate, which says what bounding removed from each of the user's keys, in units of
1/S of a user. w is the largest integer with m w^2 + e^2 <= cap. There is one, as w = 0 gives e = S,
whose square no cap is below.

The bounded users of a coordinate form a class, by the part of a user that they add to each key
(LEAST_OF_CLASSES). Their weights have bounds that follow from K and n alone. With the cap K g^2, w
is about 2 K g / (m + K), so class 1 has the users of up to 1.1 K keys, class 2 those of up to 1.86
K. If K >= n, nobody is bounded, and there are no classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.kernel.contributions import distinct_pairs
from dphh.udfs.kernel.lists import all_in_first_row, one_array, values_of

#: A bounded user who adds at least the first of these parts of a user to each key is of class 1,
#: one who adds at least the second of class 2; all others are of class 3.
LEAST_OF_CLASSES = (Fraction(95, 100), Fraction(7, 10))


@dataclass(frozen=True)
class Weighing:
    """What a user adds to the counts of `keys` public keys and to the losses of classes. Without
    caps of their own for users, the L2 sensitivity is sqrt(K) users."""

    keys: int
    max_items: int
    bits: int

    @property
    def unit(self) -> int:
        """g: the grid units of one user."""
        return 1 << self.bits

    @property
    def most_in_full(self) -> int:
        """K: a user who holds at most so many keys adds one whole user to each."""
        return min(self.max_items, self.keys)

    @property
    def least_cap(self) -> int:
        """K g^2: the cap of a user who has none of one's own; no cap may be less."""
        return self.most_in_full * self.unit**2

    @property
    def loss_unit(self) -> int:
        """S: what a user would add to a loss if bounding left the user nothing at any key."""
        return isqrt(self.least_cap)

    @cached_property
    def least_weights(self) -> tuple[int, ...]:
        """For each class, the least that its users can add to a key, whatever their caps."""
        if self.most_in_full >= self.keys:
            return ()
        least = int(self.weights(np.array([self.keys]), np.array([self.least_cap]))[0])
        return (*(each for each in self._least_of_classes if each > least), least)

    @property
    def class_count(self) -> int:
        return len(self.least_weights)

    @property
    def coordinates(self) -> int:
        return self.keys + self.class_count

    @property
    def _least_of_classes(self) -> tuple[int, ...]:
        """The least weight of each class but the last. On a coarse grid, where no bounded user
        adds a part that large, there is no such class."""
        least = (-int(-self.unit * part // 1) for part in LEAST_OF_CLASSES)
        return tuple(each for each in least if each < self.unit)

    def weights(self, held: Integers, caps: Integers) -> Integers:
        """w, what users who hold so many keys add to each, by their caps."""
        assert (caps >= self.least_cap).all(), "a cap is below the least cap"
        g, square = self.unit, (self.loss_unit / self.unit) ** 2
        # The larger root of m w^2 + (S (g - w) / g)^2 = cap is an upper bound but for rounding.
        slack = np.maximum(square**2 * g**2 - (held + square) * (square * g**2 - caps), 0.0)
        roots = (square * g + np.sqrt(slack)) / (held + square)
        found = np.where(held * g**2 <= caps, g, np.minimum(roots.astype(np.int64) + 2, g))
        while (over := held * found**2 + self.losses(found) ** 2 > caps).any():
            found -= over
        weights: Integers = found.astype(np.int64)
        return weights

    def losses(self, weights: Integers) -> Integers:
        """e, what users who add so much to each key add to the loss of their class."""
        return -(self.loss_unit * (weights - self.unit) // self.unit)

    def classes(self, weights: Integers) -> Integers:
        """The classes of bounded users who add so much to each key, from 0."""
        least = np.array(self._least_of_classes, dtype=np.int64)
        classes: Integers = (weights[:, None] < least).sum(1, dtype=np.int64)
        return classes

    @property
    def loss_ratios(self) -> Floats:
        """r of each class: the most that a user loses at a key, relative to what is added."""
        least = np.array(self.least_weights, np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray((self.unit - least) / least)

    def added(
        self, owner: Integers, keys: Integers, held: Integers, caps: Integers
    ) -> tuple[Integers, Integers]:
        """The coordinates that users add to, and what: each key of an owner, then losses."""
        own_caps = caps if len(caps) else np.full(len(held), self.least_cap)
        weights = self.weights(held, own_caps)
        bounded = weights[weights < self.unit]
        coordinates = np.append(keys, self.keys + self.classes(bounded))
        return coordinates, np.append(weights[owner], self.losses(bounded))


@dataclass(frozen=True)
class HeldHistogram:
    """How many users hold how many of `keys` keys: a user who holds some adds 1 to one bin. The L2
    sensitivity is 1, a grid unit."""

    keys: int

    @cached_property
    def tops(self) -> Integers:
        """The most keys that users of each bin hold; each is some 1.2 times the one before."""
        tops = [1]
        while tops[-1] < self.keys:
            tops.append(min(max(tops[-1] + 1, tops[-1] * 6 // 5), self.keys))
        return np.array(tops, np.int64)

    @property
    def coordinates(self) -> int:
        return len(self.tops)

    def added(
        self, owner: Integers, keys: Integers, held: Integers, caps: Integers
    ) -> tuple[Integers, Integers]:
        bins = np.searchsorted(self.tops, held[held > 0]).astype(np.int64)
        return bins, np.ones_like(bins)


def contributions_to_counts(
    lengths: Any, ids: Any, caps: Any, weighing: Weighing | HeldHistogram
) -> pa.Array:
    """`dphh_contributions_to_counts(lengths, ids, caps, weighing)`: what the users of all these
    rows add to the counts of given items, whose keys the ids are, and to the losses of classes,
    whose keys come after (`Weighing`); or to the bins of a histogram. A user's keys may repeat.
    `caps` has the users' own, beside `lengths`; if it is NULL, every user has the least cap."""
    rows, counts = one_array(ids), values_of(one_array(lengths))
    users = np.repeat(np.arange(len(counts)), counts)
    owner, keys = distinct_pairs(users, values_of(rows))
    held = np.bincount(owner, minlength=len(counts))
    coordinates, added = weighing.added(owner, keys, held, values_of(one_array(caps)))
    # Floats represent the sums of a batch exactly: S, the most that is added, is at most 2^20.
    sums = np.bincount(coordinates, added, minlength=weighing.coordinates)
    added_to = np.flatnonzero(sums)  # all other sums are 0; their keys get noise too
    return all_in_first_row(len(rows), added_to, sums[added_to].astype(np.int64))
