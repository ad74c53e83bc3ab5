"""How each level of `ldp_trie` randomises, and the epsilons of its reports for different observers.

An observer sees one of three: a user's own messages (local epsilon); all messages, shuffled and
without senders (`epsilons_of_shuffled`); or only how many reports contain each value
(`epsilon_of_sums`), from which alone a release is computed. Theorems and proofs: docs/ldp_trie.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from dphh.errors import UsageError
from dphh.mechanisms.terms import LARGEST_EPSILON
from dphh.privacy.subset_selection import LevelReports, SubsetSelection, subset_selection

# `amplification` and `sums` of this folder are imported where they are called: they import
# scipy.stats, which takes half a second and no other verb needs.

#: A search for the largest local epsilon within a goal stops this close to the goal, relatively.
_SEARCH_PRECISION = 4e-3


@dataclass(frozen=True)
class Goal:
    """The largest allowed epsilon of a level's sums, if `replaced` reports of one user change."""

    replaced: int
    epsilon: float


@lru_cache(maxsize=256)
def randomisers(
    domains: frozenset[int], local_epsilon: float, sent: LevelReports, goal: Goal | None = None
) -> dict[int, SubsetSelection]:
    """A randomiser for each domain, the number of values of a level. The run costs as much as its
    most expensive level, so no level may cost more than the goal or, without a goal, more than the
    level with the most values.

    (In a small domain a report hides less: at level 1 sets would have one value, and cost a user
    1.5 where the other levels cost 0.9.)
    """
    widest = subset_selection(max(domains), local_epsilon)
    if goal is None:
        goal = Goal(sent.contributions, _epsilon_of_sums_roughly(widest, sent, sent.contributions))
    return {
        domain: widest
        if domain == widest.domain
        else _randomiser_within_goal(domain, local_epsilon, sent, goal)
        for domain in domains
    }


def _randomiser_within_goal(
    domain: int, local_epsilon: float, sent: LevelReports, goal: Goal
) -> SubsetSelection:
    """The randomiser with the least noise within the goal, of sets of the usual size or one more,
    at a smaller local epsilon if necessary."""
    usual = subset_selection(domain, local_epsilon)
    if (found := _epsilon_of_sums_roughly(usual, sent, goal.replaced)) <= goal.epsilon:
        return usual

    def within_goal(size: int) -> SubsetSelection:
        def price(local: float) -> float:
            return _epsilon_of_sums_roughly(
                subset_selection(domain, local, size), sent, goal.replaced
            )

        start = local_epsilon
        if size == usual.size:
            start += _step_towards_goal(found, goal.epsilon)
        local = _search_local_epsilon(price, goal.epsilon, start, local_epsilon)
        return subset_selection(domain, local, size)

    # At most half of all values: larger sets are never better, and the usual size may be the half.
    sizes = [size for size in (usual.size, usual.size + 1) if 2 * size <= domain + 1]
    return min(map(within_goal, sizes), key=lambda found: float(found.variance(sent.number)))


@lru_cache(maxsize=256)
def local_epsilon_within(most_values: int, goal: Goal, sent: LevelReports) -> float:
    """The largest local epsilon with which a level of `most_values` values is within the goal."""

    def price(local: float) -> float:
        return _epsilon_of_sums_roughly(subset_selection(most_values, local), sent, goal.replaced)

    return _search_local_epsilon(price, goal.epsilon, min(8.0, LARGEST_EPSILON), LARGEST_EPSILON)


def _search_local_epsilon(
    price: Callable[[float], float], goal: float, start: float, most: float
) -> float:
    """The largest local epsilon whose price is at most the goal, to within `_SEARCH_PRECISION`.

    Prices grow about as e^(local / 2), or at the last measured rate, with jumps where the set size
    changes. A step assumes that growth; if it leaves the interval, the interval is halved.
    """
    low, high, growth = 0.0, most * (1 + 1e-9), 0.5
    tried = min(max(start, 1e-3), most)
    before: tuple[float, float] | None = None
    while True:
        found = price(tried)
        if before is not None and before[0] != tried and found > 0:
            growth = min(max(math.log(before[1] / found) / (before[0] - tried), 0.2), 2.0)
        before = (tried, found) if found > 0 else None
        if found <= goal:
            low = tried
            if tried == most or found >= goal * (1 - _SEARCH_PRECISION):
                return tried
        else:
            high = tried
        if high - low < 1e-4 * high:
            break
        tried = min(tried + _step_towards_goal(found, goal) * 0.5 / growth, most)
        if not low < tried < high:
            tried = (low + high) / 2
    if low == 0.0:
        raise UsageError(
            f"central_epsilon, user_epsilon: found {goal:g}, which no local epsilon reaches with "
            "so few reports; give a larger epsilon, or ask more users"
        )
    return low


def _step_towards_goal(found: float, goal: float) -> float:
    return 2 * math.log(goal * (1 - _SEARCH_PRECISION / 2) / max(found, 1e-300))


def epsilon_of_sums(randomiser: SubsetSelection, sent: LevelReports, replaced: int) -> float:
    """The epsilon of a level's sums for `replaced` reports of one user, all for different values:
    by Theorem B or, if that does not apply, the epsilon of shuffled messages."""
    from dphh.mechanisms.ldp_trie.sums import epsilon_of_subsets

    finely = epsilon_of_subsets(randomiser, sent, replaced)
    return min(_epsilon_of_sums_roughly(randomiser, sent, replaced), finely)


def _epsilon_of_sums_roughly(
    randomiser: SubsetSelection, sent: LevelReports, replaced: int
) -> float:
    """`epsilon_of_sums` with wider blocks, for searches; an upper bound too."""
    from dphh.mechanisms.ldp_trie.sums import WIDE_BLOCKS, epsilon_of_subsets

    found = epsilon_of_subsets(randomiser, sent, replaced, WIDE_BLOCKS)
    return found if found < math.inf else _epsilon_of_shuffled(randomiser, sent, replaced, 0.0)


def epsilons_of_shuffled(
    level_randomisers: Iterable[SubsetSelection], sent: LevelReports
) -> tuple[float, float]:
    """The epsilons of shuffled messages for one report, and for all of a user's reports by group
    privacy: the largest over these levels."""
    one = several = 0.0
    for each in sorted(set(level_randomisers), key=lambda each: each.domain):
        one = max(one, _epsilon_of_shuffled(each, sent, 1, one))
        if sent.contributions > 1:
            several = max(several, _epsilon_of_shuffled(each, sent, sent.contributions, several))
    return one, max(one, several)


@lru_cache(maxsize=1024)
def _epsilon_of_shuffled(
    randomiser: SubsetSelection, sent: LevelReports, replaced: int, least: float
) -> float:
    from dphh.mechanisms.ldp_trie.amplification import (
        blanket_of_subsets,
        central_epsilon,
        group_epsilon,
    )

    hidden = blanket_of_subsets(randomiser)
    if replaced == 1:
        return central_epsilon(hidden, sent.number, sent.delta, least)
    return group_epsilon(hidden, sent.number, sent.delta, replaced, least)
