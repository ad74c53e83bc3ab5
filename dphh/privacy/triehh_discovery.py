"""What TrieHH will find, before anything is read: worst-case discovery rates and their inverses.

Proposition 1 of TrieHH: a word that W users hold, sharing no prefix with any other word, gets a
hypergeometric number of votes at each level when m of n users are drawn, and is found with
probability P[votes >= theta]^L. With Bernoulli sampling, as the path accountant has it, the votes
are Binomial(W, p) and the rest is the same. Shared prefixes and words shorter than L only help.

All functions take arrays wherever a number varies; tails are sums of exact probabilities, not
approximations by a normal or a Poisson.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv
from scipy.stats import binom

from dphh.errors import UsageError
from dphh.privacy.triehh import (
    FixedSizePlan,
    Theorem,
    fixed_size_plan,
    fixed_size_price,
    preprint_theta,
    published_theta,
)

FloatArray = NDArray[np.float64]

#: The probability that plans speak of.
RATE = 0.9
# The relative error of `hypergeometric_tail`, below 1e-11 where measured against exact fractions
# and many digits; what keeps a delta is kept clear of it.
_ERROR = 1e-9
_LARGEST_POPULATION = 2**53


@dataclass(frozen=True)
class FixedSize:
    """`batch` of `users` users at each level, without replacement, as in the papers."""

    users: int
    batch: int

    def tail(self, holders: ArrayLike, theta: ArrayLike) -> FloatArray:
        """P[at least theta votes] at one level for a prefix of so many holders."""
        return hypergeometric_tail(holders, self.users, self.batch, theta)

    @property
    def most_holders(self) -> int:
        """Nobody holds a word but the users."""
        return self.users

    @property
    def chance(self) -> float:
        """The probability that a user is drawn."""
        return self.batch / self.users


@dataclass(frozen=True)
class Bernoulli:
    """Every user with probability `p` at each level, independently: the path accountant's."""

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise UsageError(
                f"p must be above 0 and at most 1, found {self.p!r}; give a sampling rate."
            )

    def tail(self, holders: ArrayLike, theta: ArrayLike) -> FloatArray:
        """P[at least theta votes] at one level for a prefix of so many holders."""
        return binomial_tail(holders, self.p, theta)

    @property
    def most_holders(self) -> int:
        """The population does not matter."""
        return _LARGEST_POPULATION

    @property
    def chance(self) -> float:
        """The probability that a user is drawn."""
        return self.p


Sampling = FixedSize | Bernoulli


# --- one level ------------------------------------------------------------------------------------


def hypergeometric_tail(
    holders: ArrayLike, users: ArrayLike, batch: ArrayLike, theta: ArrayLike
) -> FloatArray:
    """P[a batch of m of n users has at least theta of the W holders]: Proposition 2 of TrieHH.

    Summed by the ratio of neighbouring terms, away from the mean, so that the terms only fall:
    upwards from theta where theta lies above the mean, else as 1 less what lies below theta.
    """
    w, n, m, t = np.broadcast_arrays(
        np.floor(_floats(holders)), _floats(users), _floats(batch), _floats(theta)
    )
    if np.any(w > n) or np.any(m > n):
        raise UsageError(
            "holders and batch must be at most the users, found more; give parts of one population."
        )
    upwards = t * n > w * m
    i = np.where(upwards, t, t - 1)
    term = _hypergeometric(i, w, n, m)
    total = term.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        while np.any(term > total * 1e-17):
            up = (w - i) * (m - i) / ((i + 1) * (n - w - m + i + 1))
            down = i * (n - w - m + i) / ((w - i + 1) * (m - i + 1))
            # Past either end of the range a product of the numerator is 0, and stays so.
            term = np.where(term > 0, np.nan_to_num(term * np.where(upwards, up, down)), 0.0)
            total = total + term
            i = np.where(upwards, i + 1, i - 1)
    tail = np.where(upwards, total, 1 - total)
    return np.asarray(np.clip(np.where(t <= 0, 1.0, tail), 0.0, 1.0), dtype=np.float64)


def binomial_tail(holders: ArrayLike, p: ArrayLike, theta: ArrayLike) -> FloatArray:
    """P[Binomial(W, p) >= theta], by the incomplete beta function."""
    w, q, t = np.broadcast_arrays(np.floor(_floats(holders)), _floats(p), _floats(theta))
    enough = w >= t
    beta = betainc(np.maximum(t, 1.0), np.where(enough, w - t + 1, 1.0), q)
    return np.asarray(np.where(t <= 0, 1.0, np.where(enough, beta, 0.0)), dtype=np.float64)


# --- discovery and its inverses -------------------------------------------------------------------


def discovery_rate(
    sampling: Sampling, theta: int, levels: int, holders: ArrayLike
) -> NDArray[np.float64]:
    """Proposition 1: P[at least theta of the W holders vote]^L, for each number of holders."""
    _check_levels(levels)
    return np.asarray(sampling.tail(holders, theta) ** levels, dtype=np.float64)


def holders_needed(sampling: Sampling, theta: int, levels: int, rate: float = RATE) -> int:
    """The least number of holders whose word is found at least so often."""
    _check_levels(levels)
    _check_rate(rate)

    def found(holders: int) -> bool:
        return float(discovery_rate(sampling, theta, levels, holders)) >= rate

    # The rate is met somewhere between theta and many times theta / chance.
    high = max(theta, math.ceil(theta / sampling.chance))
    while high < sampling.most_holders and not found(high):
        high *= 2
    high = min(high, sampling.most_holders)
    if not found(high):
        raise UsageError(
            f"rate {rate!r} cannot be had: even a word that everybody holds is found less often "
            f"over {levels} levels with theta {theta} and this sample; sample more users."
        )
    return _least(found, theta - 1, high)


def frequency_needed(plan: FixedSizePlan, rate: float = RATE) -> float:
    """The least share of the users who must hold a word for it to be found at least so often."""
    sampling = FixedSize(plan.users, plan.batch)
    return holders_needed(sampling, plan.theta, plan.levels, rate) / plan.users


def batch_needed(holders: int, users: int, theta: int, levels: int, rate: float = RATE) -> int:
    """The least batch that finds a word of so many holders at least so often."""
    _check_levels(levels)
    _check_rate(rate)
    if not theta <= holders <= users:
        raise UsageError(
            f"holders must be at least theta = {theta} and at most the {users:,} users, found "
            f"{holders:,}; a word of fewer than theta holders is never found."
        )

    def found(batch: int) -> bool:
        return float(discovery_rate(FixedSize(users, batch), theta, levels, holders)) >= rate

    return _least(found, theta - 1, users)


def p_needed(holders: int, theta: int, levels: int, rate: float = RATE) -> float:
    """The least p, to the last digits, that finds a word of so many holders at least so often."""
    _check_levels(levels)
    _check_rate(rate)
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
    theorem: Theorem = "published",
) -> FixedSizePlan:
    """The cheapest plan that finds a word of so many holders at least so often; it has the epsilon.

    Theta follows from delta. The theorems ask for a batch of sqrt(n) at least, hence the floor.
    """
    theta = published_theta(delta) if theorem == "published" else preprint_theta(delta)
    batch = max(batch_needed(holders, users, theta, levels, rate), math.isqrt(users - 1) + 1)
    if batch * (theta + 1) > users:
        raise UsageError(
            f"a word of {holders:,} holders among {users:,} users needs a batch of {batch:,} to be "
            f"found with probability {rate!r}, and the theorem allows at most "
            f"n / (theta + 1) = {users // (theta + 1):,}; give a more frequent word, a larger "
            "delta, or use the path accountant."
        )
    return fixed_size_price(users, theta, batch, levels, theorem)


def population_needed(
    frequency: float,
    epsilon: float,
    levels: int,
    delta: float | None = None,
    rate: float = RATE,
    theorem: Theorem = "published",
) -> FixedSizePlan:
    """The plan of the least population in which a word of this frequency is found so often.

    Without a delta, theta = ceil(log10 n + 6), and the rate drops a little wherever theta steps.
    """
    if not 0 < frequency <= 1:
        raise UsageError(
            f"frequency must be above 0 and at most 1, found {frequency!r}; give a share of users."
        )

    def plan(users: int) -> FixedSizePlan:
        return fixed_size_plan(users, epsilon, levels, delta, theorem)

    def found(users: int) -> float:
        try:
            at = plan(users)
        except UsageError:
            return 0.0
        sampling = FixedSize(users, at.batch)
        return float(discovery_rate(sampling, at.theta, levels, math.floor(frequency * users)))

    plan(_LARGEST_POPULATION)  # parameters that can never be say so themselves
    return plan(least_population(found, rate))


def least_population(found: Callable[[int], float], rate: float = RATE) -> int:
    """The least n with found(n) >= rate, for a rate that grows with n between powers of ten.

    So do the papers' rules, but for whole numbers of holders and of drawn users, which step: an n
    a little below may do as well.
    """
    _check_rate(rate)
    low = 1
    for exponent in range(1, 16):
        high = 10**exponent
        # From just above one power of ten up to the next, theta is the same and the rate grows.
        if found(high) >= rate:
            return _least(lambda users: found(users) >= rate, low, high)
        low = high
    raise UsageError(
        f"no population up to 10^15 gives rate {rate!r}; give a larger frequency or epsilon."
    )


# --- K as a knob between epsilon and delta --------------------------------------------------------


def knob(
    users: int, theta: int, batch: int, levels: int, holders: ArrayLike
) -> tuple[FloatArray, FloatArray]:
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
    _check_levels(levels)
    k = _floats(holders)
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
    _check_levels(levels)
    _check_rate(rate)
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise UsageError(
            f"epsilon must be above 0 and delta between 0 and 1, found {epsilon!r} and {delta!r}; "
            "1.0 and a delta well below one over the number of users are common choices."
        )
    thetas: FloatArray = np.arange(2.0, most_theta + 1)
    # A little more than the quotient, so that what `knob` says is not above epsilon.
    ratio = math.expm1(epsilon / levels) * (1 - 1e-12)
    ks = np.maximum(np.ceil(thetas - 1 + thetas / ratio), thetas)
    thetas, ks = thetas[ks < users], ks[ks < users]
    low, high = thetas - 1, np.full_like(thetas, float(users))
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        keeps = hypergeometric_tail(ks + 1, users, middle, thetas) <= delta * (1 - _ERROR)
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


# --- unit sizes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnitSize:
    """Words of at most `length` characters in units of `unit` characters: fewer, larger steps."""

    unit: int
    levels: int
    plan: FixedSizePlan
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
    theorem: Theorem = "published",
) -> tuple[UnitSize, ...]:
    """For each unit size, the plan at the same epsilon and delta and the holders that it needs."""
    rows = []
    for unit in units:
        levels = unit_levels(length, unit)
        plan = fixed_size_plan(users, epsilon, levels, delta, theorem)
        needed = holders_needed(FixedSize(users, plan.batch), plan.theta, levels, rate)
        rows.append(UnitSize(unit, levels, plan, needed))
    return tuple(rows)


# --- helpers --------------------------------------------------------------------------------------


def _hypergeometric(i: FloatArray, w: FloatArray, n: FloatArray, m: FloatArray) -> FloatArray:
    """P[i of the W holders are in the batch], without the cancellation of three binomials' logs.

    C(W, i) C(n - W, m - i) / C(n, m) is b(i; W, p) b(m - i; n - W, p) / b(m; n, p) for binomial
    probabilities b at any p; at p = m / n none is smaller than it must be.
    """
    p = m / n
    top = binom.pmf(i, w, p) * binom.pmf(m - i, n - w, p)
    return np.asarray(top / binom.pmf(m, n, p), dtype=np.float64)


def _floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _least(suffices: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number above `low` that suffices, where all from it to `high` do."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _check_levels(levels: int) -> None:
    if levels < 1:
        raise UsageError(f"levels must be 1 or more, found {levels!r}; give the longest length.")


def _check_rate(rate: float) -> None:
    if not 0 < rate < 1:
        raise UsageError(
            f"rate must lie between 0 and 1, found {rate!r}; 0.9 is what plans speak of."
        )
