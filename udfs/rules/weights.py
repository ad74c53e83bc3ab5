"""What a user adds to each key that the user holds: equal weights, or weights in proportion to
relative ones. In either case integers, whose L2 norm is at most the user's.

The relative weight w of an item in a later round of a set union is from its earlier noised weights.
With x_j an item's noised weight in round j, s_j the round's sigma and T the next threshold,

    estimate = sum_j x_j / s_j^2 / sum_j 1 / s_j^2,    deviation = (sum_j 1 / s_j^2)^(-1/2),
    z = (estimate + deviation) / T,
    w = z^(3/4) where z < 1, z^(-1/2) where z >= 1, and never below 1/20 :

largest for items near the threshold. All arithmetic is on integers: each precision 1 / s_j^2 is an
integer, z and w are in units of 2^-15, roots are rounded down. So every engine computes the same w
from the noised weights and public numbers. Rounds may have grids of their own, each at least as
fine as the first one's: the estimate is on the grid of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.arrays import (
    Hashes,
    Integers,
    lengths_of,
    lists_of,
    one_array,
    unmixed_hashes,
    values_of,
)
from dphh.udfs.kernel.contributions import (
    ONE_W,
    HeldKeys,
    contributions_of_rows,
    dropped_pairs,
)
from dphh.udfs.kernel.positions import WordsWithIds, values_of_ids

#: The integer for the least w, 1/20.
LEAST_W = ONE_W // 20
#: The highest z that is computed with: w is the least from here on.
LARGEST_Z = 400
#: The integers for the precision of the first round and for the highest that any round may have
#: (`round_precision`).
FIRST_PRECISION, MOST_PRECISION = 16, 1 << 10


def weight(bits: int, items_held: int) -> int:
    """What a user who holds t items adds to each: floor(2^b / sqrt(t)) = isqrt(floor(4^b / t))."""
    return isqrt(4**bits // items_held)


@dataclass(frozen=True, eq=False)
class BoundedWeights:
    """What users add to each of the keys that they hold: their L2 norms are at most 2^grid_bits.

    Without `w`, the weighted Gaussian policy (Gopi et al. 2020): floor(2^grid_bits / sqrt(t)) for
    each of t keys. With it, in proportion to w, the relative weight of each key by earlier noised
    weights: from 1 to ONE_W, or 0 for a key that no user holds. Every key that any user holds has a
    w: earlier rounds noised it, whatever weight it got. So given those noised weights, w does not
    depend on who else holds the key.

    An over-full user, who holds more than `max_items` keys, keeps those of the largest w; equal
    ones by the smallest hash of key, user and salt (`dropped_pairs`).
    """

    max_items: int
    grid_bits: int
    salt: int
    #: Hashes a key by its content (a word by its spelling), not by the number that a run gave it.
    hash_keys: Callable[[Integers], Hashes] = unmixed_hashes
    w: Integers | None = None

    def __call__(self, held: HeldKeys) -> Integers:
        w = None if self.w is None else self.w.take(held.keys)
        if w is not None and not w.all():
            raise RuntimeError("a defect, please report: an item has no weight of an earlier round")
        dropped = dropped_pairs(held, self.max_items, self.salt, self.hash_keys, w)
        if w is not None:
            w[dropped] = 0
            return weights_in_proportion(2**self.grid_bits, w, held.owner, len(held.key_counts))
        by_count = _weights_by_key_count(self.grid_bits, self.max_items)
        weight = by_count.take(held.key_counts, mode="clip").take(held.owner)
        weight[dropped] = 0
        return weight


@lru_cache(maxsize=64)
def _weights_by_key_count(grid_bits: int, max_items: int) -> Integers:
    """The weights of a user's keys if the user holds 0, 1, ..., max_items keys."""
    weights = [weight(grid_bits, held) for held in range(1, max_items + 1)]
    return np.array([0, *weights], dtype=np.int64)


def weights_in_proportion(
    units: int | Integers, planned: Integers, holders: Integers, users: int
) -> Integers:
    """What each pair of a holder (0 to `users` - 1) and a key adds: floor(unit g / |g|_2), where g
    is the pair's planned weight, |g|_2 the norm of the holder's, rounded up, and unit the holder's
    or everybody's."""
    squares = np.zeros(users, dtype=np.int64)
    np.add.at(squares, holders, planned * planned)
    norms = floor_roots(np.maximum(squares, 1) - 1) + 1
    return np.broadcast_to(units, users)[holders] * planned // norms[holders]


def floor_roots(squares: Integers) -> Integers:
    """floor(sqrt(n)) for integers n from 0 to 2^62. The float square root may be wrong by one."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return root


@dataclass(frozen=True)
class RoundNoise:
    """A round's noise: its sigma, in units of a grid in which one user's weight is 2^bits."""

    sigma: int
    bits: int


@dataclass(frozen=True)
class ReweighingNumbers:
    """The public numbers from which a round weighs items. An item's w depends on these and on its
    `noisy_sum`, the sum over earlier rounds of precision times noised weight."""

    total_precision: int
    deviation: int
    threshold: int

    @classmethod
    def after_rounds(
        cls, rounds: Sequence[RoundNoise], threshold: int, bits: int
    ) -> ReweighingNumbers:
        """The numbers for the round after `rounds`. Its `threshold` is on a grid of 2^bits."""
        first = rounds[0]
        total, exact = 0, Fraction(0)
        for each in rounds:
            finer = each.bits - first.bits
            total += round_precision(first, each) << finer
            exact += Fraction(4**finer, each.sigma**2)
        return cls(total, isqrt(int(1 / exact)), max(threshold >> (bits - first.bits), 1))

    def relative_weights(self, noisy_sum: Integers) -> Integers:
        """w in units of 1 / ONE_W, from LEAST_W to ONE_W."""
        likely = np.maximum(noisy_sum + self.total_precision * self.deviation, 0)
        z = np.minimum(likely // self.total_precision, LARGEST_Z * self.threshold)
        z = z * ONE_W // self.threshold
        below = floor_roots(z * floor_roots(z * ONE_W))
        above = floor_roots(ONE_W**3 // np.maximum(z, 1))
        return np.maximum(np.where(z < ONE_W, below, above), LEAST_W)


def round_precision(first_round: RoundNoise, this_round: RoundNoise) -> int:
    """The integer by which a round's noised weights are multiplied in `noisy_sum`.

    It is in proportion to the round's precision, 1 / sigma^2 with sigma in users, such that the
    first round has FIRST_PRECISION; divided by how much finer the round's grid is than the first
    one's, since a finer grid multiplies weights.
    """
    finer = this_round.bits - first_round.bits
    precision = (FIRST_PRECISION * first_round.sigma**2 << finer) // this_round.sigma**2
    return min(max(precision, 1), MOST_PRECISION)


def contributions_of_words(
    user_hashes: Any,
    lengths: Any,
    ids: Any,
    words: WordsWithIds,
    released: NDArray[np.int32] | None,
    max_items: int,
    grid_bits: int,
    salt: int,
    w: Integers | None,
) -> pa.Array:
    """`dphh_contributions_of_words(user_hashes, lengths, ids, words, released, max_items,
    grid_bits, salt, w)`: weights by the w of each word; equal ones if `w` is None. Words that
    earlier rounds `released` (by word id, -1 for all others) are left out. Words are chosen by
    their spelling, and stay in the result even if all their weights are 0, because a later round
    needs all words that any user holds."""
    rule = BoundedWeights(max_items, grid_bits, salt, words.hashes().take, w)
    if released is not None:
        lists = one_array(ids)
        held = values_of(lists)
        left = np.where(released.take(held, mode="clip") >= 0, np.int32(-1), held)
        ids = lists_of(lengths_of(lists), left)
    return contributions_of_rows(user_hashes, lengths, ids, rule, keeps_zeros=True)


def contributions_to_buckets(
    user_hashes: Any,
    lengths: Any,
    ids: Any,
    words: WordsWithIds,
    buckets: int,
    max_items: int,
    grid_bits: int,
) -> pa.Array:
    """`dphh_contributions_to_buckets(user_hashes, lengths, ids, words, buckets, max_items,
    grid_bits)`: equal weights, by the buckets in which a user's words lie: a word's bucket is the
    hash of its spelling, modulo `buckets`. A user of more than `max_items` buckets adds nothing."""
    lists = one_array(ids)
    held = values_of(lists)
    hashes = values_of_ids(words.hashes(), held)
    bucket = np.where(held < 0, -1, (hashes % np.uint64(buckets)).astype(np.int64))
    by_count = np.append(_weights_by_key_count(grid_bits, max_items), 0)

    def equal_or_nothing(held: HeldKeys) -> Integers:
        return by_count.take(held.key_counts, mode="clip").take(held.owner)

    keys = lists_of(lengths_of(lists), bucket)
    return contributions_of_rows(user_hashes, lengths, keys, equal_or_nothing)


def contributions_of_grams(
    user_hashes: Any, lengths: Any, keys: Any, max_items: int, grid_bits: int, salt: int
) -> pa.Array:
    """`dphh_contributions_of_grams(user_hashes, lengths, keys, max_items, grid_bits, salt)`: equal
    weights."""
    rule = BoundedWeights(max_items, grid_bits, salt)
    return contributions_of_rows(user_hashes, lengths, keys, rule)


def relative_weights_of_rows(
    noised_weights: Any, total_precision: int, deviation: int, threshold: int
) -> pa.Array:
    """`dphh_weight(noisy_sum, total_precision, deviation, threshold)`: the relative weight w of
    each item, by its earlier noised weights (`dphh.udfs.rules.weights`)."""
    public = ReweighingNumbers(total_precision, deviation, threshold)
    return pa.array(public.relative_weights(one_array(noised_weights).to_numpy()))
