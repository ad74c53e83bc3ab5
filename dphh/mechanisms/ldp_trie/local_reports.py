"""How each level of `ldp_trie` randomises, and what its reports tell whom.

What is seen is one of three: a user's own messages (local epsilon); all messages, mixed, without
their senders (`shuffled`); or only how many reports hold each value (`of_sums`), which is all that
a release is made of. Theorems and proofs: docs/ldp_trie.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from dphh.errors import UsageError
from dphh.mechanisms.terms import LARGEST_EPSILON
from dphh.privacy.coin_reports import LEFT_OUT, Form
from dphh.privacy.subset_selection import SubsetSelection, subset_selection

# `amplification` and `sums`, of this folder, are imported where they are called: they take
# scipy.stats, half a second that no other verb needs.

#: A search for the largest local epsilon that keeps to a goal stops this near to it.
_NEAR = 4e-3
#: The part of delta that pays for how far what is drawn is from independent values.
_FOR_THE_LAW = 1e-6


@dataclass(frozen=True)
class Reports:
    """Who sends how many reports to a level, and at which delta they are priced."""

    users: int
    contributions: int
    form: Form
    delta: float

    @property
    def number(self) -> int:
        return self.users * self.contributions


@lru_cache(maxsize=1024)
def randomiser(
    domain: int, local_epsilon: float, form: Form, size: int | None = None
) -> SubsetSelection:
    """What is drawn costs local_epsilon at most. By coins, values come independently, which tells a
    little more: p is the largest that keeps to it even so."""
    chosen = subset_selection(domain, local_epsilon, size)
    if form == "subsets" or chosen.epsilon_of_independent_values <= local_epsilon:
        return chosen
    low, high = (chosen.size << 64) // domain + 1, chosen.numerator
    while high - low > 1:
        middle = (low + high) // 2
        tried = SubsetSelection(domain, chosen.size, middle)
        low, high = (
            (middle, high)
            if tried.epsilon_of_independent_values <= local_epsilon
            else (low, middle)
        )
    return SubsetSelection(domain, chosen.size, low)


@dataclass(frozen=True)
class Goal:
    """What the sums of a level may tell of so many replaced reports of one user."""

    replaced: int
    epsilon: float


@lru_cache(maxsize=256)
def randomisers(
    domains: frozenset[int], local_epsilon: float, of: Reports, goal: Goal | None = None
) -> dict[int, SubsetSelection]:
    """A randomiser for each domain. The run costs what its dearest level costs, so that none may
    cost more than the goal, or where there is none than the level of most values does.

    (Few values leave few others to hide among: at level 1 sets would be of one value, and a user
    would pay 1.5 where the other levels cost 0.9.)
    """
    widest = randomiser(max(domains), local_epsilon, of.form)
    if goal is None:
        goal = Goal(of.contributions, _roughly(widest, of, of.contributions))
    return {
        domain: widest if domain == widest.domain else _no_dearer(domain, local_epsilon, of, goal)
        for domain in domains
    }


def _no_dearer(domain: int, local_epsilon: float, of: Reports, goal: Goal) -> SubsetSelection:
    """Of sets of the usual size and of one value more, at the local epsilon at which they keep to
    the goal, those with the least noise."""
    usual = randomiser(domain, local_epsilon, of.form)
    if (found := _roughly(usual, of, goal.replaced)) <= goal.epsilon:
        return usual

    def kept_to(size: int) -> SubsetSelection:
        def price(local: float) -> float:
            return _roughly(randomiser(domain, local, of.form, size), of, goal.replaced)

        start = local_epsilon
        if size == usual.size:
            start += _step(found, goal.epsilon)
        local = _largest(price, goal.epsilon, start, local_epsilon)
        return randomiser(domain, local, of.form, size)

    # At most half of all values: more is never better, and the usual size may be just that.
    sizes = [size for size in (usual.size, usual.size + 1) if 2 * size <= domain + 1]
    return min(map(kept_to, sizes), key=lambda made: float(made.variance(of.number)))


@lru_cache(maxsize=256)
def largest_local(widest: int, goal: Goal, of: Reports) -> float:
    """The largest local epsilon with which the level of most values keeps to the goal."""

    def price(local: float) -> float:
        return _roughly(randomiser(widest, local, of.form), of, goal.replaced)

    return _largest(price, goal.epsilon, min(8.0, LARGEST_EPSILON), LARGEST_EPSILON)


def _largest(price: Callable[[float], float], goal: float, start: float, most: float) -> float:
    """The largest local epsilon of this price, to within `_NEAR` of the goal, and never above it.

    Prices grow about as e^(local / 2), or as they did last, with leaps where sets lose a value: so
    a step of that size, or half the way where it leads out of what is left.
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
            if tried == most or found >= goal * (1 - _NEAR):
                return tried
        else:
            high = tried
        if high - low < 1e-4 * high:
            break
        tried = min(tried + _step(found, goal) * 0.5 / growth, most)
        if not low < tried < high:
            tried = (low + high) / 2
    if low == 0.0:
        raise UsageError(
            f"central_epsilon, user_epsilon: no local epsilon keeps to {goal:g} with so few "
            "reports; ask for more, or ask more users"
        )
    return low


def _step(found: float, goal: float) -> float:
    return 2 * math.log(goal * (1 - _NEAR / 2) / max(found, 1e-300))


def of_sums(made: SubsetSelection, of: Reports, replaced: int) -> float:
    """What the sums of a level's reports tell of so many replaced reports of one user, all for
    different values: by Theorem A or B, or what holds of mixed messages where these say nothing."""
    from dphh.mechanisms.ldp_trie.sums import Level, epsilon_of_subsets

    rough = _roughly(made, of, replaced)
    if of.form == "subsets":
        return min(
            rough, epsilon_of_subsets(made, Level(of.users, of.contributions), replaced, of.delta)
        )
    return rough


def _roughly(made: SubsetSelection, of: Reports, replaced: int) -> float:
    """The same by wider blocks, for searches: a bound as well."""
    from dphh.mechanisms.ldp_trie.sums import WIDE, Level, epsilon_of_coins, epsilon_of_subsets

    who = Level(of.users, of.contributions)
    if of.form == "subsets":
        found = epsilon_of_subsets(made, who, replaced, of.delta, WIDE)
    else:
        found = _as_drawn(lambda delta: epsilon_of_coins(made, who, replaced, delta), of)
    return found if found < math.inf else _mixed(made, of, replaced, 0.0)


def shuffled(made: Iterable[SubsetSelection], of: Reports) -> tuple[float, float]:
    """What mixed messages tell of one report, and of all those of a user by group privacy: the
    largest of several levels."""
    one = several = 0.0
    for each in sorted(set(made), key=lambda each: each.domain):
        one = max(one, _mixed(each, of, 1, one))
        if of.contributions > 1:
            several = max(several, _mixed(each, of, of.contributions, several))
    return one, max(one, several)


@lru_cache(maxsize=1024)
def _mixed(made: SubsetSelection, of: Reports, replaced: int, least: float) -> float:
    from dphh.mechanisms.ldp_trie.amplification import (
        blanket_of_independent_values,
        blanket_of_subsets,
        central_epsilon,
        group_epsilon,
    )

    drawn = blanket_of_subsets if of.form == "subsets" else blanket_of_independent_values
    hidden = drawn(made)

    def found(delta: float) -> float:
        if replaced == 1:
            return central_epsilon(hidden, of.number, delta, least)
        return group_epsilon(hidden, of.number, delta, replaced, least)

    if of.form == "subsets":
        return found(of.delta)
    return min(_as_drawn(found, of), replaced * made.epsilon_of_independent_values)


def _as_drawn(found: Callable[[float], float], of: Reports) -> float:
    """A bound that holds of independent values, made to hold of what is drawn: each report's law is
    within LEFT_OUT of theirs, before and after. Infinite where delta does not pay for it."""
    epsilon = found(of.delta * (1 - _FOR_THE_LAW))
    paid = of.number * LEFT_OUT * (1 + math.exp(min(epsilon, 700.0)))
    return epsilon if paid <= _FOR_THE_LAW * of.delta else math.inf
