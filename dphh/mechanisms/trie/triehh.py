"""The papers' theorem for TrieHH with m of n users sampled without replacement at each level.

Zhu, Kairouz, Sun, McMahan and Li, "Federated heavy hitters discovery with differential privacy",
AISTATS 2020, Theorem 1 of the supplement. Symbols: n users, theta votes to keep a prefix, a batch
of m = gamma sqrt(n) users at each level, L levels.

    P[M(D) in S] <= e^epsilon P[M(D') in S] + delta,
    epsilon = L ln(1 + 1/(sqrt(n)/(gamma theta) - 1)),
    delta = (theta - 2) / ((theta - 3) theta!)
    for 4 <= theta <= sqrt(n), gamma >= 1 and gamma <= sqrt(n) / (theta + 1),

where D' is D with one user's word replaced by the empty one, for the same n, and in this direction
only. The other direction is false in a corner case that the conditions allow: see
examples/triehh_printed.py, which also has the preprint's theorem, and docs/trie.md. Prices are
rounded up and batches down; gamma is that of the integer batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from dphh.errors import UsageError
from dphh.privacy.search import float_at_least, least_whole
from dphh.wording.options import check_whole

#: What the theorem proves, in words.
PROVED_DIRECTION = (
    "one user's data replaced by nothing, the number of users staying the same; "
    "the other direction is not proved, and fails where theta is close to the batch"
)
THEOREM = (
    "TrieHH, AISTATS 2020, Theorem 1 (supplement, B.1): delta = (theta - 2) / ((theta - 3) theta!)"
)
#: More than there are people. Tails of larger populations are slow to compute.
LARGEST_POPULATION = 10**10
# For a larger theta, delta is below the range of floats, and rounded up to the smallest float.
LARGEST_THETA = 180
# More than the rounding errors of one quotient, one logarithm and one product.
_ROUNDINGS = 2.0**-50


@dataclass(frozen=True)
class FixedSizePlan:
    """`batch` of `users` users sampled at each of `levels` levels, with the theorem's guarantee."""

    users: int
    theta: int
    batch: int
    levels: int
    epsilon: float
    delta: float

    @property
    def caveat(self) -> str:
        """The caveat that a plan shows beside its epsilon and delta."""
        return (
            f"({self.epsilon:.4g}, {self.delta:.3g}) is proved for {PROVED_DIRECTION}. "
            "The path accountant covers both directions."
        )


def theorem_epsilon(users: int, theta: int, batch: int, levels: int) -> float:
    """epsilon = L ln(1 + 1/(sqrt(n)/(gamma theta) - 1)); theta m is below n.

    With m = gamma sqrt(n) this is L ln(1 + theta m / (n - theta m)) = -L ln(1 - theta m / n).
    """
    odds = theta * batch / (users - theta * batch)
    return levels * math.log1p(odds) * (1 + _ROUNDINGS)


def published_delta(theta: int) -> float:
    """delta = (theta - 2) / ((theta - 3) theta!), for theta >= 4."""
    if theta > LARGEST_THETA:
        return math.ulp(0.0)
    return float_at_least(Fraction(theta - 2, (theta - 3) * math.factorial(theta)))


def published_theta(delta: float) -> int:
    """The least theta >= 4 within delta. The authors' code searches in the same way, from 5 on."""
    return next(theta for theta in count(4) if published_delta(theta) <= delta)


def check_conditions(users: int, theta: int, batch: int) -> None:
    """Check the theorem's conditions in integers, without rounding."""
    if not 4 <= theta <= math.isqrt(users):
        raise UsageError(
            f"theta must be from 4 to sqrt(n), found theta {theta} for {users:,} users; "
            f"take {theta * theta:,} users or more, or a larger delta."
        )
    if batch * batch < users or batch * (theta + 1) > users:
        raise UsageError(
            f"gamma = batch / sqrt(n) must be from 1 to sqrt(n) / (theta + 1), that is a batch "
            f"from {math.isqrt(users - 1) + 1:,} to {users // (theta + 1):,}, found {batch:,} for "
            f"{users:,} users and theta {theta}."
        )


def largest_batch(users: int, theta: int, levels: int, epsilon: float) -> int:
    """The largest batch at a level within epsilon, rounded down; 0 if there is none.

    The published Corollary 1: gamma = (e^(epsilon/L) - 1)/(theta e^(epsilon/L)) sqrt(n).
    It requires epsilon <= L ln(theta + 1); above that, gamma <= sqrt(n) / (theta + 1) is the limit,
    and the plan spends less than epsilon.
    """
    too_many = least_whole(
        lambda batch: theorem_epsilon(users, theta, batch, levels) > epsilon,
        0,
        users // (theta + 1) + 1,
    )
    return too_many - 1


def fixed_size_plan(users: int, epsilon: float, levels: int, delta: float) -> FixedSizePlan:
    """The least theta within delta, and with it the largest batch within epsilon.

    The plan states what it spends, which is never more than `epsilon` and `delta`.
    """
    check_whole("users", users, most=LARGEST_POPULATION)
    return plan_with_theta(users, epsilon, levels, published_theta(delta))


def plan_with_theta(users: int, epsilon: float, levels: int, theta: int) -> FixedSizePlan:
    """The plan with this theta and the largest batch within epsilon."""
    batch = largest_batch(users, theta, levels, epsilon)
    if batch * batch < users:
        # gamma >= 1 requires n >= theta / (1 - e^(-epsilon/L)) squared, and n >= (theta + 1)^2.
        gamma = min(-math.expm1(-epsilon / levels) / theta, 1 / (theta + 1))
        needed = (math.ceil(1 / gamma) + 1) ** 2
        raise UsageError(
            f"users: no batch of sqrt(n) = {math.isqrt(users - 1) + 1:,} users or more keeps "
            f"epsilon {epsilon!r} over {levels} levels with theta {theta} and {users:,} users "
            f"(found {batch:,}); give a larger epsilon, fewer levels, or about {needed:,} users."
        )
    return plan_with_batch(users, theta, batch, levels)


def plan_with_batch(users: int, theta: int, batch: int, levels: int) -> FixedSizePlan:
    """The plan with this theta and this batch, after checking the theorem's conditions."""
    check_conditions(users, theta, batch)
    epsilon = theorem_epsilon(users, theta, batch, levels)
    return FixedSizePlan(users, theta, batch, levels, epsilon, published_delta(theta))


def holders_needed(plan: FixedSizePlan, probability: float) -> int:
    """The least number of holders whose word is found with this probability.

    Proposition 1: a word that shares no prefix with any other is found with probability
    P[votes >= theta]^L, where W holders have a hypergeometric number of votes. Shared prefixes and
    words shorter than L only help.
    """
    # Imported here because scipy.stats takes half a second.
    from scipy.stats import hypergeom

    def found(holders: int) -> bool:
        one_level = hypergeom.sf(plan.theta - 1, plan.users, holders, plan.batch)
        return bool(one_level**plan.levels >= probability)

    return least_whole(found, plan.theta - 1, plan.users)
