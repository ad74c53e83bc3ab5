"""Which counts are shown, and with which intervals, where only those are shown whose intervals
begin at `min_users` users or above.

Of intervals that hold with probability 1 - a each, those that begin high begin too high more often.
So the fewer are shown, the lower each begins. Let families be sets of counts that are fixed before
counts are drawn: all counts, those of each length, those of each group. Where R of a family's n
counts are shown, a count's q is the least R / n of its families, and its interval is that whose low
end is too high with probability a_low q, and whose high end is too low with probability
a_high / (1 + a_high). A set S is consistent if it is the set of the counts whose intervals, made
for S, begin at `min_users` or above. The largest consistent set is shown.

It exists, and is found from above. Let T(S) be the counts whose intervals, made for S, begin at
`min_users` or above. A larger S has larger R, so higher low ends, so a larger T(S). So from all
counts on, S, T(S), T(T(S)), ... shrinks, ends at a consistent set, and contains every other.

Theorem. In each family, the expected share of the shown intervals that do not contain the true
number (0 if none is shown) is at most a = a_low + a_high + a_losses, for any data.

Proof. The losses fail, for all counts at once, with probability a_losses at most; let them hold.
Fix the noises of all counts but i. Let S_i be the largest consistent set if i's interval is taken
to begin at `min_users`, whatever i's noise. It contains S. If i is in S then S = S_i: i's interval,
made for S, begins high enough, so it does if made for S_i, so S_i is consistent as it is. Thus
where i is shown, its q, and R_F of each of its families F, are those of S_i, which i's noise does
not move; and i is shown if and only if its noised weight reaches a c_i that follows from S_i.

Low ends (Benjamini & Yekutieli 2005). As q_i <= R_F / n_F, where both are those of S_i,

    E[too high in F / R_F] <= sum over i in F of E[a_low q_i / R_F] <= a_low.

High ends. Let p = a_high / (1 + a_high), and N_i < -m be the noise, of probability p at most, with
which i's high end is too low. Where this end is too low and i is shown, i is in L, the counts whose
weight is above c_i + m. A count in L is shown unless N_i < -m, and N_i is independent of S_i. So

    E[too low in F / R_F] <= sum over i in F of p E[i in L; 1 / R_F of S_i]
                          <= sum over i in F of p / (1 - p) E[i is shown; 1 / R_F] <= a_high. QED

Losses have no part in low ends. So of what is shown of a family, an expected share of at most
a_low, half of a, has fewer than `min_users` users. And a given count of fewer is shown with
probability a_low at most, since q <= 1.
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
