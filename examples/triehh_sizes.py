"""What TrieHH needs to find a word: the inverses of `discovery_rate`, for figures of the papers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from baselines.triehh import (
    LARGEST_POPULATION,
    BatchParameters,
    checked_batch,
    choose_batch,
    choose_batch_for_theta,
    least_theta_within,
)
from scipy.special import betaincinv
from triehh_printed import log10_theta
from triehh_votes import RATE, Bernoulli, FixedSize, discovery_rate, holders_needed

from dphh.errors import UsageError
from dphh.privacy.search import least_whole


def plan_of(users: int, epsilon: float, levels: int, delta: float | None) -> BatchParameters:
    """Without a delta, theta = ceil(log10 n + 6)."""
    if delta is None:
        return choose_batch_for_theta(users, epsilon, levels, log10_theta(users))
    return choose_batch(users, epsilon, levels, delta)


def frequency_needed(plan: BatchParameters, rate: float = RATE) -> float:
    """The least share of the users who must hold a word for it to be found at least so often."""
    sampling = FixedSize(plan.users, plan.batch)
    return holders_needed(sampling, plan.theta, plan.levels, rate) / plan.users


def batch_needed(holders: int, users: int, theta: int, levels: int, rate: float = RATE) -> int:
    """The least batch that finds a word of so many holders at least so often."""
    if not theta <= holders <= users:
        raise UsageError(
            f"holders must be at least theta = {theta} and at most the {users:,} users, found "
            f"{holders:,}; a word of fewer than theta holders is never found."
        )

    def found(batch: int) -> bool:
        return float(discovery_rate(FixedSize(users, batch), theta, levels, holders)) >= rate

    return least_whole(found, theta - 1, users)


def p_needed(holders: int, theta: int, levels: int, rate: float = RATE) -> float:
    """The least p, to the last digits, that finds a word of so many holders at least so often."""
    if holders < theta:
        raise UsageError(
            f"holders must be at least theta = {theta}, found {holders:,}; "
            "a word of fewer is never found."
        )
    p = float(betaincinv(theta, holders - theta + 1, rate ** (1 / levels)))
    while p < 1 and float(discovery_rate(Bernoulli(p), theta, levels, holders)) < rate:
        p = min(1.0, p * (1 + 1e-15))
    return p


def epsilon_needed(
    users: int,
    holders: int,
    delta: float,
    levels: int,
    rate: float = RATE,
) -> BatchParameters:
    """The cheapest plan that finds a word of so many holders at least so often; it has the epsilon.

    Theta follows from delta. The theorem asks for a batch of sqrt(n) at least, hence the floor.
    """
    theta = least_theta_within(delta)
    batch = max(batch_needed(holders, users, theta, levels, rate), math.isqrt(users - 1) + 1)
    if batch * (theta + 1) > users:
        raise UsageError(
            f"a word of {holders:,} holders among {users:,} users needs a batch of {batch:,} to be "
            f"found with probability {rate!r}, and the theorem allows at most "
            f"n / (theta + 1) = {users // (theta + 1):,}; give a more frequent word, a larger "
            "delta, or use the path accountant."
        )
    return checked_batch(users, theta, batch, levels)


def population_needed(
    frequency: float,
    epsilon: float,
    levels: int,
    delta: float | None = None,
    rate: float = RATE,
) -> BatchParameters:
    """The plan of the least population in which a word of this frequency is found so often.

    Without a delta, theta = ceil(log10 n + 6), and the rate drops a little wherever theta steps.
    """
    if not 0 < frequency <= 1:
        raise UsageError(
            f"frequency must be above 0 and at most 1, found {frequency!r}; give a share of users."
        )

    def plan(users: int) -> BatchParameters:
        return plan_of(users, epsilon, levels, delta)

    def found(users: int) -> float:
        try:
            at = plan(users)
        except UsageError:
            return 0.0
        sampling = FixedSize(users, at.batch)
        return float(discovery_rate(sampling, at.theta, levels, math.floor(frequency * users)))

    plan(LARGEST_POPULATION)  # parameters that can never be say so themselves
    return plan(least_population(found, rate))


def least_population(found: Callable[[int], float], rate: float = RATE) -> int:
    """The least n with found(n) >= rate, for a rate that grows with n between powers of ten.

    So do the papers' rules, but for whole numbers of holders and of drawn users, which step: an n
    a little below may do as well.
    """
    low = 1
    for exponent in range(1, 11):
        high = 10**exponent
        # From just above one power of ten up to the next, theta is the same and the rate grows.
        if found(high) >= rate:
            return least_whole(lambda users: found(users) >= rate, low, high)
        low = high
    raise UsageError(
        f"no population up to 10^10 gives rate {rate!r}; give a larger frequency or epsilon."
    )


@dataclass(frozen=True)
class UnitSize:
    """Words of at most `length` characters in units of `unit` characters: fewer, larger steps."""

    unit: int
    levels: int
    plan: BatchParameters
    holders: int


def unit_levels(length: int, unit: int) -> int:
    """L = ceil(length / unit)."""
    if length < 1 or unit < 1:
        raise UsageError(
            f"a length and a unit must be 1 or more, found {length!r} and {unit!r}; "
            "give numbers of characters."
        )
    return -(-length // unit)


def unit_sizes(
    users: int,
    epsilon: float,
    length: int,
    units: Sequence[int] = (1, 2, 3, 4),
    delta: float | None = None,
    rate: float = RATE,
) -> tuple[UnitSize, ...]:
    """For each unit size, the plan at the same epsilon and delta and the holders that it needs."""
    rows = []
    for unit in units:
        levels = unit_levels(length, unit)
        plan = plan_of(users, epsilon, levels, delta)
        needed = holders_needed(FixedSize(users, plan.batch), plan.theta, levels, rate)
        rows.append(UnitSize(unit, levels, plan, needed))
    return tuple(rows)
