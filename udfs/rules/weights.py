"""What a user adds to each key that the user holds: equal weights, or weights in proportion to
relative ones. In either case integers, whose L2 norm is at most the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.contributions import HeldKeys, dropped_pairs
from dphh.udfs.text.hashes import Hashes, unmixed_hashes


def weight(bits: int, items_held: int) -> int:
    """What a user who holds t items adds to each: floor(2^b / sqrt(t)) = isqrt(floor(4^b / t))."""
    return isqrt(4**bits // items_held)


@dataclass(frozen=True, eq=False)
class EqualWeights:
    """The weighted Gaussian policy (Gopi et al. 2020): floor(2^b / sqrt(t)) for each of t keys.

    b is `grid_bits`. An over-full user, who holds more than `max_items` keys, keeps those with the
    smallest hashes of key, user and salt, and t is `max_items`.
    """

    max_items: int
    grid_bits: int
    salt: int
    #: Hashes a key by its content (a word by its spelling), not by the number that a run gave it.
    hash_keys: Callable[[Integers], Hashes] = unmixed_hashes
    #: Whether keys of weight 0 are kept, because a later round needs all keys that any user holds.
    keeps_zeros: bool = False

    def __call__(self, held: HeldKeys) -> Integers:
        by_count = _weights_by_key_count(self.grid_bits, self.max_items)
        weight = by_count.take(held.key_counts, mode="clip").take(held.owner)
        weight[dropped_pairs(held, self.max_items, self.salt, self.hash_keys)] = 0
        return weight


@lru_cache(maxsize=64)
def _weights_by_key_count(grid_bits: int, max_items: int) -> Integers:
    """The weights of a user's keys if the user holds 0, 1, ..., max_items keys."""
    weights = [weight(grid_bits, held) for held in range(1, max_items + 1)]
    return np.array([0, *weights], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RelativeWeights:
    """floor(unit w / |w|_2) for each of a user's keys; a key's w is from earlier noised weights.

    An over-full user, who holds more than `max_items` keys, keeps those of the largest w; equal w
    are ordered by hash. Every key that any user holds has a w: earlier rounds noised it, whatever
    weight it got. So given those noised weights, w does not depend on who else holds the key.
    """

    unit: int
    max_items: int
    salt: int
    #: w of each key, from 1 to ONE_W; 0 for a key that no user holds.
    w: Integers
    hash_keys: Callable[[Integers], Hashes] = unmixed_hashes
    keeps_zeros: bool = True

    def __call__(self, held: HeldKeys) -> Integers:
        w = self.w.take(held.keys)
        if not w.all():
            raise RuntimeError("a defect, please report: an item has no weight of an earlier round")
        w[dropped_pairs(held, self.max_items, self.salt, self.hash_keys, w)] = 0
        return weights_in_proportion(self.unit, w, held.owner, len(held.key_counts))


def weights_in_proportion(unit: int, planned: Integers, holders: Integers, users: int) -> Integers:
    """What each pair of a holder (0 to `users` - 1) and a key adds: floor(unit g / |g|_2), where g
    is the pair's planned weight and |g|_2 the norm of the holder's, rounded up."""
    squares = np.zeros(users, dtype=np.int64)
    np.add.at(squares, holders, planned * planned)
    norms = floor_roots(np.maximum(squares, 1) - 1) + 1
    return unit * planned // norms[holders]


def floor_roots(squares: Integers) -> Integers:
    """floor(sqrt(n)) for integers n from 0 to 2^62. The float square root may be wrong by one."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return root
