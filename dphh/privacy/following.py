"""The relative weight of an item in a later round of a set union, from its earlier noised weights.

With x_j an item's noised weight in round j, s_j the round's sigma and T the next threshold,

    estimate = sum_j x_j / s_j^2 / sum_j 1 / s_j^2,    deviation = (sum_j 1 / s_j^2)^(-1/2),
    z = (estimate + deviation) / T,
    w = z^(3/4) where z < 1, z^(-1/2) where z >= 1, and never below 1/20 :

largest for items near the threshold. All arithmetic is on integers: the 1 / s_j^2 become whole
parts, z and w are in units of 2^-15, roots are rounded down. So every engine computes the same w
from the noised weights and public numbers. Rounds may have grids of their own, each at least as
fine as the first one's: the estimate is on the grid of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: The integer that represents w = 1, and also z = 1, in fixed-point arithmetic.
ONE_W = 1 << 15
#: The least w, 1/20.
LEAST_W = ONE_W // 20
#: From this z on, w is the least.
FARTHEST_Z = 400
#: The parts of the first round, and the most parts of any round.
FIRST_PARTS, MOST_PARTS = 16, 1 << 10


@dataclass(frozen=True)
class RoundNoise:
    """A round's noise: `sigma` is in grid units, of which a user's weight has 2^bits."""

    sigma: int
    bits: int


@dataclass(frozen=True)
class ItemWeights:
    """The public numbers of a round's weights. An item's w depends on these and on `noisy_sum`, the
    sum over earlier rounds of parts times noised weight."""

    parts: int
    deviation: int
    threshold: int

    @classmethod
    def after(cls, rounds: Sequence[RoundNoise], threshold: int, bits: int) -> ItemWeights:
        """From the rounds so far, and the next one's threshold on its grid of 2^bits."""
        first = rounds[0]
        parts, precision = 0, Fraction(0)
        for each in rounds:
            finer = each.bits - first.bits
            parts += parts_of_round(first, each) << finer
            precision += Fraction(4**finer, each.sigma**2)
        return cls(parts, isqrt(int(1 / precision)), max(threshold >> (bits - first.bits), 1))

    def weights(self, noisy_sum: Integers) -> Integers:
        """w in units of 1 / ONE_W, from LEAST_W to ONE_W."""
        return weights_of(noisy_sum, self.parts, self.deviation, self.threshold)


def parts_of_round(first: RoundNoise, each: RoundNoise) -> int:
    """A round's parts: its 1 / sigma^2 in users, on a scale where the first round has FIRST_PARTS,
    over how much finer its grid is, since that multiplies its weights."""
    parts = (FIRST_PARTS * first.sigma**2 << each.bits - first.bits) // each.sigma**2
    return min(max(parts, 1), MOST_PARTS)


def weights_of(noisy_sum: Integers, parts: int, deviation: int, threshold: int) -> Integers:
    stands = np.maximum(noisy_sum + parts * deviation, 0) // parts
    z = np.minimum(stands, FARTHEST_Z * threshold) * ONE_W // threshold
    below = roots(z * roots(z * ONE_W))
    above = roots(ONE_W**3 // np.maximum(z, 1))
    return np.maximum(np.where(z < ONE_W, below, above), LEAST_W)


def roots(squares: Integers) -> Integers:
    """floor(sqrt(n)) for whole numbers below 2^52. The float square root may be wrong by one."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return root
