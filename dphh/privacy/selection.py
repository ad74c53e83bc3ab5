"""Calibration of optimal selection: the truncated geometric noise with the least reach.

Desfontaines, Voss, Gipson and Mandayam (2022): where each user adds 1 to one item, an item is
selected with the largest probability that (epsilon, delta) allows by adding truncated geometric
noise to its count, and releasing it if the sum is above the noise's reach.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from math import floor, nextafter

from dphh.errors import UsageError
from dphh.privacy.search import least_whole
from dphh.udfs.noise.truncated import ONE_WORD, RATIO_BITS, TruncatedGeometric

#: Longer tables are refused: below about epsilon 0.002 other methods find no less.
MOST_REACH = 1 << 13
#: Larger ratios do not fit a 64-bit integer.
LARGEST_EPSILON = 20.0
_EXACT = Context(prec=60)


def ratio_below_exp(epsilon: float) -> int:
    """e^epsilon in units of 2^-RATIO_BITS, rounded down."""
    exact = _EXACT.multiply(_EXACT.exp(Decimal(epsilon)), Decimal(1 << RATIO_BITS))
    return int(_EXACT.multiply(exact, Decimal(1) - Decimal(10) ** -50))


@lru_cache(maxsize=64, typed=True)
def selection_noise(epsilon: float, delta: float) -> TruncatedGeometric:
    """The noise of the least reach for (epsilon, delta); of that reach, the least edge."""
    most_edge = floor(delta * ONE_WORD)  # exact: a product with a power of two
    if epsilon <= LARGEST_EPSILON and most_edge:
        ratio = ratio_below_exp(epsilon)

        def covers(reach: int, edge: int) -> bool:
            """Whether 0 is left with no more than its neighbours allow."""
            units = TruncatedGeometric(ratio, reach, edge).units
            return units[reach] << RATIO_BITS <= ratio * units[reach - 1]

        if covers(MOST_REACH, most_edge):
            reach = least_whole(lambda reach: covers(reach, most_edge), 0, MOST_REACH)
            edge = least_whole(lambda edge: covers(reach, edge), 0, most_edge)
            for found in (edge, most_edge):
                noise = TruncatedGeometric(ratio, reach, found)
                if noise.is_private:
                    return noise
    raise UsageError(
        f"epsilon, delta: found {epsilon:g}, {delta:g}; method 'single' has no noise for them. "
        "Give an epsilon from 0.01 to 20 and a delta above 1e-15, or method='gaussian'"
    )


def delta_of(noise: TruncatedGeometric) -> float:
    """P(noise = reach), rounded up."""
    return nextafter(noise.edge / ONE_WORD, 1.0)
