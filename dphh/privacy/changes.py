"""Intervals for the differences of two counts of each of m things, and which of them changed.

A count's true number is n = (x + lost) / g: x is the un-noised sum, lost what bounding took
(`dphh.privacy.counts`). The two counts of a thing have independent noises N, and those of different
things are independent of each other. The people may be the same: true numbers are fixed, and noise
alone is random. With t the bound of the noise of a difference, and L an upper bound on what a count
has lost,

    later - earlier - t - L_earlier  <=  n_later - n_earlier  <=  later - earlier + t + L_later.

N is a Gaussian, rounded, so N_later / g - N_earlier / g' exceeds a Gaussian of sd
s = sqrt((sigma / g)^2 + (sigma' / g')^2) by 1 / 2g + 1 / 2g' at most. L needs a bound on x, which
fails with part of the interval's share, and bounds on losses, which fail for all things at once
with `LOST_SHARE` of the error a, not multiplied below.

Which changed. Let n be the number of candidates: what was counted before any count was drawn or
shown. Each interval may fail with probability a R / n (so it is wider than one that fails with
probability a), where R, at least 1, is how many of the intervals, so made, do not contain 0: the
largest such R. These things are said to have risen or fallen.

Theorem. Each interval holds with probability 1 - a, where all that was counted is shown. Of the
intervals of what is said to have risen or fallen, the expected share that does not contain the true
difference (0 if there is none) is at most a; and so is that of all intervals, where `min_users`
chose what is shown. For any data.

Proof (Benjamini & Yekutieli 2005). As R <= n, each contains the interval that fails with
probability a. Let the losses hold. Fix all noises but those of thing i. A rule by which i is shown
in both releases is one whose outcome, where i is shown, does not depend on i's noises
(`dphh.privacy.chosen`); and where i is said to have changed, R is the R_i that would be found if i
were said to, whatever its noises. So i is said to have changed, with a wrong interval, with
probability at most a R_i / n, and E[wrong / R] <= sum over n things of (1 / R_i) a R_i / n = a. For
all S things shown in both, the same with R <= S in place of R_i. QED

An earlier release's list may follow from the later one's choice, or the other way round: then n
must be the number counted before that choice, so it is the larger of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.counts import (
    LOST_SHARE,
    IntervalMargins,
    lost_margins,
    most_removed_by_bounding,
    upper_quantile,
)
from dphh.udfs.arrays import Integers
from dphh.udfs.rules.counts import Weighing

#: Of an interval's share, the part for the bound on x that the bound on losses needs.
_X_SHARE = 0.1


@dataclass(frozen=True)
class NoisedCounts:
    """Noised counts of several things, in whole users, with what is public of how they were
    made."""

    estimates: Integers
    losses: Integers
    weighing: Weighing
    sigma: int

    @property
    def sigma_in_users(self) -> float:
        return self.sigma / self.weighing.unit

    def taken(self, rows: Integers) -> NoisedCounts:
        return replace(self, estimates=self.estimates[rows])

    @cached_property
    def most_noised(self) -> Integers:
        """The most grid units that a noised weight may have been before it was rounded to users."""
        unit = self.weighing.unit
        return self.estimates * unit + (unit - unit // 2 - 1)

    def lost_users(self, failing_x: float, failing_losses: Fraction) -> NDArray[np.float64]:
        """The most users that each count has lost to bounding. Fails with probability `failing_x`
        for each count, and with probability `failing_losses` for all at once."""
        classes = self.weighing.class_count
        if not classes:
            return np.zeros(len(self.estimates))
        margins = IntervalMargins(0, 0, lost_margins(self.sigma, classes, failing_losses))
        x = self.most_noised + int(np.ceil(upper_quantile(failing_x) * self.sigma + 0.5))
        taken = most_removed_by_bounding(np.maximum(x, 0), self.losses, self.weighing, margins)
        return taken / self.weighing.unit


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
    share = Fraction(1)
    while True:
        low, high = _intervals(later, earlier, share, confidence)
        sign = np.where(low > 0, 1, 0) - np.where(high < 0, 1, 0)
        least = Fraction(max(int(np.count_nonzero(sign)), 1), candidates)
        if least >= share:
            return Changes(later.estimates - earlier.estimates, low, high, sign)
        share = least


def _intervals(
    later: NoisedCounts, earlier: NoisedCounts, share: Fraction, confidence: float
) -> tuple[Integers, Integers]:
    failing = 1 - Fraction(confidence)
    are_bounded = later.weighing.class_count + earlier.weighing.class_count > 0
    lost = failing * LOST_SHARE * are_bounded
    side = float((failing - lost) / 2 * share)
    spread = sqrt(later.sigma_in_users**2 + earlier.sigma_in_users**2)
    units = [counts.weighing.unit for counts in (later, earlier)]
    # A noised weight was rounded to a grid unit when it was drawn, and to a user when shown.
    rounding = sum(1 / (2 * unit) for unit in units) + 1.0
    reach = upper_quantile(side * (1 - _X_SHARE * are_bounded)) * spread + rounding
    difference = later.estimates - earlier.estimates
    lost_later, lost_earlier = (
        counts.lost_users(side * _X_SHARE, lost / 2) for counts in (later, earlier)
    )
    # A true difference is a whole number.
    low = np.ceil(difference - reach - lost_earlier).astype(np.int64)
    high = np.floor(difference + reach + lost_later).astype(np.int64)
    return low, high
