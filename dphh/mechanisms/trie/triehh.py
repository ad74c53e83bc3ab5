"""The papers' theorems for TrieHH with m of n users sampled without replacement at each level.

Zhu, Kairouz, Sun, McMahan and Li, "Federated heavy hitters discovery with differential privacy":
the preprint of 2019 (arXiv 1902.08534) and the version published at AISTATS 2020, here from its
supplement. Symbols: n users, theta votes to keep a prefix, a batch of m = gamma sqrt(n) users at
each level, L levels. Both theorems say

    P[M(D) in S] <= e^epsilon P[M(D') in S] + delta,
    epsilon = L ln(1 + 1/(sqrt(n)/(gamma theta) - 1)),

    preprint:   delta = 1 / (0.279 theta!)
                for n >= 10^4, theta >= 10, gamma >= 1, gamma + 1/gamma <= 0.874 sqrt(n) and
                gamma <= sqrt(n) / (theta + 1);
    published:  delta = (theta - 2) / ((theta - 3) theta!)
                for 4 <= theta <= sqrt(n), gamma >= 1 and gamma <= sqrt(n) / (theta + 1),

where D' is D with one user's word replaced by the empty one, for the same n, and in this direction
only. The other direction is false in a corner case that the conditions allow: see
examples/triehh_printed.py, and docs/trie.md. Prices are rounded up and batches down; gamma is that
of the integer batch. Prices use the published theorem; examples/triehh_printed.py has the
preprint's.

Under the preprint's conditions the published delta holds too, and is smaller. That corrects two
errors of the preprint: its 0.279 should be 1 - 1/(11 (1 - 0.874)) = 0.2784, and its Corollary 2
divides by 10 where its proof has theta (examples/triehh_printed.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphh.errors import UsageError

#: What the theorem proves, in words.
DIRECTION = (
    "one user's data replaced by nothing, the number of users staying the same; "
    "the other direction is not proved, and fails where theta is close to the batch"
)
STATEMENT = (
    "TrieHH, AISTATS 2020, Theorem 1 (supplement, B.1): delta = (theta - 2) / ((theta - 3) theta!)"
)

# For a larger theta, delta is below the range of floats, and rounded up to the smallest float.
LARGEST_THETA = 180
# More than the rounding errors of one quotient, one logarithm and one product.
_ROUNDINGS = 2.0**-50
# Up to this number, floats represent integers exactly.
_LARGEST_POPULATION = 2**53


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
            f"({self.epsilon:.4g}, {self.delta:.3g}) is proved for {DIRECTION}. "
            "The path accountant covers both directions."
        )


# --- the theorems ---------------------------------------------------------------------------------


def theorem_epsilon(users: int, theta: int, batch: int, levels: int) -> float:
    """epsilon = L ln(1 + 1/(sqrt(n)/(gamma theta) - 1)), the same in both theorems.

    With m = gamma sqrt(n) this is L ln(1 + theta m / (n - theta m)) = -L ln(1 - theta m / n).
    """
    check_counts(users, theta, batch, levels)
    if theta * batch >= users:
        raise UsageError(
            f"theta times the batch must be below the number of users, found {theta:,} x {batch:,} "
            f"of {users:,}; draw fewer users or take a smaller theta."
        )
    odds = theta * batch / (users - theta * batch)
    return levels * math.log1p(odds) * (1 + _ROUNDINGS)


def published_delta(theta: int) -> float:
    """delta = (theta - 2) / ((theta - 3) theta!), for theta >= 4."""
    if theta < 4:
        raise UsageError(
            f"theta must be 4 or more for the published theorem, found {theta!r}; "
            "published_theta finds one from a delta."
        )
    if theta > LARGEST_THETA:
        return math.ulp(0.0)
    return up(Fraction(theta - 2, (theta - 3) * math.factorial(theta)))


def check_conditions(users: int, theta: int, batch: int) -> None:
    """Check the theorem's conditions in integers, without rounding."""
    check_counts(users, theta, batch, 1)
    if theta < 4:
        raise UsageError(
            f"theta must be 4 or more for the published theorem, found {theta}; "
            "take a larger theta, or a smaller delta."
        )
    if theta * theta > users:
        raise UsageError(
            f"theta must be at most sqrt(n), found theta {theta} for {users:,} users; "
            f"take theta <= {math.isqrt(users)} or {theta * theta:,} users or more."
        )
    if batch * batch < users:
        raise UsageError(
            f"gamma = batch / sqrt(n) must be 1 or more, found a batch of {batch:,} for "
            f"{users:,} users; draw {_square_root_up(users):,} users or more at each level."
        )
    if batch * (theta + 1) > users:
        raise UsageError(
            f"gamma must be at most sqrt(n) / (theta + 1), that is a batch of at most "
            f"n / (theta + 1) = {users // (theta + 1):,}, found {batch:,} for {users:,} users and "
            f"theta {theta}; draw fewer users or take a smaller theta."
        )


# --- theta ----------------------------------------------------------------------------------------


def published_theta(delta: float) -> int:
    """The least theta >= 4 with (theta - 2) / ((theta - 3) theta!) <= delta.

    The authors' code searches in the same way, from 5 on.
    """
    check_delta(delta)
    return next(t for t in range(4, LARGEST_THETA + 1) if published_delta(t) <= delta)


# --- the largest batch --------------------------------------------------------------------------


def largest_batch(users: int, theta: int, levels: int, epsilon: float) -> int:
    """The largest batch at a level within epsilon, rounded down; 0 if there is none.

    The published Corollary 1: gamma = (e^(epsilon/L) - 1)/(theta e^(epsilon/L)) sqrt(n).
    It requires epsilon <= L ln(theta + 1); above that, gamma <= sqrt(n) / (theta + 1) is the limit,
    and the plan spends less than epsilon.
    """
    check_counts(users, theta, 1, levels)
    check_epsilon(epsilon)
    low, high = 0, users // (theta + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if theorem_epsilon(users, theta, middle, levels) <= epsilon:
            low = middle
        else:
            high = middle - 1
    return low


# --- both ways ------------------------------------------------------------------------------------


def fixed_size_price(users: int, theta: int, batch: int, levels: int) -> FixedSizePlan:
    """The theorem's guarantee for n, theta, m and L, after checking its conditions."""
    check_conditions(users, theta, batch)
    epsilon = theorem_epsilon(users, theta, batch, levels)
    return FixedSizePlan(users, theta, batch, levels, epsilon, published_delta(theta))


def fixed_size_plan(users: int, epsilon: float, levels: int, delta: float) -> FixedSizePlan:
    """The least theta within delta, and with it the largest batch within epsilon.

    The plan states what it spends, which is never more than `epsilon` and `delta`.
    """
    check_counts(users, 1, 1, levels)
    check_epsilon(epsilon)
    return batched(users, epsilon, levels, published_theta(delta))


def batched(users: int, epsilon: float, levels: int, theta: int) -> FixedSizePlan:
    """The plan with this theta and the largest batch within epsilon."""
    batch = largest_batch(users, theta, levels, epsilon)
    if batch * batch < users:
        # gamma >= 1 requires n >= theta / (1 - e^(-epsilon/L)) squared, and n >= (theta + 1)^2.
        gamma = min(-math.expm1(-epsilon / levels) / theta, 1 / (theta + 1))
        needed = (math.ceil(1 / gamma) + 1) ** 2
        raise UsageError(
            f"no batch of sqrt(n) = {_square_root_up(users):,} users or more keeps epsilon "
            f"{epsilon!r} over {levels} levels with theta {theta} and {users:,} users (found "
            f"{batch:,}); "
            f"give a larger epsilon, fewer levels, or about {needed:,} users."
        )
    return fixed_size_price(users, theta, batch, levels)


# --- checks ---------------------------------------------------------------------------------------


def up(exact: Fraction) -> float:
    """The least float that is at least `exact`."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def _square_root_up(users: int) -> int:
    root = math.isqrt(users)
    return root if root * root == users else root + 1


def check_counts(users: int, theta: int, batch: int, levels: int) -> None:
    for name, value in (("users", users), ("theta", theta), ("batch", batch), ("levels", levels)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise UsageError(
                f"{name} must be a whole number, 1 or more, found {value!r}; give a count."
            )
    if users > _LARGEST_POPULATION:
        raise UsageError(
            f"users must be at most {_LARGEST_POPULATION:,}, found {users:,}; "
            "give a real population."
        )
    if batch > users:
        raise UsageError(
            f"a batch cannot be larger than the population, found {batch:,} of {users:,}; "
            "draw fewer users at each level."
        )


def check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon < math.inf:
        raise UsageError(
            f"epsilon must be above 0 and finite, found {epsilon!r}; 1.0 is a common choice."
        )


def check_delta(delta: float) -> None:
    if not 1e-300 <= delta < 1:
        raise UsageError(
            f"delta must be at least 1e-300 and below 1, found {delta!r}; "
            "choose it well below one over the number of users."
        )
