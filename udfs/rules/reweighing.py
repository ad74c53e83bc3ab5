"""An item's relative weight w in a later round of a set union, from its earlier noised weights.

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

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np

from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.contributions import ONE_W
from dphh.udfs.rules.weights import floor_roots

#: The integer for the least w, 1/20.
LEAST_W = ONE_W // 20
#: The highest z that is computed with: w is the least from here on.
LARGEST_Z = 400
#: The integers for the precision of the first round and for the highest that any round may have
#: (`round_precision`).
FIRST_PRECISION, MOST_PRECISION = 16, 1 << 10


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
