"""K of TrieHH's proof as a knob between epsilon and delta: appendix C.3 of the preprint."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from triehh_votes import RATE, Floats, hypergeometric_tail

from dphh.errors import UsageError

#: More than the relative error of a tail.
TAIL_ERROR = 1e-6


def knob(
    users: int, theta: int, batch: int, levels: int, holders: ArrayLike
) -> tuple[Floats, Floats]:
    """(epsilon, delta) for each K: appendix C.3 of the preprint, for any number of levels.

    The algorithm stays as it is; K says where its analysis stops counting on Lemma 2 (at most K
    others hold the prefix: it hardly ever passes) and goes over to Lemma 1 (more do: one more
    hardly matters). The theorems take K = sqrt(n)/gamma - 1. For any K >= theta,

        epsilon = L ln(1 + theta / (K - theta + 1)),
        delta = P[Hypergeometric(n, K + 1, m) >= theta],

    by the proof of Theorem 1 word for word, with this delta in the place of its bound: let j be the
    first level that D passes with probability at most delta; at all earlier levels more than K
    others hold the prefix, or Lemma 2 would have made that level the first. The direction is the
    theorems'. delta is the exact tail here, which Lemma 2 bounds by a geometric series, so it is
    below the theorems' delta at their K.
    """
    k = np.asarray(holders, dtype=np.float64)
    if k.size and (float(k.min()) < theta or float(k.max()) >= users):
        raise UsageError(
            f"K must be at least theta = {theta} and below the {users:,} users, found values from "
            f"{k.min():,.0f} to {k.max():,.0f}; the theorems' own K is sqrt(n)/gamma - 1."
        )
    epsilons = levels * np.log1p(theta / (k - theta + 1))
    return np.asarray(epsilons), hypergeometric_tail(k + 1, users, batch, theta)


@dataclass(frozen=True)
class KnobPlan:
    """What K as a knob finds at a given epsilon and delta, in the theorems' one direction."""

    theta: int
    k: int
    batch: int
    epsilon: float
    delta: float
    holders: int


def knob_plan(
    users: int, epsilon: float, delta: float, levels: int, rate: float = RATE, most_theta: int = 200
) -> KnobPlan:
    """The theta, K and batch within (epsilon, delta) that find the rarest words.

    For each theta, epsilon gives the least K and delta the largest batch. The theorems' own choice
    is far from the best: they hold the expected votes of K users down to one.
    """
    thetas: Floats = np.arange(2.0, most_theta + 1)
    # A little more than the quotient, so that what `knob` says is not above epsilon.
    ratio = math.expm1(epsilon / levels) * (1 - 1e-12)
    ks = np.maximum(np.ceil(thetas - 1 + thetas / ratio), thetas)
    thetas, ks = thetas[ks < users], ks[ks < users]
    low, high = thetas - 1, np.full_like(thetas, float(users))
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        keeps = hypergeometric_tail(ks + 1, users, middle, thetas) <= delta * (1 - TAIL_ERROR)
        low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
    # The holders that a batch needs, by bisection for all thetas at once; none: more than all.
    few, many = thetas - 1, np.full_like(thetas, float(users) + 1)
    while np.any(many - few > 1):
        middle = np.floor((few + many) / 2)
        found = hypergeometric_tail(middle, users, np.maximum(low, 1), thetas) ** levels >= rate
        few, many = np.where(found, few, middle), np.where(found, middle, many)
    if not len(thetas) or many.min() > users:
        raise UsageError(
            f"no theta up to {most_theta} finds anything with probability {rate!r} among {users:,} "
            f"users at epsilon {epsilon!r} and delta {delta!r} over {levels} levels; "
            "give a larger epsilon or delta, or fewer levels."
        )
    best = int(np.argmin(many))
    theta, k, batch = int(thetas[best]), int(ks[best]), int(low[best])
    epsilons, deltas = knob(users, theta, batch, levels, k)
    return KnobPlan(theta, k, batch, float(epsilons), float(deltas), int(many[best]))
