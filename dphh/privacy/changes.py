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

#: Of the error, the part for bounds on losses, of all things at once; and of an interval's share,
#: the part for the bound on x that the bound on what holders lost needs.
_LOST_SHARE, _X_SHARE = Fraction(1, 10), 0.1
#: Of the error of a sum, the part for its high end by losses; and of an interval's share, the part
#: for its high end by what holders lost. With the low end and bounds on losses: 0.94 of the error.
_LOSSES_PART, _HOLDERS_PART = 0.3, Fraction(1, 5)


@dataclass(frozen=True)
class NoisedCounts:
    """Noised counts of several things, in whole users, with what is public of how they were
    made."""

    estimates: Integers
    losses: Integers
    weighing: Weighing
    sigma: int
    #: Of each count.
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
    low, high = of_all = _combined([later], [earlier], share, confidence)
    while True:
        sign = np.where(low > 0, 1, 0) - np.where(high < 0, 1, 0)
        least = Fraction(max(int(np.count_nonzero(sign)), 1), candidates)
        if least >= share:
            break
        share = least
        low, high = _combined([later], [earlier], share, confidence)
    # Of all else the interval is that of one of all that are shown, with 0, which it may be.
    low = np.where(sign == 0, np.minimum(of_all[0], 0), low)
    high = np.where(sign == 0, np.maximum(of_all[1], 0), high)
    return Changes(later.estimates - earlier.estimates, low, high, sign)


def total(groups: Sequence[NoisedCounts], confidence: float) -> tuple[Integers, Integers, Integers]:
    """The sums of counts in several groups of a release, and their intervals. Each holds with this
    probability, where all that was counted is shown. Who is in several groups counts in each."""
    low, high = _combined(groups, (), Fraction(1), confidence)
    if groups[0].weighing.losses:
        _, by_holders = _combined(groups, (), _HOLDERS_PART, confidence)
        high = np.minimum(by_holders, _most_by_losses(groups, confidence))
    estimates = _sum(counts.estimates for counts in groups)
    users = np.maximum(estimates, 0)
    # A sum below 0 gets the same high end as 0, so that "0 to 0" does not look certain.
    return users, np.clip(low, 0, users), np.maximum(high + (users - estimates), users)


def _most_by_losses(groups: Sequence[NoisedCounts], confidence: float) -> Integers:
    """The most that counts of a release add up to, by its losses, whose noises and those of the
    counts are one Gaussian: a group's own loss is in one of them, that of several groups in all."""
    weighing, sigma = groups[0].weighing, groups[0].sigma
    said = [losses_of_keys(each.losses, weighing, each.keys) for each in groups]
    lost, noises = _sum(lost for lost, _ in said), said[0][1]
    of_losses = len(groups) + (noises - 1) * len(groups) ** 2
    variance, rounding = _noise(groups)
    spread = np.sqrt(variance + of_losses * (sigma / weighing.loss_unit) ** 2)
    reach = upper_quantile((1 - confidence) * _LOSSES_PART) * spread + rounding
    most = _sum(each.estimates for each in groups) + reach
    most = most + (lost + len(groups) * noises / 2) / weighing.loss_unit
    whole: Integers = np.floor(most).astype(np.int64)
    return whole


def has_most(groups: Sequence[NoisedCounts], confidence: float) -> NDArray[np.bool_]:
    """Of each thing, a row for each group: whether it has more than all others together. With this
    probability none is wrongly said to, where all that was counted is shown."""
    more = []
    for group in groups:
        others = [each for each in groups if each is not group]
        low, _ = _combined([group], others, Fraction(1, len(groups)), confidence)
        more.append(low > 0)
    return np.array(more)


def _combined(
    added: Sequence[NoisedCounts],
    subtracted: Sequence[NoisedCounts],
    share: Fraction,
    confidence: float,
) -> tuple[Integers, Integers]:
    """Intervals for sums of counts less other counts; each fails with so large a share of the error
    at most."""
    every = (*added, *subtracted)
    failing = 1 - Fraction(confidence)
    are_bounded = any(counts.weighing.losses for counts in every)
    lost = failing * _LOST_SHARE * are_bounded
    side = float((failing - lost) / 2 * share)
    variance, rounding = _noise(every)
    reach = upper_quantile(side * (1 - _X_SHARE * are_bounded)) * np.sqrt(variance) + rounding

    def lost_users(those: Sequence[NoisedCounts]) -> Floats:
        failing_x = side * _X_SHARE / max(len(those), 1)
        lost_of_each = (counts.lost_users(failing_x, float(lost / len(every))) for counts in those)
        return sum(lost_of_each, start=np.zeros(1))

    middle = _sum(counts.estimates for counts in added)
    middle = middle - _sum(counts.estimates for counts in subtracted)
    # A true sum is a whole number.
    low = np.ceil(middle - reach - lost_users(subtracted)).astype(np.int64)
    high = np.floor(middle + reach + lost_users(added)).astype(np.int64)
    return low, high


def _noise(every: Sequence[NoisedCounts]) -> tuple[Floats, Floats]:
    """The variance of the noise of all these together, in squares of users, and by how much
    rounding may have moved their sum: of a noised weight to a grid unit when it was drawn, and to a
    user when it was shown."""
    variance = _sum((counts.sigma / counts.unit) ** 2 for counts in every)
    return variance, _sum(1 / (2 * counts.unit) + 0.5 for counts in every)


def _sum(arrays: Iterable[NDArray[Any]]) -> Any:
    return sum(arrays, start=0)
