"""TrieHH as its preprint has it, and what its theorems miss. For comparison: no price."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from dphh.errors import UsageError
from dphh.privacy.search import float_at_least

Floats = NDArray[np.float64]


def preprint_delta(theta: int) -> float:
    """delta = 1 / (0.279 theta!), for theta >= 10."""
    if theta < 10:
        raise UsageError(
            f"theta must be 10 or more for the preprint's theorem, found {theta!r}; "
            "the published theorem goes down to 4."
        )
    return float_at_least(Fraction(1000, 279 * math.factorial(theta)))


def log10_theta(users: int) -> int:
    """theta = ceil(log10 n + 6), for n >= 10^4, by integers.

    delta is then at most 1/(300 n) by the published Corollary 1, at most 1/(100 n) by the
    preprint's: theta! >= (n / 10^4) 10! >= 360 n.
    """
    if users < 10**4:
        raise UsageError(
            f"theta by log10 n needs 10,000 users or more, found {users!r}; give a delta instead."
        )
    return len(str(users - 1)) + 6


def reverse_delta_at_least(users: int, theta: int, batch: int, epsilon: float) -> float:
    """What delta must be at least for P[M(D') in S] <= e^epsilon P[M(D) in S] + delta.

    One word, held by k users of D' and by k + 1 of D, all others holding nothing; S: the word is
    not found. With F(k) = P[Hypergeometric(n, k, m) < theta] this returns
    max over k of F(k) - e^epsilon F(k + 1). A single level shows it, so any number of levels does.

    It is large where a batch can hardly miss theta holders. n = 10^4, m = 100, theta = 99, and two
    users of D' hold nothing: only a batch with both of them has fewer than 99 votes, which has
    probability 100 x 99 / (10^4 x 9,999) = 9.9e-5 in D' and 0 in D, where one of the two votes.
    """
    # So many hold nothing; fewer cannot keep a batch below theta votes. F(k) / F(k + 1) falls as
    # they grow in number, and is below e^epsilon long before the end of this range, or else is
    # missed, for this is a lower bound.
    missing = batch - theta + 1
    if missing < 1:
        return 0.0
    last = min(users, missing + max(1000, 8 * missing), missing + 10**6)
    idle: Floats = np.arange(missing, last + 1, dtype=np.float64)
    without = hypergeom.cdf(theta - 1, users, users - idle, batch)
    with_user = hypergeom.cdf(theta - 1, users, users - idle + 1, batch)
    excess = without - math.exp(min(epsilon, 700.0)) * with_user
    return max(0.0, float(np.max(excess)))
