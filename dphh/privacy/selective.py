"""Intervals for the weight of an item that passed a threshold, from its noised weight.

An item is seen only if x + noise >= rho, so its noised weight is too high on average: the lower its
weight x, the larger the bias. Conditional on being seen, its noised weight y is truncated at rho,
and for each x

    P[Y >= y | seen] = S(y - x) / S(rho - x),        S(k) = P[noise >= k],

which grows with x, since the rounded Gaussian is log-concave. The interval contains the x for which
neither this nor P[Y <= y | seen] is below half of 1 - confidence (Fithian, Sun & Taylor 2014 for
one truncated Gaussian; Lee, Sun, Sun & Taylor 2016). So among items that are seen, it contains the
weight with the stated probability, for any weight, however rarely it passes. It is computed from
the release alone, so it costs no privacy.

A weight is not a number of users, but each user adds at most one to it: the interval's low end is
also a lower bound for the number of users who hold the item.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.privacy.counts import checked_confidence
from dphh.privacy.rounded_gaussian import RoundedGaussian

Integers = NDArray[np.int64]


def weight_intervals(
    noise: RoundedGaussian, threshold: int, noisy: Integers, confidence: float
) -> tuple[Integers, Integers]:
    """The intervals' low and high ends, in grid units, for items with these noised weights."""
    half = (1 - Fraction(checked_confidence(confidence))) / 2
    values, places = np.unique(noisy, return_inverse=True)
    if len(values) and values[0] < threshold:
        raise UsageError("score: found one below its level's threshold; load the release again")
    if noise.survival(threshold) == 0:
        raise UsageError(
            "score: noise alone never reaches this threshold, so there is no interval; use the "
            "scores without intervals"
        )
    pairs = list(_intervals_of(noise, threshold, values.tolist(), half))
    low, high = np.array(pairs, np.int64).reshape(-1, 2).T
    return low[places], high[places]


def _intervals_of(
    noise: RoundedGaussian, rho: int, ascending: list[int], half: Fraction
) -> Iterator[tuple[int, int]]:
    """The least and the largest weight x >= 0 that neither tail rejects, for each of the values.

    The ends grow with y, one for one well above rho, so each search starts from the previous ends.
    """
    num, den = half.numerator, half.denominator
    survival = cache(noise.survival)
    below, above = 0, noise.reach  # y less the last ends
    for y in ascending:

        def no_surprise_above(x: int, y: int = y) -> bool:  # once true, true for every larger x
            return survival(y - x) * den > num * survival(rho - x)

        def surprise_below(x: int, y: int = y) -> bool:  # likewise
            seen = survival(rho - x)
            return (seen - survival(y + 1 - x)) * den <= num * seen

        end = y + noise.reach + 2
        low = _least_that_holds(no_surprise_above, y - below, 0, end)
        over = _least_that_holds(surprise_below, y - above, low, end)
        below, above = y - low, y - over
        yield low, max(low, over - 1)


def _least_that_holds(holds: Callable[[int], bool], near: int, start: int, end: int) -> int:
    """The least x >= start for which the monotone `holds` is true; `end` if there is none below."""
    near, step = min(max(near, start), end - 1), 1
    if holds(near):
        while near - step >= start and holds(near - step):
            near, step = near - step, 2 * step
        low, high = max(near - step + 1, start), near
    else:
        while near + step < end and not holds(near + step):
            near, step = near + step, 2 * step
        low, high = near + 1, min(near + step, end)
    return bisect_left(range(end), True, lo=low, hi=high, key=holds)
