"""How many users hold each of n public keys: what a user adds, and intervals for the counts.

Bounds on the true count. Let x be the sum of the weights at a key that n* users hold. Then

    g n* = x + lost,   lost = the sum of g - w_i over the key's bounded holders,

in integers. For any data, two facts bound what a key has lost to classes j and above: the users of
a class lose no more than their coordinate's sum E_j says, E_j g / S; and each loses at most r_j
times what they add, where r_j = (g - w) / w at the least weight of the class, a public number. So
lost is at most the maximum of sum_j l_j subject to sum_(i >= j) l_i <= U_j, the upper bound on
sum_(i >= j) E_i g / S, and sum_j l_j / r_j <= x. As r_j grows with j, a greedy choice from the top
attains the maximum, a concave, piecewise linear function of x with slopes r_j
(`most_removed_by_bounding`).

The noise is round(N(0, sigma^2)) at every coordinate, independent. Interval ends come from the
rounded Gaussian's exact tails; sums of k losses use |round(G) - G| <= 1/2 and the Gaussian's tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, expm1, isqrt, log1p, sqrt

import numpy as np

from dphh.errors import UsageError
from dphh.privacy.search import ndtri
from dphh.privacy.set_union import LARGEST_GRID_SIGMA
from dphh.udfs.arrays import Integers
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.counts import HeldHistogram, Weighing

#: The most keys in one release. The delta for errors of the noise's table covers so many draws.
MOST_KEYS = 1_000_000
#: One user is 2^b grid units, with the largest b up to FINEST_BITS at which the noise's sigma is at
#: most EASY_SIGMA units; or at most LARGEST_GRID_SIGMA, until the even weight sqrt(K / n) of a user
#: of all keys has LEAST_WEIGHT_GOAL units.
FINEST_BITS, EASY_SIGMA, LEAST_WEIGHT_GOAL = 10, 2**12, 32
#: How an interval's failure probability is divided over its low end, its high end and the losses.
LOW_SHARE, HIGH_SHARE, LOST_SHARE = Fraction(5, 10), Fraction(4, 10), Fraction(1, 10)
#: How many sigmas of noise weigh as much as a user whom bounding removes from all keys, where K is
#: chosen. An interval's width alone, 4 sigmas, is all but the same over a range of K; 8 takes the
#: smaller ones, where estimates err a tenth less.
SIGMAS_A_USER = 8
#: So many sigmas are what the losses' own noise adds to an interval, wherever somebody is bounded.
SIGMAS_OF_LOSSES = 9
#: So few keys count in full by this weighing, whatever users hold.
FEW_KEYS = (1 + SIGMAS_OF_LOSSES / SIGMAS_A_USER) ** 2
#: More than the relative error of a normal quantile that is computed in floats.
_QUANTILE_MARGIN = 1e-9


def counts_grid_bits(sigma: float, keys: int, max_items: int) -> int:
    """b, where one user is 2^b grid units, for noise of `sigma` users on each count."""
    if sigma > LARGEST_GRID_SIGMA:
        raise UsageError(
            f"epsilon, max_items: the noise of {sigma:,.0f} users on every count would hide every "
            "count; give a larger epsilon or a smaller max_items"
        )
    least = LEAST_WEIGHT_GOAL * sqrt(max(1.0, keys / max_items))
    for bits in range(FINEST_BITS + 1):
        finer = sigma * 2.0 ** (bits + 1)
        if finer > LARGEST_GRID_SIGMA or (finer > EASY_SIGMA and 2.0**bits >= least):
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
    un-noised sum of the k highest losses may lie above the noised one: `lost[k - 1]`."""

    below: int
    above: int
    lost: tuple[int, ...]


@lru_cache(maxsize=16)
def interval_margins(
    sigma: int,
    confidence: float,
    loss_count: int = 0,
    keys_at_once: int = 1,
    shown: Fraction | None = None,
) -> IntervalMargins:
    """The margins with which the intervals of `keys_at_once` keys all hold with probability
    `confidence`.

    The keys' noises are independent, so each interval may fail with probability
    1 - (1 - failing)^(1 / keys_at_once); the losses' share is divided evenly over their sums. Of
    keys of which those are shown whose intervals begin high, `shown` is the share that is
    (`dphh.privacy.chosen`): low ends may fail so many times as often, and high ends a little less.
    """
    noise = rounded_gaussian(sigma)
    failing = 1 - Fraction(checked_confidence(confidence))
    lost = failing * LOST_SHARE if loss_count else Fraction(0)
    each = failing - lost
    if keys_at_once > 1:
        each = Fraction(-expm1(log1p(-float(each)) / keys_at_once) * (1 - _QUANTILE_MARGIN))
    low = each * LOW_SHARE / (LOW_SHARE + HIGH_SHARE) if loss_count else each / 2
    high = each - low
    if shown is not None:
        low, high = low * shown, high / (1 + high)
    return IntervalMargins(
        below=noise.smallest_with_tail_at_most(low) - 1,
        above=noise.smallest_with_tail_at_most(high) - 1,
        lost=lost_margins(sigma, loss_count, lost),
    )


def lost_margins(sigma: int, loss_count: int, failing: Fraction) -> tuple[int, ...]:
    """How far the un-noised sum of the k highest losses may lie above the noised one, for each k.
    All hold but with probability `failing`."""
    return tuple(
        _bound_of_noise_sum(sigma, k, failing / loss_count) for k in range(1, loss_count + 1)
    )


def _bound_of_noise_sum(sigma: int, draws: int, failing: Fraction) -> int:
    """What the sum of so many draws of noise exceeds with probability `failing` at most."""
    return ceil(upper_quantile(float(failing)) * sigma * sqrt(draws) + draws / 2)


def upper_quantile(failing: float) -> float:
    """What a standard Gaussian exceeds with probability `failing` at most; 0 at least."""
    return max(-float(ndtri(failing)) * (1 + _QUANTILE_MARGIN), 0.0)


def count_intervals(
    noised: Integers,
    losses: Integers,
    weighing: Weighing,
    sigma: int,
    confidence: float,
    *,
    simultaneous: bool = False,
    shown: Fraction | None = None,
) -> tuple[Integers, Integers, Integers]:
    """Estimates, which noise may take below 0, and the low and high ends of their intervals, in
    whole users, from the noised weights of keys and the noised losses of classes.

    [low, high] contains a key's true number of users with probability `confidence`, for any data;
    with `simultaneous`, all intervals do at once with that probability. `shown`: the share that is
    shown, where that goes by the intervals (`interval_margins`).
    """
    g = weighing.unit
    keys_at_once = weighing.keys if simultaneous else 1
    margins = interval_margins(sigma, confidence, weighing.class_count, keys_at_once, shown)
    estimates = (noised + g // 2) // g
    low = np.maximum(-((margins.below - noised) // g), 0)
    # A negative noised count gets the same high end as 0, so that "0 to 0" does not look certain.
    most = np.maximum(noised, 0) + margins.above
    high = (most + most_removed_by_bounding(most, losses, weighing, margins)) // g
    # An interval without a whole number has missed the true one; it is extended to the number that
    # is shown as users.
    users = np.maximum(estimates, 0)
    return estimates, np.minimum(low, users), np.maximum(high, users)


def most_removed_by_bounding(
    unnoised: Integers, losses: Integers, weighing: Weighing, margins: IntervalMargins
) -> Integers:
    """The most grid units that bounding can have removed from a key, for each upper bound in
    `unnoised` on the key's un-noised sum. `losses` are noised, from the first class."""
    if not weighing.class_count:
        return np.zeros_like(unnoised)
    noised = np.cumsum(losses[::-1])  # of the highest class, the two highest, ...
    scale = weighing.unit / weighing.loss_unit
    upper = np.maximum(noised + np.asarray(margins.lost), 0) * scale
    # A sum over more classes is no smaller, so its bound also bounds the shorter sums.
    upper = np.minimum.accumulate(upper[::-1])[::-1]
    slopes = weighing.loss_ratios[::-1]
    bends = np.cumsum(np.diff(upper, prepend=0.0) / slopes)
    bent = np.interp(unnoised, np.append(0.0, bends), np.append(0.0, upper))
    rounded_up: Integers = np.ceil(bent).astype(np.int64)
    return rounded_up + 1  # one unit covers the rounding errors of the floats


def chosen_bound(held: Integers, keys: int, relative_sigma: float) -> int:
    """K, chosen by a noised histogram of how many of `keys` keys users hold, for counts whose noise
    is `relative_sigma` sqrt(K) users.

    It has the least sum of what noise makes of an interval, of counts and of losses, and what
    bounding removes from all users, as far as the histogram shows. Whatever is chosen, intervals
    hold and the norm is sqrt(K): noise makes the choice worse, not wrong.
    """
    tops = HeldHistogram(keys).tops
    choices = tops[relative_sigma * np.sqrt(tops) <= LARGEST_GRID_SIGMA]

    def cost(most: int) -> float:
        weighing = Weighing(keys, most, FINEST_BITS)
        weights = weighing.weights(tops, np.full(len(tops), weighing.least_cap))
        lost = float(held @ (1 - weights / weighing.unit))
        sigmas = SIGMAS_A_USER * sqrt(most) + SIGMAS_OF_LOSSES * (most < keys)
        return sigmas * relative_sigma + max(lost, 0.0)

    return min(map(int, choices), key=cost)


def checked_confidence(confidence: float) -> float:
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    if not number or not 0.5 <= confidence <= 1 - 1e-9:
        raise UsageError(
            f"confidence: found {confidence!r}; give a probability of at least 0.5 and below 1, "
            "such as 0.95"
        )
    return float(confidence)
