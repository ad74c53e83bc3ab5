"""What a user adds to the counts of n public keys.

With K = `max_items` and a grid where one user is g = 2^bits units, a user who
holds m <= K of the keys adds g to each. A user who holds more adds w(m) < g to each, and

    e(m) = ceil(S (g - w(m)) / g),   S = floor(g sqrt(K) / 2),

to one more coordinate, which all users of the same octave share: octave 1 are the users who hold
more than K and up to 2K keys, octave 2 those of up to 4K, octave j those with K 2^(j-1) < m <=
K 2^j. e(m) is what bounding removed from each of their keys, in units of 1/S of a user. w(m) is the
largest integer with

    m w^2 + e^2 <= K g^2,

so adding or removing a user changes the vector of all n counts and all octaves by an L2 norm of at
most sqrt(K) g, exactly. Without e, w would be g sqrt(K / m); e reduces it by 1.1% at m = 2K, 3.4%
at m = 4K and never by more than 13.4%. If K >= n no user is bounded and there are no octaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.kernel.contributions import distinct_pairs
from dphh.udfs.kernel.lists import all_in_first_row, one_array, values_of


@dataclass(frozen=True)
class Weighing:
    """What a user adds to the counts of `keys` public keys and to the octaves. The L2 sensitivity
    is sqrt(K) users."""

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
    def octave_weight_if_all_removed(self) -> int:
        """S: what a user would add to the octave if bounding left the user nothing at any key."""
        return isqrt(self.most_in_full * self.unit**2 // 4)

    @property
    def octave_count(self) -> int:
        """The number of octaves (users of K to 2K keys, 2K to 4K, ..., up to all keys)."""
        return (-(-self.keys // self.most_in_full) - 1).bit_length() if self.keys else 0

    def octave(self, keys_held: Integers) -> Integers:
        """The octave of users who hold so many keys: 0 up to K keys, 1 up to 2K, 2 up to 4K."""
        tops = self.most_in_full << np.arange(self.octave_count + 1, dtype=np.int64)
        return np.searchsorted(tops, keys_held).astype(np.int64)

    @cached_property
    def weights(self) -> Integers:
        """w(m), what a user of m keys adds to each, for m = 0 to `keys`."""
        g, adds = self.unit, np.arange(self.unit, 0, -1, dtype=np.int64)
        # A weight w, from g down, is allowed for users of up to (K g^2 - e^2) / w^2 keys.
        fits = (self.most_in_full * g * g - self._octave_weights_of(g - adds) ** 2) // (adds * adds)
        held = np.arange(self.keys + 1, dtype=np.int64)
        return g - np.searchsorted(fits, held).astype(np.int64)

    @cached_property
    def octave_weights(self) -> Integers:
        """e(m), what a user of m keys adds to the octave, for m = 0 to `keys`; 0 while m <= K."""
        return self._octave_weights_of(self.unit - self.weights)

    def _octave_weights_of(self, removed: Integers) -> Integers:
        return -(-self.octave_weight_if_all_removed * removed // self.unit)

    @cached_property
    def loss_ratios(self) -> Floats:
        """r_j of each octave: the most that a user loses at a key, relative to what is added."""
        tops = self.most_in_full << np.arange(1, self.octave_count + 1, dtype=np.int64)
        least = self.weights[np.minimum(tops, self.keys)].astype(np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray((self.unit - least) / least)


def contributions_to_counts(lengths: Any, ids: Any, weighing: Weighing) -> pa.Array:
    """`dphh_contributions_to_counts(lengths, ids, weighing)`: what the users of all these rows add
    to the counts of given items, whose keys the ids are; and to the octaves, whose keys come after
    (`Weighing`). A user's keys may repeat."""
    rows, counts = one_array(ids), values_of(one_array(lengths))
    users = np.repeat(np.arange(len(counts)), counts)
    owner, keys = distinct_pairs(users, values_of(rows))
    number = np.bincount(owner, minlength=len(counts))
    over = number[number > weighing.most_in_full]
    keys = np.append(keys, weighing.keys + weighing.octave(over) - 1)
    weights = np.append(weighing.weights[number][owner], weighing.octave_weights[over])
    # Floats represent the sums of a batch exactly: a weight is at most 2^10.
    sums = np.bincount(keys, weights, minlength=weighing.keys + weighing.octave_count)
    added_to = np.flatnonzero(sums)  # all other sums are 0; their keys get noise too
    return all_in_first_row(len(rows), added_to, sums[added_to].astype(np.int64))
