"""Integer weights in proportion to a binomial's probabilities, for exact draws from them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

#: The weight of the binomial's mode, its likeliest number, is 2^MODE_BITS.
MODE_BITS = 256


def approximate_binomial_weights(n: int, p: Fraction) -> Iterator[tuple[int, int]]:
    """Pairs (k, integer weight) for Binomial(n, p), 0 < p < 1: from the mode upwards, then from
    below the mode downwards.

    A weight is that of the k before it, times the ratio of their probabilities, rounded down. So j
    steps from the mode it is too low by at most j. Both tails are left out where it is 0.
    """
    success, failure = p.numerator, p.denominator - p.numerator
    mode = (n + 1) * success // p.denominator  # the mode is at most n, since p < 1
    k, weight = mode, 1 << MODE_BITS
    while weight:
        yield k, weight
        weight = weight * ((n - k) * success) // ((k + 1) * failure)
        k += 1
    k, weight = mode, 1 << MODE_BITS
    while True:
        weight = weight * (k * failure) // ((n - k + 1) * success)
        k -= 1
        if not weight:
            return
        yield k, weight
