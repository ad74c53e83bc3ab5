"""The weighted Gaussian policy of DPSU in integers: weights, thresholds, and what will be found.

A user who holds t items adds floor(2^b / sqrt(t)) to each, so a user's vector has an L2 norm of at
most 2^b, exactly; the noise is round(N(0, sigma^2)) on the same grid. Everything from a user's rows
to the released set is an integer.

Threshold (Gopi et al. 2020; Theorem 2.1 of DPNE). Some of a user's t items that no other user holds
pass the threshold rho with probability at most t * P[noise >= rho - w_t], where w_t is the weight.
rho is the least integer that keeps this at most delta for every t <= D0. The papers use
(1 - delta)^(1/t) where this uses the union bound delta / t: the two differ by a factor of at most
1 / (1 - delta), and the union bound is the safe one.

Joint price. A user with only new items changes no count of others, and a user without new items
passes no threshold. So new items may cost nearly all of delta, and so may the Gaussian curve; a
user with some of each pays a part of both (`dphh.privacy.events.SetUnionEvent`; the proof:
docs/items.md).
"""

from __future__ import annotations

from fractions import Fraction
from math import nextafter

from dphh.errors import UsageError
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
