"""How many users hold each of n public keys: what a user adds, and intervals for the counts.

Bounds on the true count. Let x be the sum of the weights at a key of factor f that n* users hold.
Then, in integers (`udfs/rules/counts.py` has f, g, S and w),

    f g n* = x + f lost,   lost = the sum of g - w over the key's bounded holders.

For any data, two facts bound what a key has lost: its bounded holders lose no more than all bounded
users of its group and of several, of whom two losses with the sum E say E g / S at most; and each
loses at most r times what they add, which is f w, where r = (g - w) / w at the least w, a public
number. So f g n* <= min(x + f E g / S, (1 + r) x). Of the first, the noise of x and that of the
losses are one Gaussian together.

The noise is round(N(0, sigma^2)) at every coordinate, independent. Interval ends come from the
rounded Gaussian's exact tails, in units of f g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, expm1, isqrt, log1p, log2, sqrt
from statistics import NormalDist

import numpy as np

from dphh.errors import UsageError
from dphh.privacy.set_union import LARGEST_GRID_SIGMA
from dphh.udfs.arrays import Integers
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.counts import HeldHistogram, Weighing
from dphh.wording.options import is_number

#: The most keys in one release. The delta for errors of the noise's table covers so many draws.
MOST_KEYS = 1_000_000
#: One user is 2^b grid units, with the largest b up to FINEST_BITS at which the noise's sigma is at
#: most EASY_SIGMA units.
FINEST_BITS, EASY_SIGMA = 10, 2**16
#: How an interval's failure probability is divided over its low end, and its high end by what
#: losses say and by what the key's holders can have lost.
LOW_SHARE, LOSSES_SHARE, HOLDERS_SHARE = Fraction(5, 10), Fraction(4, 10), Fraction(1, 10)
#: How many sigmas of noise weigh as much as a user whom bounding removes from all keys, where K is
#: chosen: at 4, an interval's width is least; at 20, the estimate's error.
SIGMAS_A_USER = 12
#: So few keys count in full without a histogram: by two, noise would be 0.7 of what it is.
FEW_KEYS = 4
#: The factor of the commonest key. Larger ones would be rounded less, on a coarser grid.
LEAST_FACTOR = 4
#: More than the relative error of a normal quantile that is computed in floats.
_QUANTILE_MARGIN = 1e-9


def counts_grid_bits(sigma: float) -> int:
    """b, where one user is 2^b grid units, for noise of `sigma` users on each count."""
    if sigma > LARGEST_GRID_SIGMA:
        raise UsageError(
            f"epsilon, max_items: the noise of {sigma:,.0f} users on every count would hide every "
            "count; give a larger epsilon or a smaller max_items"
        )
    return min(max(int(log2(EASY_SIGMA / sigma)), 0), FINEST_BITS)


def sigma_on_grid(sigma: float, max_items: int, bits: int) -> int:
    """The noise in grid units, rounded up: sigma sqrt(K) g, where K is `max_items` and a user is
    g = 2^bits units."""
    square = Fraction(sigma) ** 2 * max_items * 4**bits
    return isqrt(ceil(square) - 1) + 1


@dataclass(frozen=True)
class IntervalMargins:
    """How far, in grid units, an interval extends below a noised weight, and how far the un-noised
    one may lie above it; and of how many standard deviations, of its noise and that of losses
    together, is the margin of what losses say (0: no user is bounded)."""

    below: int
    above: int
    deviations: float = 0.0


@lru_cache(maxsize=16)
def interval_margins(
    sigma: int,
    confidence: float,
    losses: int = 0,
    keys_at_once: int = 1,
    shown: Fraction | None = None,
) -> IntervalMargins:
    """The margins with which the intervals of `keys_at_once` keys all hold with probability
    `confidence`.

    Keys have noises of losses in common, and hold together at least as often as if each had its
    own. Of keys of which those are shown whose intervals begin high, `shown` is the share that is
    (`chosen_intervals`): low ends may fail so many times as often.
    """
    noise = rounded_gaussian(sigma)
    failing = 1 - Fraction(checked_confidence(confidence))
    if keys_at_once > 1:
        each = -expm1(log1p(-float(failing)) / keys_at_once)
        failing = Fraction(each * (1 - _QUANTILE_MARGIN))
    low = failing * LOW_SHARE * (1 if shown is None else shown)
    high = failing * (HOLDERS_SHARE if losses else 1 - LOW_SHARE)
    below, above = (noise.smallest_with_tail_at_most(part) - 1 for part in (low, high))
    deviations = upper_quantile(float(failing * LOSSES_SHARE)) if losses else 0.0
    return IntervalMargins(below, above, deviations)


def upper_quantile(failing: float) -> float:
    """What a standard Gaussian exceeds with probability `failing` at most; 0 at least."""
    return max(-NormalDist().inv_cdf(failing) * (1 + _QUANTILE_MARGIN), 0.0)


def count_intervals(
    noised: Integers,
    losses: Integers,
    weighing: Weighing,
    sigma: int,
    confidence: float,
    *,
    keys: Integers,
    simultaneous: bool = False,
    shown: Fraction | None = None,
) -> tuple[Integers, Integers, Integers]:
    """Estimates, which noise may take below 0, and the low and high ends of their intervals, in
    whole users, from the noised weights of these keys, and the noised losses.

    [low, high] contains a key's true number of users with probability `confidence`, for any data;
    with `simultaneous`, all intervals do at once with that probability. `shown`: the share that is
    shown, where that goes by the intervals (`interval_margins`).
    """
    factor = weighing.factor[keys]
    user = weighing.unit * factor
    keys_at_once = weighing.keys if simultaneous else 1
    margins = interval_margins(sigma, confidence, weighing.losses, keys_at_once, shown)
    estimates = (noised + user // 2) // user
    low = np.maximum(-((margins.below - noised) // user), 0)
    # A negative noised count gets the same high end as 0, so that "0 to 0" does not look certain.
    high = most_with_losses(np.maximum(noised, 0), losses, margins, weighing, sigma, keys) // user
    # An interval without a whole number has missed the true one; it is extended to the number that
    # is shown as users.
    users = np.maximum(estimates, 0)
    return estimates, np.minimum(low, users), np.maximum(high, users)


def chosen_intervals(
    noised: Integers,
    losses: Integers,
    weighing: Weighing,
    sigma: int,
    confidence: float,
    min_users: int,
    families: Sequence[Integers],
) -> tuple[Integers, tuple[Integers, Integers, Integers]]:
    """The indices of the counts that are shown, as their intervals begin at `min_users` users or
    above, and their estimates with the low and high ends of these intervals. Each array in
    `families` has, of each count, the number of its family.

    Of intervals that hold with probability 1 - a each, those that begin high begin too high more
    often. So the fewer are shown, the lower each begins: of the shown ones of each family of counts
    (all, of a length, of a group), an expected share of at most a does not contain the true number,
    for any data. The rule, the theorem and its proof: docs/counts.md, "Intervals after a choice".
    Names are those of the rule there: q, and the families' n and R.
    """
    counted = [np.bincount(family) for family in families]
    sizes = [len(of_each) for of_each in counted]
    # Counts that are in the same families have one q.
    alike = np.ravel_multi_index(tuple(families), sizes)
    shown = np.arange(len(noised))
    while True:
        kept = [np.bincount(family[shown]) for family in families]
        ids, many = np.unique(alike[shown], return_counts=True)
        in_order = np.argsort(alike[shown], kind="stable")
        found = np.zeros((3, len(shown)), np.int64)
        for of_each, end, number in zip(
            zip(*np.unravel_index(ids, sizes), strict=True), np.cumsum(many), many, strict=True
        ):
            share = min(
                Fraction(int(its_kept[family]), int(its_counted[family]))
                for its_kept, its_counted, family in zip(kept, counted, of_each, strict=True)
            )
            those = in_order[end - number : end]
            found[:, those] = count_intervals(
                noised[shown[those]],
                losses,
                weighing,
                sigma,
                confidence,
                keys=shown[those],
                shown=share,
            )
        enough = found[1] >= min_users
        if enough.all():
            return shown, (found[0], found[1], found[2])
        shown = shown[enough]


def most_with_losses(
    noised: Integers,
    losses: Integers,
    margins: IntervalMargins,
    weighing: Weighing,
    sigma: int,
    keys: Integers,
) -> Integers:
    """The most grid units that these keys have with what bounding took of them, by their noised
    weights and the noised losses: the lesser of what losses say and what holders can have lost."""
    most = noised + margins.above
    if not weighing.losses:
        return most
    g, least = weighing.unit, weighing.least_weight
    of_holders = most * (g / least) if least else np.inf
    lost, noises = losses_of_keys(losses, weighing, keys)
    scale = weighing.factor[keys] * (g / weighing.loss_unit)
    alone = margins.deviations * sigma
    # The noises of the key and of its losses are one Gaussian; each was rounded.
    together = alone * np.sqrt(1 + noises * scale**2) + (1 + noises * scale) / 2
    # Never less than for the key's noise alone, however low the noise of losses is.
    of_losses = noised + np.maximum(lost * scale + together, alone)
    rounded_up: Integers = np.ceil(np.minimum(of_losses, of_holders)).astype(np.int64)
    return rounded_up + 1  # one unit covers the rounding errors of the floats


def losses_of_keys(losses: Integers, weighing: Weighing, keys: Integers) -> tuple[Integers, int]:
    """The sum of the losses that say what these keys have lost, and of how many noises it has."""
    of_group = losses[keys % weighing.groups]
    return (of_group + losses[-1], 2) if weighing.groups > 1 else (of_group, 1)


def factors_of_sizes(rough: Integers, sigma: int) -> tuple[int, ...]:
    """The factors of keys whose sizes are told by noised sums of rough weights: in proportion to
    size^(-1/4), where the mean error is least; sizes that noise hides are taken as its sigma."""
    sizes = [max(size, sigma) for size in rough.tolist()]
    twice = (2 * LEAST_FACTOR) ** 4 * max(sizes)
    return tuple((isqrt(isqrt(twice // size)) + 1) // 2 for size in sizes)


def chosen_bound(held: Integers, weighing: Weighing, relative_sigma: float) -> int:
    """K, chosen by a noised histogram of users' m (`HeldHistogram`), for counts whose noise is
    `relative_sigma` sqrt(K) / f users.

    It has the least sum of what noise makes of an interval and what bounding removes from all
    users, as far as the histogram shows; of users of one group, that counts in their group alone.
    Whatever is chosen, intervals hold and the norm is sqrt(K): noise makes the choice worse, not
    wrong.
    """
    tops = HeldHistogram(weighing).tops
    in_one, *in_several = np.split(np.maximum(held, 0), min(weighing.groups, 2))
    users = in_one / weighing.groups + sum(in_several)
    of_bin = (np.append(tops[0], tops[:-1] + 1) + tops) // 2
    choices = np.unique(np.append(tops, of_bin))
    choices = choices[relative_sigma * np.sqrt(choices) <= LARGEST_GRID_SIGMA]
    spread = float(np.mean(1 / weighing.factor))

    def cost(most: int) -> float:
        lost = np.maximum(1 - 2 * most / (of_bin + most), 0)
        return float(SIGMAS_A_USER * spread * sqrt(most) * relative_sigma + users @ lost)

    return min(map(int, choices), key=cost)


def checked_confidence(confidence: float) -> float:
    if not is_number(confidence) or not 0.5 <= confidence <= 1 - 1e-9:
        raise UsageError(
            f"confidence: found {confidence!r}; give a probability of at least 0.5 and below 1, "
            "such as 0.95"
        )
    return float(confidence)
