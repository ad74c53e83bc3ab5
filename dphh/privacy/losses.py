"""Privacy loss distributions on a grid, composed so that all errors are on the safe side.

A pair of distributions (P, Q) is stored as P's probability of each loss ln(P/Q). Every step returns
a pair that dominates the true one: its delta is at least as large at every epsilon.

- An atom between two points of the grid is split between them so that both P and Q keep their sums.
  Merging the two parts is post-processing, so the split pair dominates.
- Losses are rounded up: less of Q for the same P.
- Probability that is cut off at the high end counts as an infinite loss; at the low end it moves up
  to the lowest loss that is kept.
- Convolutions are direct sums of non-negative numbers, whose relative errors are known. (An FFT has
  an error of 1e-16 of the largest entry, which matters at a delta of 1e-10 and below.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dphh.udfs.arrays import Floats

#: A grid of more points is made coarser, to every second point. The convolution of two grids of so
#: many points takes 10 ms.
MOST_GRID_POINTS = 4096
#: A loss is raised by this times 1 + |loss|: far more than its rounding error, less than a step.
_LOSS_MARGIN = 1e-12
_FLOAT_OPERATION_ERROR = 2.3e-16  # a bound on the relative error of one float operation


@dataclass(frozen=True)
class Losses:
    """Privacy losses on a grid: `chances` are P's probabilities of the losses step * (first + i),
    `infinite` that of an infinite loss."""

    step: float
    first: int
    chances: Floats
    infinite: float
    #: A bound on the relative error of the probabilities.
    relative_error: float

    @property
    def values(self) -> Floats:
        places = self.first + np.arange(len(self.chances))
        return np.asarray(self.step * places, dtype=np.float64)

    def delta(self, epsilon: float) -> float:
        """The sum of [P - e^epsilon Q]_+, at most 1."""
        at = self.values
        over = at > epsilon
        found = float(np.sum(self.chances[over] * -np.expm1(epsilon - at[over])))
        return min((found + self.infinite) * (1 + self.relative_error), 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta, rounded up; infinite if there is none."""
        if self.infinite * (1 + self.relative_error) >= delta:
            return math.inf
        low, high = 0.0, max(float(self.step * (self.first + len(self.chances))), 0.0)
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-7 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def trimmed(self, most_cut_per_tail: float) -> Losses:
        """These losses without their two tails, rounded up. A tail that is cut off has at most the
        probability `most_cut_per_tail`."""
        rising, falling = np.cumsum(self.chances), np.cumsum(self.chances[::-1])
        low = int(np.searchsorted(rising, most_cut_per_tail, side="right"))
        high = len(self.chances) - int(np.searchsorted(falling, most_cut_per_tail, side="right"))
        if low >= high:
            return self
        kept = self.chances[low:high].copy()
        kept[0] += float(np.sum(self.chances[:low]))
        lost = float(np.sum(self.chances[high:]))
        return replace(self, first=self.first + low, chances=kept, infinite=self.infinite + lost)

    def coarser(self) -> Losses:
        """These losses rounded to every second point of the grid, with no smaller delta."""
        first = self.first // 2
        chances = np.concatenate([np.zeros(self.first - 2 * first), self.chances])
        # Two or three zeros are appended, so that the length is odd.
        chances = np.append(chances, np.zeros(3 - len(chances) % 2))
        even, odd = chances[0::2].copy(), chances[1::2]
        up = float(np.expm1(-self.step) / np.expm1(-2 * self.step)) * (1 + 1e-15)
        even[: len(odd)] += odd * (1 - up)
        even[1 : len(odd) + 1] += odd * up
        error = self.relative_error + 1e-14
        return replace(self, step=2 * self.step, first=first, chances=even, relative_error=error)

    def followed_by(self, other: Losses, most_cut_per_tail: float) -> Losses:
        """The losses of two steps together, independent or adaptive, without tails (`trimmed`)."""
        one, two = self, other
        while one.step < two.step:
            one = one.coarser()
        while two.step < one.step:
            two = two.coarser()
        shorter = min(len(one.chances), len(two.chances))
        both = Losses(
            one.step,
            one.first + two.first,
            np.convolve(one.chances, two.chances),
            one.infinite + two.infinite,
            one.relative_error + two.relative_error + _FLOAT_OPERATION_ERROR * (shorter + 4),
        ).trimmed(most_cut_per_tail)
        while len(both.chances) > MOST_GRID_POINTS:
            both = both.coarser()
        return both

    def times(self, count: int, most_cut_per_tail: float) -> Losses:
        """The losses of `count` such steps together. Each joining of two cuts off both tails, at
        most `most_cut_per_tail` of each."""
        squares = [self]
        while 2 ** len(squares) <= count:
            squares.append(squares[-1].followed_by(squares[-1], most_cut_per_tail))
        parts = [square for bit, square in enumerate(squares) if count >> bit & 1]
        return reduce(lambda one, two: one.followed_by(two, most_cut_per_tail), parts)


def losses_on_grid(
    chances: Floats, losses: Floats, infinite: float, step: float, relative_error: float
) -> Losses:
    """These losses, with their probabilities under P, rounded to a grid. `infinite` is the
    probability of all other losses, which count as infinite."""
    up = (losses + _LOSS_MARGIN * (1 + abs(losses))) / step
    below = np.floor(up)
    part = np.expm1(-(up - below) * step) / math.expm1(-step)
    upper = chances * np.minimum(part, 1.0)
    first = int(below.min())
    place = (below - first).astype(np.int64)
    length = int(place.max()) + 2
    held = np.bincount(place, chances - upper, length) + np.bincount(place + 1, upper, length)
    return Losses(
        step,
        first,
        np.asarray(held, dtype=np.float64),
        infinite,
        relative_error + _FLOAT_OPERATION_ERROR * (len(chances) + 8),
    )


def standard_deviation(chances: Floats, losses: Floats) -> float:
    """The losses' standard deviation, from which the grid's step is derived."""
    total = float(np.sum(chances))
    mean = float(np.sum(chances * losses)) / total
    return math.sqrt(max(float(np.sum(chances * (losses - mean) ** 2)) / total, 0.0))
