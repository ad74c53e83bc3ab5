"""How many users hold each of n public keys: what a user adds, and intervals for the counts.

What a user adds. With K = `max_items` and a grid where one user is g = 2^bits units, a user who
holds m <= K of the keys adds g to each. A user who holds more adds w(m) < g to each, and

    e(m) = ceil(S (g - w(m)) / g),   S = floor(g sqrt(K) / 2),

to one more coordinate, which all users of the same octave share: octave 1 are the users who hold
more than K and up to 2K keys, octave 2 those of up to 4K, octave j those with K 2^(j-1) < m <=
K 2^j. e(m) is what bounding removed from each of their keys, in units of 1/S of a user. w(m) is the
largest integer with

    m w^2 + e^2 <= K g^2,

so adding or removing a user changes the vector of all n counts and all octaves by an L2 norm of at
most sqrt(K) g, exactly. Without e, w would be g sqrt(K / m); e reduces it by 1.1% at m = 2K, 3.4%
at m = 4K and never by more than 13.4%. If K >= n no user is bounded and there are no octaves.

Bounds on the true count. Let x be the sum of the weights at a key that n* users hold. Then

    g n* = x + lost,   lost = the sum of g - w(m_i) over the key's holders of more than K keys,

in integers. For any data, two facts bound what a key has lost to octaves j and above: the users of
an octave lose no more than their coordinate's sum E_j says, E_j g / S; and each loses at most r_j
times what they add,
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
#: A user is 2^FINEST_BITS grid units at most, fewer if the noise would exceed EASY_SIGMA units, or
#: LARGEST_SIGMA while the least weight is below LEAST_WEIGHT_GOAL units.
FINEST_BITS = 10
EASY_SIGMA, LARGEST_SIGMA = 2**12, 2**17
#: If the least weight has this many grid units, rounding costs it at most 3%.
LEAST_WEIGHT_GOAL = 32
#: How an interval's failure probability is divided over its low end, its high end and the octaves.
LOW_SHARE, HIGH_SHARE, LOST_SHARE = Fraction(5, 10), Fraction(4, 10), Fraction(1, 10)
#: The relative error of float quantiles is below this.
_QUANTILE_MARGIN = 1e-9


@dataclass(frozen=True)
class Weighing:
    """What a user adds to the counts of `keys` public keys and to the octaves, which follow the
    keys. The L2 sensitivity is sqrt(K) users."""

    keys: int
    max_items: int
    bits: int

    @property
    def unit(self) -> int:
        """g: the grid units of one user."""
        return 1 << self.bits

    @property
    def most_in_full(self) -> int:
        """K: who holds at most so many keys adds one user to each. At most the number of keys."""
        return min(self.max_items, self.keys)

    @property
    def lost_unit(self) -> int:
        """S: what a user would add to the octave's coordinate if bounding removed all of a user."""
        return isqrt(self.most_in_full * self.unit**2 // 4)

    @property
    def octaves(self) -> int:
        """The number of octaves (users of K to 2K keys, 2K to 4K, ..., up to all keys)."""
        return (-(-self.keys // self.most_in_full) - 1).bit_length() if self.keys else 0

    def octave(self, held: Integers) -> Integers:
        """The octave of a user who holds `held` keys: 0 up to K keys, 1 up to 2K, 2 up to 4K."""
        tops = self.most_in_full << np.arange(self.octaves + 1, dtype=np.int64)
        return np.searchsorted(tops, held).astype(np.int64)

    @cached_property
    def weights(self) -> Integers:
        """w(m), what a user of m keys adds to each, for m = 0 to `keys`."""
        g, adds = self.unit, np.arange(self.unit, 0, -1, dtype=np.int64)
        # A weight w, from g down, is allowed for users of up to (K g^2 - e^2) / w^2 keys.
        fits = (self.most_in_full * g * g - self._weights_at_octave(g - adds) ** 2) // (adds * adds)
        held = np.arange(self.keys + 1, dtype=np.int64)
        return g - np.searchsorted(fits, held).astype(np.int64)

    @cached_property
    def octave_weights(self) -> Integers:
        """e(m), what a user of m keys adds to the octave, for m = 0 to `keys`; 0 up to K."""
        return self._weights_at_octave(self.unit - self.weights)

    def _weights_at_octave(self, lost: Integers) -> Integers:
        return -(-self.lost_unit * lost // self.unit)

    @cached_property
    def loss_ratios(self) -> Floats:
        """r_j of each octave: the most that a user loses at a key, relative to the user's
        weight."""
        tops = self.most_in_full << np.arange(1, self.octaves + 1, dtype=np.int64)
        least = self.weights[np.minimum(tops, self.keys)].astype(np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray((self.unit - least) / least)


def counts_bits(sigma: float, keys: int, max_items: int) -> int:
    """b, where one user is 2^b grid units, for noise of `sigma` users on each count."""
    if sigma > LARGEST_SIGMA:
        raise UsageError(
            f"epsilon, max_items: the noise of {sigma:,.0f} users on every count would hide every "
            "count; give a larger epsilon or a smaller max_items"
        )
    least = LEAST_WEIGHT_GOAL * sqrt(max(1.0, keys / max_items))
    for bits in range(FINEST_BITS + 1):
        finer = sigma * 2.0 ** (bits + 1)
        if finer > LARGEST_SIGMA or (finer > EASY_SIGMA and 2.0**bits >= least):
            return bits
    return FINEST_BITS


def sigma_on_grid(sigma: float, max_items: int, bits: int) -> int:
    """The noise in grid units, rounded up: sigma sqrt(K) g, where K is `max_items` and a user is
    g = 2^bits units."""
    square = Fraction(sigma) ** 2 * max_items * 4**bits
    return isqrt(ceil(square) - 1) + 1


@dataclass(frozen=True)
class IntervalMargins:
    """How far, in grid units, an interval extends below and above a noised weight; and how far the
    un-noised sum of the k highest octaves may lie above the noised one: `lost[k - 1]`."""

    below: int
    above: int
    lost: tuple[int, ...]


@lru_cache(maxsize=16)
def interval_margins(
    sigma: int, confidence: float, octaves: int = 0, keys_at_once: int = 1
) -> IntervalMargins:
    """The margins with which the intervals of `keys_at_once` keys hold at once, with probability
    `confidence`.

    The keys' noises are independent, so each interval may fail with probability
    1 - (1 - failing)^(1 / keys_at_once); the octaves' share is divided evenly over their sums.
    """
    noise = rounded_gaussian(sigma)
    failing = 1 - Fraction(checked_confidence(confidence))
    lost = failing * LOST_SHARE if octaves else Fraction(0)
    each = _failure_probability_of_each(failing - lost, keys_at_once)
    low = each * LOW_SHARE / (LOW_SHARE + HIGH_SHARE) if octaves else each / 2
    return IntervalMargins(
        below=noise.smallest_with_tail_at_most(low) - 1,
        above=noise.smallest_with_tail_at_most(each - low) - 1,
        lost=tuple(_bound_of_sum(sigma, k, lost / octaves) for k in range(1, octaves + 1)),
    )


def _failure_probability_of_each(failing: Fraction, keys_at_once: int) -> Fraction:
    if keys_at_once <= 1:
        return failing
    return Fraction(-expm1(log1p(-float(failing)) / keys_at_once) * (1 - _QUANTILE_MARGIN))


def _bound_of_sum(sigma: int, terms: int, failing: Fraction) -> int:
    """What a sum of `terms` rounded Gaussians exceeds with probability `failing` at most."""
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
    """Estimates and intervals, in whole users. `noisy` are the keys' noised weights, `lost` the
    octaves' noised sums.

    [low, high] contains a key's true number of users with probability `confidence`, for any data;
    with `simultaneous`, all intervals do at once with that probability.
    """
    g = weighing.unit
    keys_at_once = len(noisy) if simultaneous else 1
    margins = interval_margins(sigma, confidence, weighing.octaves, keys_at_once)
    users = np.maximum(noisy + g // 2, 0) // g
    # A negative noised count gets the same high end as 0, so that "0 to 0" does not look certain.
    return _intervals(users, noisy, np.maximum(noisy, 0), lost, weighing, margins)


def simultaneous_intervals(
    users: Integers, lost: Integers, weighing: Weighing, sigma: int, confidence: float
) -> CountIntervals:
    """Intervals that all hold at once, for all keys of a release, from its estimates alone.

    An estimate tells its noised weight up to a rounding to whole users: users g - g // 2 is the
    least, if users > 0, and g - 1 more the most. So these contain what `count_intervals` says with
    `simultaneous`, and are at most one user wider at either end but for what bounding removed.
    """
    g = weighing.unit
    margins = interval_margins(sigma, confidence, weighing.octaves, weighing.keys)
    least = users * g - g // 2
    return _intervals(users, least, least + g - 1, lost, weighing, margins)


def _intervals(
    users: Integers,
    least: Integers,
    most: Integers,
    lost: Integers,
    weighing: Weighing,
    margins: IntervalMargins,
) -> CountIntervals:
    """The intervals of estimates whose noised weights lie between `least` and `most`."""
    g = weighing.unit
    low = np.maximum(-((margins.below - least) // g), 0)
    most = most + margins.above
    high = (most + most_lost(most, lost, weighing, margins)) // g
    # Without a whole number an interval has missed the true number; it is extended to the estimate.
    return CountIntervals(users, np.minimum(low, users), np.maximum(high, users))


def most_lost(
    weights: Integers, lost: Integers, weighing: Weighing, margins: IntervalMargins
) -> Integers:
    """The most that bounding can have removed from a key whose un-noised weight is at most so many
    grid units, for each of `weights`; rounded up. `lost` are the octaves' noised sums, from the
    lowest octave."""
    if not weighing.octaves:
        return np.zeros_like(weights)
    noised = np.cumsum(lost[::-1])  # the highest octave, the two highest, ...
    scale = weighing.unit / weighing.lost_unit
    upper = np.maximum(noised + np.asarray(margins.lost), 0) * scale
    # A sum over more octaves is no smaller, so its bound also bounds the shorter sums.
    upper = np.minimum.accumulate(upper[::-1])[::-1]
    slopes = weighing.loss_ratios[::-1]
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
