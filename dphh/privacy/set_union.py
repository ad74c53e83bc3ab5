"""The weighted Gaussian policy of DPSU in integers: thresholds, for its weights and for any.

A user who holds t items adds floor(2^b / sqrt(t)) to each, so a user's vector has an L2 norm of at
most 2^b, exactly; the noise is round(N(0, sigma^2)) on the same grid. Everything from a user's rows
to the released set is an integer.

Threshold for these weights (Gopi et al. 2020; Theorem 2.1 of DPNE). Some of a user's t items that
no other user holds pass the threshold rho with probability at most t * P[noise >= rho - w_t], where
w_t is the weight. rho is the least integer that keeps this at most delta for every t <= D0. The
papers use (1 - delta)^(1/t) where this uses the union bound delta / t, the safe one: the two differ
by a factor of at most 1 / (1 - delta).

Joint price: new items may cost nearly all of delta, and so may the Gaussian curve
(`dphh.privacy.events.SetUnionEvent`; docs/items.md, method "gaussian").

Threshold for any weights, whole numbers whose squares sum to at most unit^2, on at most D items:
the cost is the largest sum of tails over a user's items, at one item of weight y and D - 1 equal
others, of weight r(y) = sqrt((unit^2 - y^2) / (D - 1)). The theorem and its proof:
docs/composition.md, "Thresholds for any weights". On an interval between two whole numbers a < b of
y the cost is at most the one item's tail at b plus the others' at a, where r is rounded up to a
whole number, and both tails are upper bounds from the noise's table: no floats are in the bound.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from itertools import count, pairwise
from math import isqrt, nextafter

import numpy as np

from dphh.errors import UsageError
from dphh.privacy.search import least_whole, ndtr_of_few
from dphh.udfs.noise.table import TABLE_ONE, RoundedGaussian
from dphh.udfs.rules.weights import weight

#: A user who holds one item adds 2^GRID_BITS grid units to it. With 10 bits, rounding costs under
#: 0.2% of the weight at t = 300 items.
GRID_BITS = 10
#: The largest sigma in grid units; noise of a larger sigma gets a coarser grid, so that its table
#: stays small.
LARGEST_GRID_SIGMA = 2**17
#: The share of delta for the Gaussian curve. With the best share, thresholds would be lower by less
#: than 0.1%.
GAUSSIAN_SHARE_OF_DELTA = 63 / 64
#: The share of delta for new items. All of delta would lower thresholds by another 0.3%, but then k
#: runs of (epsilon, delta) / k would leave nothing for noise under a cap of (epsilon, delta).
NEW_ITEMS_SHARE_OF_DELTA = 15 / 16
#: While delta / epsilon is at most this, the two shares above together cost at most delta, although
#: they sum to more than 1, whatever part of a user's items is new: a test shows it by
#: `dphh.privacy.accounting.compose` (tests/privacy/test_set_union.py).
MOST_DELTA_PER_EPSILON = 1 / 16


def delta_shares(epsilon: float, delta: float) -> tuple[float, float]:
    """The shares of delta for the Gaussian curve and for new items; 1/2 each if delta is large."""
    if delta <= MOST_DELTA_PER_EPSILON * epsilon:
        return GAUSSIAN_SHARE_OF_DELTA, NEW_ITEMS_SHARE_OF_DELTA
    return 1 / 2, 1 / 2


def grid_bits(sigma: float, max_items: int) -> int:
    """b: GRID_BITS, or fewer if the noise is so large that a coarser grid makes no difference."""
    bits = GRID_BITS
    while bits > 0 and sigma * 2**bits > LARGEST_GRID_SIGMA:
        bits -= 1
    if max_items > 4**bits:
        raise UsageError(
            f"max_items: found {max_items:,}, but with noise sigma = {sigma:.4g} weights are "
            f"multiples of 2^-{bits}, and a user's weight on one item would round to 0; "
            f"give at most {4**bits:,}, or a larger epsilon"
        )
    return bits


def distinct_weights(bits: int, max_items: int) -> list[tuple[int, int]]:
    """Pairs (t, w_t): each weight w_t once, with the most items t that a user of this weight
    holds, which is the worst case."""
    pairs = []
    held = 1
    while held <= max_items:
        same = weight(bits, held)
        last = max_items if same == 0 else min(max_items, 4**bits // (same * same))
        pairs.append((last, same))
        held = last + 1
    return pairs


def new_item_threshold(noise: RoundedGaussian, bits: int, max_items: int, delta: float) -> int:
    """rho: the least threshold that any of a user's new items reach with probability at most
    delta."""
    return threshold_for_weights(noise, distinct_weights(bits, max_items), delta)


def threshold_for_weights(
    noise: RoundedGaussian, items_and_weight: list[tuple[int, int]], delta: float
) -> int:
    """`new_item_threshold`, where a user of t new items adds at most w_t to each, for these pairs
    (t, w_t)."""
    budget = Fraction(delta)
    threshold = None
    for held, own in reversed(items_and_weight):  # the last pair decides in most cases
        if threshold is None or noise.tail_upper_bound(threshold - own) > budget / held:
            threshold = own + noise.smallest_with_tail_at_most(budget / held)
    assert threshold is not None
    return threshold


def new_item_delta(noise: RoundedGaussian, bits: int, max_items: int, threshold: int) -> float:
    """The delta that a threshold for new items costs, rounded up."""
    return delta_for_weights(noise, distinct_weights(bits, max_items), threshold)


def delta_for_weights(
    noise: RoundedGaussian, items_and_weight: list[tuple[int, int]], threshold: int
) -> float:
    """`new_item_delta`, with weights as in `threshold_for_weights`."""
    units = max(
        held * noise.tail_upper_bound_in_units(threshold - own) for held, own in items_and_weight
    )
    exact = Fraction(units, TABLE_ONE)
    return min(1.0, nextafter(float(exact), 1.0)) if exact else 0.0


# Thresholds for any weights.

#: y, the weight of the theorem's one item, is searched in about so many intervals. If these are
#: longer than one grid unit, thresholds are too high by up to 1 / 256 of one user's weight.
NUMBER_OF_WEIGHT_INTERVALS = 256
#: The theorem's condition, with a margin: an item with all of a user's weight passes the threshold
#: with at most this probability.
MOST_SINGLE_ITEM_TAIL = Fraction(149, 1000)


@lru_cache(maxsize=64)  # a threshold is certified, and then priced
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
        return float(ndtr_of_few((unit + 0.5 - threshold) / sigma))
    others = max_items - 1
    rest = np.floor(np.sqrt((unit**2 - ends[:-1] ** 2) // others)) + 1
    heavy = ndtr_of_few((ends[1:] + 0.5 - threshold) / sigma)
    return float((heavy + others * ndtr_of_few((rest + 0.5 - threshold) / sigma)).max())
