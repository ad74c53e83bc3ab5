"""How many users hold each of n public keys: what a user adds, and intervals for the counts.

What a user adds. With K = `max_items` and a grid where one user is g = 2^bits units, a user who
holds m <= K of the keys adds g to each. A user who holds more adds w(m) < g to each, and

    e(m) = ceil(S (g - w(m)) / g),   S = floor(g sqrt(K) / 2),

to the coordinate of their octave j, where K 2^(j-1) < m <= K 2^j: what bounding removed from each
of their keys, in units of 1/S of a user. w(m) is the largest integer with

    m w^2 + e^2 <= K g^2,

so adding or removing a user changes the vector of all n counts and all octaves by an L2 norm of at
most sqrt(K) g, exactly. Without e, w would be g sqrt(K / m); e reduces it by 1.1% at m = 2K, 3.4%
at m = 4K and never by more than 13.4%. If K >= n no user is bounded and there are no octaves.

Bounds on the true count. Let x be the sum of the weights at a key that n* users hold. Then

    g n* = x + lost,   lost = the sum of g - w(m_i) over the key's holders of more than K keys,

in integers. For any data, two facts bound what a key has lost to octaves j and above: the users of
an octave lose no more than they report, E_j g / S; and each loses at most r_j times what they add,
where r_j = (g - w) / w at the octave's top. So lost is at most the maximum of sum_j l_j subject to
sum_(i >= j) l_i <= U_j, the upper bound on sum_(i >= j) E_i g / S, and sum_j l_j / r_j <= x. As r_j
grows with j, a greedy choice from the top attains the maximum, which is a concave, piecewise linear
function of x with slopes r_j (`most_lost`).

The noise is round(N(0, sigma^2)) at every coordinate, independent. Interval ends come from the
rounded Gaussian's exact tails; sums of k octaves use |round(G) - G| <= 1/2 and the Gaussian's tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, expm1, isqrt, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.special import ndtri

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: The most keys in one release. The delta for the noise table's error allows for as many draws.
MOST_KEYS = 1_000_000
#: Limits of the grid, which is fine where the noise's table stays small, and finer if weights are.
FINEST_BITS = 10
EASY_SIGMA, LARGEST_SIGMA = 2**12, 2**17
#: The grid's goal for the least weight: rounding then costs it at most 3%.
LEAST_WEIGHT = 32
#: How an interval's failure probability is divided over its low end, its high end and the octaves.
LOW_SHARE, HIGH_SHARE, LOST_SHARE = Fraction(5, 10), Fraction(4, 10), Fraction(1, 10)
#: The relative error of float quantiles is below this.
_QUANTILE_MARGIN = 1e-9


@dataclass(frozen=True)
class Weighing:
    """What users add to the counts of `keys` public keys, at an L2 sensitivity of sqrt(K) users."""

    keys: int
    max_items: int
    bits: int

    @property
    def unit(self) -> int:
        """g: one user."""
        return 1 << self.bits

    @property
    def most(self) -> int:
        """K, at most the number of keys."""
        return min(self.max_items, self.keys)

    @property
    def lost_unit(self) -> int:
        """S: what a user whose whole weight is lost would add to an octave's coordinate."""
        return isqrt(self.most * self.unit**2 // 4)

    @property
    def octaves(self) -> int:
        """The number of octaves: how often K must double to reach all keys."""
        return (-(-self.keys // self.most) - 1).bit_length() if self.keys else 0

    def octave(self, held: Integers) -> Integers:
        """The octaves of users who hold these numbers of keys: 0 up to K, else 1 to `octaves`."""
        tops = self.most << np.arange(self.octaves + 1, dtype=np.int64)
        return np.searchsorted(tops, held).astype(np.int64)

    @cached_property
    def weights(self) -> Integers:
        """w(m) for m = 0 to `keys`."""
        g, adds = self.unit, np.arange(self.unit, 0, -1, dtype=np.int64)
        # A weight w, from g down, is allowed for users of up to (K g^2 - e^2) / w^2 keys.
        fits = (self.most * g * g - self._octave_reports(g - adds) ** 2) // (adds * adds)
        held = np.arange(self.keys + 1, dtype=np.int64)
        return g - np.searchsorted(fits, held).astype(np.int64)

    @cached_property
    def reports(self) -> Integers:
        """e(m) for m = 0 to `keys`."""
        return self._octave_reports(self.unit - self.weights)

    def _octave_reports(self, lost: Integers) -> Integers:
        return -(-self.lost_unit * lost // self.unit)

    @cached_property
    def ratios(self) -> Floats:
        """r_j for each octave: the largest ratio of a user's loss at a key to the user's weight."""
        tops = self.most << np.arange(1, self.octaves + 1, dtype=np.int64)
        least = self.weights[np.minimum(tops, self.keys)].astype(np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray((self.unit - least) / least)


def counts_bits(sigma: float, keys: int, max_items: int) -> int:
    """The grid for noise of `sigma` users on each count."""
    if sigma > LARGEST_SIGMA:
        raise UsageError(
            f"epsilon, max_items: the noise of {sigma:,.0f} users on every count would hide every "
            "count; give a larger epsilon or a smaller max_items"
        )
    least = LEAST_WEIGHT * sqrt(max(1.0, keys / max_items))
    for bits in range(FINEST_BITS + 1):
        finer = sigma * 2.0 ** (bits + 1)
        if finer > LARGEST_SIGMA or (finer > EASY_SIGMA and 2.0**bits >= least):
            return bits
    return FINEST_BITS


def sigma_on_grid(sigma: float, max_items: int, bits: int) -> int:
    """The least integer >= sigma sqrt(K) g: the noise for an L2 norm of sqrt(K) g, where K is
    `max_items` and g = 2^bits is one user on the grid."""
    square = Fraction(sigma) ** 2 * max_items * 4**bits
    return isqrt(ceil(square) - 1) + 1


@dataclass(frozen=True)
class Reach:
    """How far intervals extend below and above a noised weight, and above sums of octaves.

    `lost[k - 1]` is for the sum of the k highest octaves.
    """

    below: int
    above: int
    lost: tuple[int, ...]


@lru_cache(maxsize=16)
def interval_reach(sigma: int, confidence: float, octaves: int = 0, together: int = 1) -> Reach:
    """The reach of intervals that hold together, of `together` keys, with probability `confidence`.

    The keys' noises are independent, so each may fail with 1 - (1 - failing)^(1 / together); the
    octaves' share is divided evenly over their sums.
    """
    noise = rounded_gaussian(sigma)
    failing = 1 - Fraction(checked_confidence(confidence))
    lost = failing * LOST_SHARE if octaves else Fraction(0)
    each = _failing_share_of_each(failing - lost, together)
    low = each * LOW_SHARE / (LOW_SHARE + HIGH_SHARE) if octaves else each / 2
    return Reach(
        below=noise.smallest_with_tail_at_most(low) - 1,
        above=noise.smallest_with_tail_at_most(each - low) - 1,
        lost=tuple(_bound_of_sum(sigma, k, lost / octaves) for k in range(1, octaves + 1)),
    )


def _failing_share_of_each(failing: Fraction, together: int) -> Fraction:
    if together <= 1:
        return failing
    return Fraction(-expm1(log1p(-float(failing)) / together) * (1 - _QUANTILE_MARGIN))


def _bound_of_sum(sigma: int, terms: int, failing: Fraction) -> int:
    """What a sum of `terms` rounded Gaussians exceeds with probability at most `failing`."""
    z = -float(ndtri(float(failing))) * (1 + _QUANTILE_MARGIN)
    return ceil(max(z, 0.0) * sigma * sqrt(terms) + terms / 2)


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """Estimated counts with the low and high ends of their intervals."""

    users: Integers
    low: Integers
    high: Integers


def count_intervals(
    noisy: Integers,
    lost: Integers,
    weighing: Weighing,
    sigma: int,
    confidence: float,
    *,
    simultaneous: bool = False,
) -> CountIntervals:
    """Estimates and intervals, in whole users, from noised weights and the octaves' noised losses.

    [low, high] contains a key's true number of users with probability `confidence`, for any data;
    with `simultaneous`, all intervals do at once with that probability.
    """
    g = weighing.unit
    together = len(noisy) if simultaneous else 1
    reach = interval_reach(sigma, confidence, weighing.octaves, together)
    users = np.maximum(noisy + g // 2, 0) // g
    # A negative noised count gets the same high end as 0, so that "0 to 0" does not look certain.
    return _intervals(users, noisy, np.maximum(noisy, 0), lost, weighing, reach)


def simultaneous_intervals(
    users: Integers, lost: Integers, weighing: Weighing, sigma: int, confidence: float
) -> CountIntervals:
    """Intervals that all hold at once, for all keys of a release, from its estimates alone.

    An estimate tells its noised weight up to a rounding to whole users: users g - g // 2 is the
    least, if users > 0, and g - 1 more the most. So these contain what `count_intervals` says with
    `simultaneous`, and are at most one user wider at either end but for what bounding removed.
    """
    g = weighing.unit
    reach = interval_reach(sigma, confidence, weighing.octaves, weighing.keys)
    least = users * g - g // 2
    return _intervals(users, least, least + g - 1, lost, weighing, reach)


def _intervals(
    users: Integers,
    least: Integers,
    most: Integers,
    lost: Integers,
    weighing: Weighing,
    reach: Reach,
) -> CountIntervals:
    """The intervals of estimates whose noised weights lie between `least` and `most`."""
    g = weighing.unit
    low = np.maximum(-((reach.below - least) // g), 0)
    most = most + reach.above
    high = (most + most_lost(most, lost, weighing, reach)) // g
    # An interval without a whole number has missed the truth; extend it to its own estimate.
    return CountIntervals(users, np.minimum(low, users), np.maximum(high, users))


def most_lost(weights: Integers, lost: Integers, weighing: Weighing, reach: Reach) -> Integers:
    """The most that bounding can have removed from keys of at most these weights, in grid units.

    `lost` are the octaves' noised losses, from the lowest octave. The result is rounded up.
    """
    if not weighing.octaves:
        return np.zeros_like(weights)
    noised = np.cumsum(lost[::-1])  # of the highest octave, of the two highest, ...
    scale = weighing.unit / weighing.lost_unit
    upper = np.maximum(noised + np.asarray(reach.lost), 0) * scale
    # A sum over more octaves is no smaller, so its bound also bounds the shorter sums.
    upper = np.minimum.accumulate(upper[::-1])[::-1]
    slopes = weighing.ratios[::-1]
    bends = np.cumsum(np.diff(upper, prepend=0.0) / slopes)
    bent = np.interp(weights, np.append(0.0, bends), np.append(0.0, upper))
    lost_at_most: Integers = np.ceil(bent).astype(np.int64)
    return lost_at_most + 1  # one unit covers the rounding errors of the floats


def checked_confidence(confidence: float) -> float:
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    if not number or not 0.5 <= confidence <= 1 - 1e-9:
        raise UsageError(
            f"confidence: found {confidence!r}; give a probability from 0.5, such as 0.95, and "
            "below 1"
        )
    return float(confidence)
