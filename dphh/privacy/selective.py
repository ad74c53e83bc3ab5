"""The weight of an item that passed a threshold, from the noised weight that it passed with.

An item is seen only if x + noise >= rho, so what is seen of it is too high on average: the less it
weighs, the more luck it took. Given that it was seen, its noised weight y has the noise's law cut
off below rho, and for each x

    P[Y >= y | seen] = S(y - x) / S(rho - x),        S(k) = P[noise >= k],

which grows with x, since the rounded Gaussian is log-concave. The interval holds the x for which
neither this nor P[Y <= y | seen] is below half of what may go wrong (Fithian, Sun & Taylor 2014 for
one truncated Gaussian; Lee, Sun, Sun & Taylor 2016). So among items that are seen, it holds the
weight with the stated probability, whatever the weight and however seldom it passes. It is made
from the release alone and costs nothing.

A weight is no number of users, but nobody adds more than one to it: the interval's low end is also
a low end for how many users hold the item.
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
    """Low and high ends, in grid units, of the weights of items that passed with these ones."""
    half = (1 - Fraction(checked_confidence(confidence))) / 2
    values, places = np.unique(noisy, return_inverse=True)
    if len(values) and values[0] < threshold:
        raise UsageError("score: found one below its level's threshold; give an unchanged release")
    if noise.survival(threshold) == 0:
        raise UsageError("score: noise alone never reaches this threshold; nothing can be inverted")
    pairs = list(_intervals(noise, threshold, values.tolist(), half))
    low, high = np.array(pairs, np.int64).reshape(-1, 2).T
    return low[places], high[places]


def _intervals(
    noise: RoundedGaussian, rho: int, ascending: list[int], half: Fraction
) -> Iterator[tuple[int, int]]:
    """The least and the largest weight x >= 0 that neither tail rejects, for each of the values.

    Ends move with y, well above rho by just as much: each is looked for where the last one says.
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
        low = _least(no_surprise_above, y - below, 0, end)
        over = _least(surprise_below, y - above, low, end)
        below, above = y - low, y - over
        yield low, max(low, over - 1)


def _least(holds: Callable[[int], bool], near: int, start: int, end: int) -> int:
    """The least x from start that holds, as all larger ones do; end if none below it does."""
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
