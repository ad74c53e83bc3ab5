"""E[spurious grams] <= eta |S_{k-1}| = b, whatever the planned tails: the rule of signs.

An absent gram is a valid gram that no user holds. Given round 1, each cell has a planned tail q:
how often noise should pass its threshold. How many absent grams a cell has is not public. But
whether an absent gram's noise in round 2 is above 0 is a coin, independent of how far from 0 it is.
So absent grams that are not above 0 count those that are. With W the sum of q over all valid grams
of noised weight 0 or less, multiply every tail by

    r = b / (2 W + 2 max q),    and let no tail pass a half.

Theorem. E[spurious | round 1] <= b, for any q that round 1 and earlier releases decide, any
weights, and any users.

Proof. Fix round 1, so that q and all users' weights are fixed, and fix the noise of all grams
that a user holds. Let P = P[noise > 0] <= 1/2, and A_i the event that absent gram i has noise above
0; W_-i is W without i's own part. Given A_i, i passes a threshold of tail t <= r q_i with
probability t / P, independently of all A. As i adds to W only if not A_i,

    E[spurious] <= sum_i E[1{A_i} r q_i] / P = b/2 sum_i q_i E[1{A_i} / (max q + W_-i)] / P
                 = b/2 sum_i q_i E[1 / (max q + W_-i)]
                 = b/2 sum_i q_i E[1{not A_i} / (max q + W_-i)] / (1 - P)
                <= b E[sum over i not above 0 of q_i / (max q + W - q_i)],

by independence of A_i and W_-i (twice), and 1 - P >= 1/2. Each q_i <= max q, and these q_i sum to
W less what held grams add, so the last sum is at most W / W = 1, or 0. A half as the largest tail
keeps every threshold above 0, where passing implies A_i; a smaller tail only loses grams.

The theorem asks nothing of how q was found. In particular the prior, the weights and the share of
the budget may all come from the same histogram as the thresholds.
"""

from __future__ import annotations

import numpy as np

from dphh.udfs.arrays import Floats, Integers

#: The largest tail probability of a cell's threshold.
LARGEST_TAIL = 0.5


def tails_by_signs(planned_tails: Floats, nonpositive: Integers, most_spurious: float) -> Floats:
    """The planned tail probability of each cell, scaled so that the expected number of spurious
    grams is at most `most_spurious`. `nonpositive`: how many valid grams of each cell have a noised
    weight of 0 or less."""
    most = planned_tails.max(initial=0.0)
    if most == 0:
        return planned_tails
    r = most_spurious / (2 * (planned_tails * nonpositive).sum() + 2 * most)
    tails: Floats = np.minimum(r * planned_tails, LARGEST_TAIL)
    return tails
