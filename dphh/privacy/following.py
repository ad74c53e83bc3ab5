"""How much users give to an item in a later round of a set union, by earlier noised weights.

With x_j an item's noised weight in round j, s_j the round's noise and T the threshold to come,

    estimate = sum_j x_j / s_j^2 / sum_j 1 / s_j^2,    deviation = (sum_j 1 / s_j^2)^(-1/2),
    z = (estimate + deviation) / T,
    w = z^(3/4) where z < 1, z^(-1/2) where z >= 1, and never below 1/20 :

most to what stands near the threshold. All of it is integers: 1 / s_j^2 are whole parts, z and w
are in units of 2^-15, roots are floored. So w is one function of noised weights and of what is
public, wherever it is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: w = 1, and z = 1.
WHOLE = 1 << 15
#: The least w, 1/20.
LEAST = WHOLE // 20
#: Past this z, w is the least.
FARTHEST = 400
#: The parts of the round of the largest noise, and the most of any.
FIRST_PARTS, MOST_PARTS = 16, 1 << 10


@dataclass(frozen=True)
class Following:
    """What is public of the weights of a round: they follow from it and from `told` of each item,
    the sum over earlier rounds of parts times noised weight."""

    parts: int
    deviation: int
    threshold: int

    @classmethod
    def after(cls, sigmas: Sequence[int], threshold: int) -> Following:
        """By the noise of the rounds so far and the threshold of the one to come, in grid units."""
        told = sum(Fraction(1, sigma**2) for sigma in sigmas)
        parts = sum(parts_told(sigmas[0], sigma) for sigma in sigmas)
        return cls(parts, isqrt(int(1 / told)), threshold)

    def weights(self, told: Integers) -> Integers:
        """w in units of 1 / WHOLE, from LEAST to WHOLE."""
        return weights_of(told, self.parts, self.deviation, self.threshold)


def parts_told(first: int, sigma: int) -> int:
    """How much a round of this noise counts for, where the first round counts for FIRST_PARTS."""
    return min(max(FIRST_PARTS * first**2 // sigma**2, 1), MOST_PARTS)


def weights_of(told: Integers, parts: int, deviation: int, threshold: int) -> Integers:
    stands = np.maximum(told + parts * deviation, 0) // parts
    z = np.minimum(stands, FARTHEST * threshold) * WHOLE // threshold
    below = roots(z * roots(z * WHOLE))
    above = roots(WHOLE**3 // np.maximum(z, 1))
    return np.maximum(np.where(z < WHOLE, below, above), LEAST)


def roots(squares: Integers) -> Integers:
    """Floored, of whole numbers below 2^52. A float's root may be wrong by one."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return root
