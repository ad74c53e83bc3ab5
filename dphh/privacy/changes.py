"""Intervals for the differences of two counts of each of many things, which of these changed,
intervals for sums of counts of several groups, and which group has more than half of such a sum.

Each interval holds with probability 1 - a, and of the intervals of what is said to have risen or
fallen an expected share of at most a does not contain the true difference, for any data. The
theorem and its proof: docs/counts.md, "Intervals of what changed".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.counts import losses_of_keys, upper_quantile
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.rules.counts import Weighing

#: The part of the error for bounds on all losses at once; and the part of an interval's share of
#: the error for the bound on x, which the bound on what holders lost needs.
_LOST_SHARE, _X_SHARE = Fraction(1, 10), 0.1
#: The part of a sum's error for its high end by losses; and the part of an interval's share for its
#: high end by what holders lost. With the low end and bounds on losses these are 0.94 of the error.
_LOSSES_PART, _HOLDERS_PART = 0.3, Fraction(1, 5)


@dataclass(frozen=True)
class NoisedCounts:
    """Noised counts of several things, in whole users, with what is public of how they were
    made."""

    estimates: Integers
    losses: Integers
    weighing: Weighing
    sigma: int
    #: The key of each count.
    keys: Integers

    @property
    def unit(self) -> Integers:
        """The grid units of one user at each count."""
        return self.weighing.unit * self.weighing.factor[self.keys]

    def lost_users(self, failing_x: float, failing_losses: float) -> Floats:
        """The most users that each count has lost to bounding. Fails with probability `failing_x`
        for each count, and with probability `failing_losses` for all at once."""
        weighing, unit = self.weighing, self.unit
        if not weighing.losses:
            return np.zeros(len(unit))
        lost, noises = losses_of_keys(self.losses, weighing, self.keys)
        # A sum of two losses' noises exceeds a Gaussian by 1.
        of_losses = upper_quantile(failing_losses / weighing.groups) * sqrt(noises) * self.sigma
        by_losses = np.maximum(lost + of_losses + noises / 2, 0) / weighing.loss_unit
        # A noised weight may have been so much before it was rounded to users.
        most_noised = self.estimates + (unit - unit // 2 - 1) / unit
        x = np.maximum(most_noised + (upper_quantile(failing_x) * self.sigma + 0.5) / unit, 0)
        g, least = weighing.unit, weighing.least_weight
        lost_users: Floats = np.minimum(by_losses, x * ((g - least) / least) if least else np.inf)
        return lost_users + 1 / unit  # more than the rounding errors of the floats


@dataclass(frozen=True)
class Changes:
    """Differences and the ends of their intervals, in whole users; and, for each thing, 1 if it is
    said to have risen, -1 if it is said to have fallen, and 0 if that cannot be told."""

    difference: Integers
    low: Integers
    high: Integers
    sign: Integers


def changes(
    later: NoisedCounts, earlier: NoisedCounts, candidates: int, confidence: float
) -> Changes:
    """How each count of `later` differs from that of `earlier`, of things of which `candidates`
    were counted before any was shown."""
    share = Fraction(len(later.estimates), candidates)
    low, high = shown = _combined([later], [earlier], share, confidence)
    while True:
        sign = np.where(low > 0, 1, 0) - np.where(high < 0, 1, 0)
        least = Fraction(max(int(np.count_nonzero(sign)), 1), candidates)
        if least >= share:
            break
        share = least
        low, high = _combined([later], [earlier], share, confidence)
    # Without a clear change, the interval is the first one, for all that is shown, widened to 0.
    low = np.where(sign == 0, np.minimum(shown[0], 0), low)
    high = np.where(sign == 0, np.maximum(shown[1], 0), high)
    return Changes(later.estimates - earlier.estimates, low, high, sign)


def total(groups: Sequence[NoisedCounts], confidence: float) -> tuple[Integers, Integers, Integers]:
    """The sums of counts in several groups of a release, with the ends of their intervals. Each
    interval holds with this probability, if all that was counted is shown. A user in several groups
    counts in each."""
    low, high = _combined(groups, (), Fraction(1), confidence)
    if groups[0].weighing.losses:
        _, by_holders = _combined(groups, (), _HOLDERS_PART, confidence)
        high = np.minimum(by_holders, _most_by_losses(groups, confidence))
    estimates = _sum(counts.estimates for counts in groups)
    users = np.maximum(estimates, 0)
    # A sum below 0 gets the same high end as 0, so that "0 to 0" does not look certain.
    return users, np.clip(low, 0, users), np.maximum(high + (users - estimates), users)


def _most_by_losses(groups: Sequence[NoisedCounts], confidence: float) -> Integers:
    """The most that the counts of groups add up to, by the release's losses. The noises of losses
    and of counts add up to one Gaussian: a group's own loss is in one count, that of users of
    several groups in all counts."""
    weighing, sigma = groups[0].weighing, groups[0].sigma
    losses = [losses_of_keys(counts.losses, weighing, counts.keys) for counts in groups]
    lost, noises = _sum(lost for lost, _ in losses), losses[0][1]
    variance_of_losses = len(groups) + (noises - 1) * len(groups) ** 2
    variance, rounding = _noise(groups)
    spread = np.sqrt(variance + variance_of_losses * (sigma / weighing.loss_unit) ** 2)
    reach = upper_quantile((1 - confidence) * _LOSSES_PART) * spread + rounding
    most = _sum(counts.estimates for counts in groups) + reach
    most = most + (lost + len(groups) * noises / 2) / weighing.loss_unit
    whole: Integers = np.floor(most).astype(np.int64)
    return whole


def has_most(groups: Sequence[NoisedCounts], confidence: float) -> NDArray[np.bool_]:
    """Whether a group has more of a thing than all others together: a row for each group, a column
    for each thing. With this probability no entry for a thing is wrongly True, if all that was
    counted is shown."""
    more = []
    for group in groups:
        others = [other for other in groups if other is not group]
        low, _ = _combined([group], others, Fraction(1, len(groups)), confidence)
        more.append(low > 0)
    return np.array(more)


def _combined(
    added: Sequence[NoisedCounts],
    subtracted: Sequence[NoisedCounts],
    share: Fraction,
    confidence: float,
) -> tuple[Integers, Integers]:
    """Intervals for sums of counts less other counts; each fails with at most this share of the
    error."""
    every = (*added, *subtracted)
    failing = 1 - Fraction(confidence)
    are_bounded = any(counts.weighing.losses for counts in every)
    lost = failing * _LOST_SHARE * are_bounded
    side = float((failing - lost) / 2 * share)
    variance, rounding = _noise(every)
    reach = upper_quantile(side * (1 - _X_SHARE * are_bounded)) * np.sqrt(variance) + rounding

    def lost_users(side_counts: Sequence[NoisedCounts]) -> Floats:
        failing_x = side * _X_SHARE / max(len(side_counts), 1)
        failing_losses = float(lost / len(every))
        lost_by_count = (counts.lost_users(failing_x, failing_losses) for counts in side_counts)
        return sum(lost_by_count, start=np.zeros(1))

    middle = _sum(counts.estimates for counts in added)
    middle = middle - _sum(counts.estimates for counts in subtracted)
    # A true sum is a whole number.
    low = np.ceil(middle - reach - lost_users(subtracted)).astype(np.int64)
    high = np.floor(middle + reach + lost_users(added)).astype(np.int64)
    return low, high


def _noise(every: Sequence[NoisedCounts]) -> tuple[Floats, Floats]:
    """The variance of the sum of these counts' noises, in squares of users; and the most that
    rounding may have moved the sum: a noised weight is rounded to a grid unit when it is drawn, and
    to a user when it is shown."""
    variance = _sum((counts.sigma / counts.unit) ** 2 for counts in every)
    return variance, _sum(1 / (2 * counts.unit) + 0.5 for counts in every)


def _sum(arrays: Iterable[NDArray[Any]]) -> Any:
    return sum(arrays, start=0)
