"""How likely noise alone makes an item appear: missed by an earlier release, found by a later one.

Hypothesis: the item had at least the same weight x in the earlier release as in the later one. Both
noises are independent, so the probability that the earlier release misses the item and the later
one releases it with a score of at least y is at most

    sup over x >= 0 of  P[x + noise_later >= y]  P[x + noise_earlier < rho],

where rho is the earlier threshold. The product is log-concave in x, so bisection on the derivative
of its logarithm finds the supremum. It is a p-value: these events are nested in y, so whatever x
is, the probability that the value is at most alpha is at most alpha. It needs no condition on being
released, because the event contains it. The rounded Gaussian reaches an integer k with the
probability that the Gaussian reaches k - 1/2, exactly.

An item may pass in any of several rounds of the later release, hence a sum over its rounds. Of the
earlier release the last round counts: no round gives an item more weight than the last, because
items that were released before it no longer take weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))
#: More than the floats of bisection and of the Gaussian's tail lose.
_ROUND_UP = 1 + 1e-9


class Round(NamedTuple):
    """One noised histogram: its threshold and sigma as integers on a grid of `unit` a weight."""

    threshold: int
    sigma: int
    unit: int


def most_by_noise(scores: Floats, later: Sequence[Round], earlier: Round) -> Floats:
    """The bound for each score of the later release, in whole weights; at most 1."""
    from scipy.special import log_ndtr  # slow to import

    missed, spread = (earlier.threshold - 0.5) / earlier.unit, earlier.sigma / earlier.unit
    total = np.zeros(len(scores))
    for each in later:
        # Rounded, because a score is an integer on the grid of the round that released it alone.
        least = (np.maximum(np.floor(scores * each.unit), each.threshold) - 0.5) / each.unit
        weight = _likeliest_weight(least, each.sigma / each.unit, missed, spread)
        total += np.exp(
            log_ndtr((weight - least) * each.unit / each.sigma)
            + log_ndtr((missed - weight) / spread)
        )
    bound: Floats = np.minimum(total * _ROUND_UP, 1.0)
    return bound


def _likeliest_weight(least: Floats, sigma: float, missed: float, spread: float) -> Floats:
    """The weight x >= 0 of an item that the later release finds and the earlier one missed most
    likely: where Phi((x - least) / sigma) Phi((missed - x) / spread) is largest."""
    reach = 10 * max(sigma, spread)
    low = np.minimum(least, missed) - reach
    high = np.maximum(least, missed) + reach
    for _ in range(80):
        middle = (low + high) / 2
        rising = (
            _slope_of_log_phi((middle - least) / sigma) / sigma
            > _slope_of_log_phi((missed - middle) / spread) / spread
        )
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.maximum((low + high) / 2, 0.0)


def _slope_of_log_phi(z: Floats) -> Floats:
    """The derivative of log Phi."""
    from scipy.special import log_ndtr

    slope: Floats = np.exp(-z * z / 2 - _HALF_LOG_TWO_PI - log_ndtr(z))
    return slope
