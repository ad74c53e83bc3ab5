"""TrieHH as the papers have it: m of n users sampled without replacement at each level, priced by
the published theorem, and Algorithm 1 run. For comparison: no Release, no ledger.

Zhu, Kairouz, Sun, McMahan and Li, "Federated heavy hitters discovery with differential privacy",
AISTATS 2020, Theorem 1 of the supplement. Symbols: n users, theta votes to keep a prefix, a batch
of m = gamma sqrt(n) users at each level, L levels.

    P[M(D) in S] <= e^epsilon P[M(D') in S] + delta,
    epsilon = L ln(1 + 1/(sqrt(n)/(gamma theta) - 1)),
    delta = (theta - 2) / ((theta - 3) theta!)
    for 4 <= theta <= sqrt(n), gamma >= 1 and gamma <= sqrt(n) / (theta + 1),

where D' is D with one user's word replaced by the empty one, for the same n, and in this direction
only. The other direction is false in a corner case that the conditions allow: see
examples/triehh_printed.py, which also has the preprint's theorem, and docs/trie.md. So `dphh.trie`
tosses a coin for each user, priced in both directions. Prices are rounded up and batches down;
gamma is that of the integer batch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import numpy as np

from dphh.errors import UsageError
from dphh.privacy.search import float_at_least, least_whole
from dphh.wording.options import check_whole

Prefix = tuple[str, ...]
#: The end of a sequence, which is a symbol of its own; no symbol of a sequence is empty.
END = ""
#: More than there are people. Tails of larger populations are slow to compute.
LARGEST_POPULATION = 10**10
# For a larger theta, delta is below the range of floats, and rounded up to the smallest float.
_LARGEST_THETA_IN_FLOATS = 180
# More than the rounding errors of one quotient, one logarithm and one product.
_ROUNDING_ERROR = 2.0**-50


@dataclass(frozen=True)
class BatchParameters:
    """`batch` of `users` users sampled at each of `levels` levels, with the theorem's guarantee."""

    users: int
    theta: int
    batch: int
    levels: int
    epsilon: float
    delta: float


def theorem_epsilon(users: int, theta: int, batch: int, levels: int) -> float:
    """epsilon = L ln(1 + 1/(sqrt(n)/(gamma theta) - 1)); theta m is below n.

    With m = gamma sqrt(n) this is L ln(1 + theta m / (n - theta m)) = -L ln(1 - theta m / n).
    """
    odds = theta * batch / (users - theta * batch)
    return levels * math.log1p(odds) * (1 + _ROUNDING_ERROR)


def theorem_delta(theta: int) -> float:
    """delta = (theta - 2) / ((theta - 3) theta!), for theta >= 4."""
    if theta > _LARGEST_THETA_IN_FLOATS:
        return math.ulp(0.0)
    return float_at_least(Fraction(theta - 2, (theta - 3) * math.factorial(theta)))


def least_theta_within(delta: float) -> int:
    """The least theta >= 4 whose `theorem_delta` is at most delta. The authors' code searches so
    from 5 on."""
    return next(theta for theta in count(4) if theorem_delta(theta) <= delta)


def largest_batch_by_theorem(users: int, theta: int, levels: int, epsilon: float) -> int:
    """The largest number of users in a level's batch within epsilon; 0 if there is none.

    The published Corollary 1: gamma = (e^(epsilon/L) - 1)/(theta e^(epsilon/L)) sqrt(n).
    It requires epsilon <= L ln(theta + 1); above that, gamma <= sqrt(n) / (theta + 1) is the limit,
    and the batch spends less than epsilon.
    """
    too_many = least_whole(
        lambda batch: theorem_epsilon(users, theta, batch, levels) > epsilon,
        0,
        users // (theta + 1) + 1,
    )
    return too_many - 1


def choose_batch(users: int, epsilon: float, levels: int, delta: float) -> BatchParameters:
    """The least theta within delta, and with it the largest batch within epsilon.

    It states what it spends, which is never more than `epsilon` and `delta`.
    """
    check_whole("users", users, most=LARGEST_POPULATION)
    return choose_batch_for_theta(users, epsilon, levels, least_theta_within(delta))


def choose_batch_for_theta(users: int, epsilon: float, levels: int, theta: int) -> BatchParameters:
    """The largest batch within epsilon at this theta."""
    batch = largest_batch_by_theorem(users, theta, levels, epsilon)
    if batch * batch < users:
        # gamma >= 1 requires n >= theta / (1 - e^(-epsilon/L)) squared, and n >= (theta + 1)^2.
        gamma = min(-math.expm1(-epsilon / levels) / theta, 1 / (theta + 1))
        needed = (math.ceil(1 / gamma) + 1) ** 2
        of_epsilon = batch < users // (theta + 1)
        raise UsageError(
            f"users: found {users:,}; the theorem needs a batch of {math.isqrt(users - 1) + 1:,} "
            f"or more, the root of that, and epsilon {epsilon!r} over {levels} levels with theta "
            f"{theta} allows {batch:,}; give "
            f"{'a larger epsilon, fewer levels, or ' if of_epsilon else ''}about {needed:,} users"
        )
    return checked_batch(users, theta, batch, levels)


def checked_batch(users: int, theta: int, batch: int, levels: int) -> BatchParameters:
    """The batch of this size with what it costs; refused outside of the theorem's conditions, which
    are checked in integers, without rounding."""
    in_range = batch * batch >= users and batch * (theta + 1) <= users
    if not (4 <= theta <= math.isqrt(users) and in_range):
        raise UsageError(
            f"theta, batch: found theta {theta} and a batch of {batch:,} of {users:,} users; the "
            "theorem needs theta from 4 to sqrt(users), and a batch from sqrt(users) to "
            "users / (theta + 1)"
        )
    epsilon = theorem_epsilon(users, theta, batch, levels)
    return BatchParameters(users, theta, batch, levels, epsilon, theorem_delta(theta))


def grown(
    sequences: Sequence[Sequence[str]], by: BatchParameters, random: np.random.Generator
) -> set[Prefix]:
    """Algorithms 1 and 2: the prefixes that get theta votes, level by level; the end is a symbol.

    One sequence a user, for the whole run, as the proof has it; an empty one votes for nothing.
    """
    if len(sequences) != by.users:
        raise UsageError(f"sequences: found {len(sequences):,}; give one for each of {by.users:,}")
    paths = [(*sequence, END) if sequence else () for sequence in sequences]
    trie: set[Prefix] = {()}
    for level in range(1, by.levels + 1):
        batch = (paths[user] for user in random.choice(by.users, by.batch, replace=False))
        votes = Counter(
            path[:level] for path in batch if len(path) >= level and path[: level - 1] in trie
        )
        trie |= {prefix for prefix, number in votes.items() if number >= by.theta}
    return trie - {()}
