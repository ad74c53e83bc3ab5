"""Thresholds for a user's new items that are valid for any weights.

Weights are whole numbers whose squares sum to at most unit^2, on at most D items, and the noise is
round(N(0, sigma^2)). A new item of weight w reaches the threshold T with probability
Q((T - 1/2 - w) / sigma), Q the normal tail. The cost is the largest sum of that over a user's
items. Equal weights are not the worst case: at their threshold, other weights cost up to 1.77 times
its delta.

Theorem. If Q((T - 1/2 - unit) / sigma) < 0.15, the largest sum over real weights is the largest
over 0 <= y <= unit of

    c(y) = Q((T - 1/2 - y) / sigma) + (D - 1) Q((T - 1/2 - r(y)) / sigma),
    r(y) = sqrt((unit^2 - y^2) / (D - 1)):

one item has weight y, and all others have equal weights. (The proof: docs/composition.md.) Whole
weights are real weights, so the theorem bounds them.

Computation. Both terms of c are monotone in y. So c on an interval between two whole numbers a < b
is at most the first term at b plus the second at a. There r is rounded up to a whole number, and
both tails are upper bounds from the noise's table. The certified bound uses no floats.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import count, pairwise
from math import isqrt, nextafter

import numpy as np

from dphh.privacy.search import least_whole, ndtr
from dphh.udfs.noise.table import TABLE_ONE, RoundedGaussian

#: y, the weight of the theorem's one item, is searched in about so many intervals. If these are
#: longer than one grid unit, thresholds are too high by up to 1 / 256 of one user's weight.
NUMBER_OF_WEIGHT_INTERVALS = 256
#: The theorem's condition, with a margin: an item with all of a user's weight passes the threshold
#: with at most this probability.
MOST_SINGLE_ITEM_TAIL = Fraction(149, 1000)


def any_weights_cost(noise: RoundedGaussian, unit: int, max_items: int, threshold: int) -> Fraction:
    """The largest sum, for any weights, of the probabilities that a user's new items pass, rounded
    up; 1 if the theorem does not apply."""
    alone = noise.tail_upper_bound(threshold - unit)
    if alone > MOST_SINGLE_ITEM_TAIL:
        return Fraction(1)
    if max_items == 1:
        return alone
    largest = max(_costs_of_weight_intervals(noise, unit, max_items, threshold))
    return min(Fraction(1), Fraction(largest, TABLE_ONE))


def any_weights_delta(noise: RoundedGaussian, unit: int, max_items: int, threshold: int) -> float:
    """`any_weights_cost` as a float, rounded up, for the events in the ledger."""
    exact = any_weights_cost(noise, unit, max_items, threshold)
    return min(1.0, nextafter(float(exact), 1.0))


def any_weights_threshold(noise: RoundedGaussian, unit: int, max_items: int, delta: float) -> int:
    """A threshold at which new items of any weights cost at most delta.

    The search starts from floats; the result is certified by the table's exact tails.
    """
    budget = Fraction(delta)
    alone = unit + noise.smallest_with_tail_at_most(min(budget, MOST_SINGLE_ITEM_TAIL))
    in_floats = least_whole(
        lambda at: _approximate_cost(noise.sigma, unit, max_items, at) <= delta, alone - 1
    )
    return next(
        at for at in count(in_floats) if any_weights_cost(noise, unit, max_items, at) <= budget
    )


def _ends_of_weight_intervals(unit: int) -> list[int]:
    """The ends of the intervals of y, the weight of the theorem's one item: 0 to `unit`."""
    step = max(1, unit // NUMBER_OF_WEIGHT_INTERVALS)
    return [*range(0, unit, step), unit]


def _costs_of_weight_intervals(
    noise: RoundedGaussian, unit: int, max_items: int, threshold: int
) -> list[int]:
    """For each interval of y, the one item's weight: an upper bound on c(y) in it, in units of
    2^-256. The others' weights are rounded up."""
    others = max_items - 1

    @cache
    def tail(weight: int) -> int:
        return noise.tail_upper_bound_in_units(threshold - weight)

    return [
        tail(end) + others * tail(isqrt((unit * unit - start * start) // others) + 1)
        for start, end in pairwise(_ends_of_weight_intervals(unit))
    ]


def _approximate_cost(sigma: int, unit: int, max_items: int, threshold: int) -> float:
    ends = np.array(_ends_of_weight_intervals(unit))
    if max_items == 1:
        return float(ndtr((unit + 0.5 - threshold) / sigma))
    others = max_items - 1
    rest = np.floor(np.sqrt((unit**2 - ends[:-1] ** 2) // others)) + 1
    heavy = ndtr((ends[1:] + 0.5 - threshold) / sigma)
    return float((heavy + others * ndtr((rest + 0.5 - threshold) / sigma)).max())
