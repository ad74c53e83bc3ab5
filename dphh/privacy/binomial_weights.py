"""The probabilities of a binomial as integer weights of 256 bits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

#: The mode's weight is 2^256.
BITS = 256


def binomial_weights(n: int, p: Fraction) -> Iterator[tuple[int, int]]:
    """(k, weight) of Binomial(n, p), 0 < p < 1, with weights in proportion to the probabilities:
    from the mode upwards, then downwards.

    Each weight is its neighbour's times the ratio of their probabilities, rounded down, until it is
    0: the weight j steps from the mode is low by at most j.
    """
    success, failure = p.numerator, p.denominator - p.numerator
    mode = (n + 1) * success // p.denominator  # at most n, as p < 1
    k, weight = mode, 1 << BITS
    while weight:
        yield k, weight
        weight = weight * ((n - k) * success) // ((k + 1) * failure)
        k += 1
    k, weight = mode, 1 << BITS
    while True:
        weight = weight * (k * failure) // ((n - k + 1) * success)
        k -= 1
        if not weight:
            return
        yield k, weight
