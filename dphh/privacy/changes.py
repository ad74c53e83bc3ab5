"""Intervals for the differences of two counts of each of m things, and which of them changed.

A count's true number is n = (x + lost) / g: x is the un-noised sum, lost what bounding took
(`dphh.privacy.counts`). The two counts of a thing have independent noises N, and those of different
things are independent of each other. The people may be the same: true numbers are fixed, and noise
alone is random. With t the bound of the noise of a difference, and L an upper bound on what a count
has lost,

    later - earlier - t - L_earlier  <=  n_later - n_earlier  <=  later - earlier + t + L_later.

N is a Gaussian, rounded, so N_later / g - N_earlier / g' exceeds a Gaussian of sd
s = sqrt((sigma / g)^2 + (sigma' / g')^2) by 1 / 2g + 1 / 2g' at most, where g is the grid units of
one user at that count. L needs a bound on x, which fails with part of the interval's share, and
bounds on losses, which fail for all things at once with `LOST_SHARE` of the error a, not multiplied
below.

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

The ends of such an interval may pass what two ranges allow: the range of each count is missed with
probability a, so both hold together with probability 1 - 2a alone, and an interval cut to what they
allow would be missed as often as any of the three. So none is cut, and a page says the nearer end
alone ("by at least 140"), which no range contradicts.

Shares. Of each of k groups an interval for its count and one for the sum of all others, each with
the error a / 2k: together they hold with probability 1 - a, for each thing. (What bounding took is
one event, as the groups of a release have one histogram of losses.) Where they hold, a group has at
least low / (low + high of the others) of the sum, and at most high / (high + low of the others).

A sum of a thing's counts in several groups is such a difference with nothing subtracted: its noises
are independent, too, and each count's part of what was lost adds to its high end (`total`).

An earlier release's list may follow from the later one's choice, or the other way round: then n
must be the number counted before that choice, so it is the larger of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.counts import (
    LOST_SHARE,
    margin_of_losses,
    most_removed_by_bounding,
    upper_quantile,
)
from dphh.udfs.arrays import Floats, Integers
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
    #: Of each count.
    keys: Integers

    @property
    def unit(self) -> Integers:
        """The grid units of one user at each count."""
        return self.weighing.unit * self.weighing.factor[self.keys]

    def lost_users(self, failing_x: float, failing_losses: float) -> Floats:
        """The most users that each count has lost to bounding. Fails with probability `failing_x`
        for each count, and with probability `failing_losses` for all at once."""
        of_x = int(np.ceil(upper_quantile(failing_x) * self.sigma + 0.5))
        # A noised weight may have been so much before it was rounded to users.
        most_noised = self.estimates * self.unit + (self.unit - self.unit // 2 - 1)
        x = np.maximum(most_noised + of_x, 0)
        margin = margin_of_losses(self.sigma, self.weighing.losses, failing_losses)
        how = self.losses, margin, self.weighing, self.keys
        return most_removed_by_bounding(x, *how) / self.unit


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
        low, high = _combined([later], [earlier], share, confidence)
        sign = np.where(low > 0, 1, 0) - np.where(high < 0, 1, 0)
        least = Fraction(max(int(np.count_nonzero(sign)), 1), candidates)
        if least >= share:
            return Changes(later.estimates - earlier.estimates, low, high, sign)
        share = least


def total(groups: Sequence[NoisedCounts], confidence: float) -> tuple[Integers, Integers, Integers]:
    """The sums of counts in several groups, and their intervals. Each holds with this probability,
    where all that was counted is shown. Who is in several groups counts in each."""
    low, high = _combined(groups, (), Fraction(1), confidence)
    estimates = _sum(counts.estimates for counts in groups)
    users = np.maximum(estimates, 0)
    # A sum below 0 gets the same high end as 0, so that "0 to 0" does not look certain.
    return users, np.clip(low, 0, users), np.maximum(high + (users - estimates), users)


def shares(groups: Sequence[NoisedCounts], confidence: float) -> tuple[Floats, Floats]:
    """The least and the most of the sum of all groups' counts that each group has: a row for each
    group. All of a thing's hold together with this probability, where all that was counted is
    shown."""
    least, most = [], []
    for group in groups:
        others = [each for each in groups if each is not group]
        (low, high), (low_of_others, high_of_others) = (
            np.maximum(_combined(those, (), Fraction(1, 2 * len(groups)), confidence), 0)
            for those in ([group], others)
        )
        least.append(low / np.maximum(low + high_of_others, 1))
        most.append(high / np.maximum(high + low_of_others, 1))
    return np.array(least), np.array(most)


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
    lost = failing * LOST_SHARE * are_bounded
    side = float((failing - lost) / 2 * share)
    spread = np.sqrt(_sum((counts.sigma / counts.unit) ** 2 for counts in every))
    # A noised weight was rounded to a grid unit when it was drawn, and to a user when shown.
    rounding = _sum(1 / (2 * counts.unit) + 0.5 for counts in every)
    reach = upper_quantile(side * (1 - _X_SHARE * are_bounded)) * spread + rounding

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


def _sum(arrays: Iterable[NDArray[Any]]) -> Any:
    return sum(arrays, start=0)
