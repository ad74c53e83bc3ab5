"""Which counts are shown, and with which intervals, where only those are shown whose intervals
begin at `min_users` users or above.

Of intervals that hold with probability 1 - a each, those that begin high begin too high more often.
So the fewer are shown, the lower each begins: of the shown ones of each family of counts (all, of a
length, of a group), an expected share of at most a does not contain the true number, for any data.
The rule, the theorem and its proof: docs/counts.md, "Intervals after a choice". Names are those of
the rule there: q, and the families' n and R.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dphh.privacy.counts import count_intervals
from dphh.udfs.arrays import Integers
from dphh.udfs.rules.counts import Weighing


def chosen_intervals(
    noised: Integers,
    losses: Integers,
    weighing: Weighing,
    sigma: int,
    confidence: float,
    min_users: int,
    families: Sequence[Integers],
) -> tuple[Integers, tuple[Integers, Integers, Integers]]:
    """The indices of the counts that are shown, and their estimates with the low and high ends of
    their intervals. Each array in `families` has, of each count, the number of its family."""
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
