"""The path accountant: the privacy cost of a trie grown from sampled votes, and its theta and p.

At each of up to L levels every user tosses a fresh coin of probability p. A user whose coin shows
heads votes for the next prefix of the one word that the user has for the whole run, if the prefix
before it was kept. A prefix is kept with theta votes or more, and all kept prefixes are released.
Add or remove one user, and let k_i other users share the i-th prefix of the user's word. That
prefix is kept with probability b(k_i) = P[Bin(k_i, p) >= theta] without the user, and with
a(k_i) = b(k_i + 1) with the user. Nothing else depends on the user, so the likelihood ratio depends
only on how far the path of the user's word reaches.

    user added:    delta(epsilon) = max over k_1, ..., k_L of sum over J of [A_J - e^epsilon B_J]_+
    user removed:  epsilon = ln(1 / (1 - p)) with delta = 0

A_J and B_J are the probabilities, with and without the user, that exactly J levels are passed. The
proof is in docs/trie.md; `path_bound.py` bounds the maximum from above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dphh.errors import UsageError
from dphh.mechanisms.trie.path_bound import (
    COARSE,
    FINE,
    Resolution,
    delta_bound,
    minus_log_rounded_up,
)
from dphh.privacy.search import (
    float_at_least,
    float_at_most,
    integer_minimiser,
    least_whole,
    sign_change,
)
from dphh.privacy.special import betaincc
from dphh.wording.options import check_whole

RATE_BITS = 64  # sampling rates are multiples of 2^-RATE_BITS
LARGEST_THETA = 10**4
LARGEST_EPSILON = 300.0


# --- what a theta and a p cost --------------------------------------------------------------------


@dataclass(frozen=True)
class PathGuarantee:
    """(epsilon, delta)-differential privacy when one user is added or removed."""

    epsilon: float
    delta: float


def path_delta(epsilon: float, p: float | int, theta: int, levels: int) -> float:
    """An upper bound on delta at this epsilon when one user is added, within 2% down to 1e-80.

    Below `removal_epsilon(p)` it does not hold in both directions.
    """
    _check_epsilon(epsilon, 0.0)
    check_whole("theta", theta, most=LARGEST_THETA)
    rate = float_at_least(_exact_rate(p))  # rounded up: more sampling costs no less
    return delta_bound(epsilon, rate, theta, levels, FINE) if rate < 1 else 1.0


def removal_epsilon(p: float | int) -> float:
    """ln(1 / (1 - p)), rounded up: the epsilon when one user is removed, with delta 0."""
    rate = _exact_rate(p)
    return minus_log_rounded_up(float(rate), float(1 - rate))


def path_guarantee(epsilon: float, p: float | int, theta: int, levels: int) -> PathGuarantee:
    """The guarantee in both directions, at this epsilon or, if larger, at the removal epsilon."""
    reached = max(epsilon, removal_epsilon(p))
    return PathGuarantee(reached, path_delta(reached, p, theta, levels))


def rate_numerator(p: float | int) -> int:
    """A sampling rate in units of 2^-64. An integer is in these units; a float must be a multiple.

    The rate is never rounded, so that the priced rate is the rate of the draws.
    """
    scaled = math.ldexp(p, RATE_BITS) if isinstance(p, float) else p
    if isinstance(p, bool) or not 0 < scaled < 2**RATE_BITS or scaled != int(scaled):
        raise UsageError(
            f"p: found {p!r}; give a number between 0 and 1 that is a multiple of 2^-{RATE_BITS}, "
            "or its numerator as an integer"
        )
    return int(scaled)


def _exact_rate(p: float | int) -> Fraction:
    return Fraction(rate_numerator(p), 2**RATE_BITS)


def _check_epsilon(epsilon: float, smallest: float) -> None:
    if not smallest <= epsilon <= LARGEST_EPSILON:
        raise UsageError(
            f"epsilon: found {epsilon!r}; give a number from {smallest:g} to {LARGEST_EPSILON:g}"
        )


# --- the theta and p that find the rarest items ---------------------------------------------------


@dataclass(frozen=True)
class PathParameters:
    """A threshold and a sampling rate, with what they find and cost."""

    theta: int
    p: float  # an exact multiple of 2^-64
    users_needed: int  # the smallest number of holders with which an item is found
    delta: float  # the `path_delta` of theta and p at the given epsilon

    @property
    def numerator(self) -> int:
        """p in units of 2^-64, with which a random 64-bit integer is compared."""
        return rate_numerator(self.p)


def users_needed(p: float | int, theta: int, levels: int, probability: float = 0.9) -> int:
    """The smallest n such that an item that n users hold passes all levels with this probability.

    The coins of different levels are independent, and at each level at least n users vote for the
    item's prefix if their coins show heads: P[Bin(n, p) >= theta]^levels.
    """
    rate = float_at_most(_exact_rate(p))  # rounded down: less sampling finds no more
    missed = _miss_of_one_level(levels, probability)
    return least_whole(lambda users: _failure_probability(users, rate, theta) <= missed, theta - 1)


@lru_cache(maxsize=64, typed=True)
def choose_path(
    epsilon: float, delta: float, levels: int, probability: float = 0.9
) -> PathParameters:
    """The theta and p that find the rarest item at (epsilon, delta), in both directions.

    For each theta the largest allowed p finds most. Of all thetas, the one with the fewest users is
    chosen, and if several tie, the one that finds an item of that many users most often.
    """
    _check_epsilon(epsilon, 1e-9)
    missed = _miss_of_one_level(levels, probability)
    search = _RateSearch(epsilon, delta, levels)

    def users(theta: int) -> float:
        return _real_users(search.rate(theta), theta, missed)

    def choice(theta: int) -> tuple[int, float, PathParameters]:
        p, cost = search.refined_rate(theta)
        n = users_needed(p, theta, levels, probability)
        return n, _failure_probability(n, p, theta), PathParameters(theta, p, n, cost)

    # The search was coarse: try the best theta's neighbours, as long as one of them is better.
    best = integer_minimiser(users, LARGEST_THETA)
    choices = {best: choice(best)}
    reach = 2
    while True:
        for theta in range(max(best - reach, 1), min(best + reach, LARGEST_THETA) + 1):
            if theta not in choices and users(theta) < 1.005 * users(best) + 1:
                choices[theta] = choice(theta)
        better = min(choices, key=lambda theta: choices[theta][:2])
        if better == best:
            return choices[best][2]
        best, reach = better, 1


class _RateSearch:
    """The largest rate that each theta allows: roughly, or to 10^-4 for the best candidates."""

    def __init__(self, epsilon: float, delta: float, levels: int) -> None:
        self.epsilon, self.delta, self.levels = epsilon, delta, levels
        self._rates: dict[int, float] = {}
        cap = _rate_rounded_down(min(-math.expm1(-epsilon), 1 - 2.0**-20))
        while minus_log_rounded_up(cap, 1 - cap) > epsilon:
            cap = _rate_rounded_down(cap * (1 - 2.0**-50))
        self.cap = cap

    def rate(self, theta: int) -> float:
        """The largest rate that this theta allows, roughly."""
        if theta not in self._rates:
            nearest = min(self._rates, key=lambda other: abs(other - theta), default=None)
            guess = self._rates.get(nearest or 0) or self.cap / 4
            found = self._largest_rate(theta, guess, COARSE, 1.5, 1e-3)
            self._rates[theta] = found[0]
        return self._rates[theta]

    def refined_rate(self, theta: int) -> tuple[float, float]:
        """The largest rate that this theta allows, to 10^-4, and the delta that it costs."""
        return self._largest_rate(theta, self.rate(theta), FINE, 1.004, 1e-4)

    def _largest_rate(
        self, theta: int, guess: float, resolution: Resolution, stride: float, precision: float
    ) -> tuple[float, float]:
        costs: dict[float, float] = {}

        def slack(log_p: float) -> float:
            p = min(_rate_rounded_down(math.exp(log_p)), self.cap)
            if p not in costs:
                costs[p] = delta_bound(self.epsilon, p, theta, self.levels, resolution)
            return math.log(self.delta / costs[p])

        ceiling, step = math.log(self.cap), math.log(stride)
        low = high = min(math.log(guess), ceiling)
        floor = -RATE_BITS * math.log(2)
        if slack(low) >= 0:
            while high < ceiling and slack(high) >= 0:
                low, high, step = high, min(high + step, ceiling), 2 * step
        else:
            while slack(low) < 0:
                if low <= floor:
                    return 0.0, 1.0  # no rate is low enough
                low, high, step = max(low - step, floor), low, 2 * step
        if slack(high) < 0:
            low, high = sign_change(slack, low, high, precision)
        else:
            low = high
        p = min(_rate_rounded_down(math.exp(low)), self.cap)
        return p, costs[p]


def _failure_probability(n: float, p: float, theta: int) -> float:
    """P[Bin(n, p) < theta], also for real n >= theta."""
    return float(betaincc(theta, n - theta + 1, p))


def _real_users(p: float, theta: int, missed: float) -> float:
    """The real number n at which P[Bin(n, p) < theta] falls to `missed`."""
    if p == 0:
        return math.inf
    if _failure_probability(theta, p, theta) <= missed:
        return float(theta)
    low, high = float(theta), 2.0 * theta
    while _failure_probability(high, p, theta) > missed:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _failure_probability(middle, p, theta) > missed else (low, middle)
        )
    return high


def _miss_of_one_level(levels: int, passing_all: float) -> float:
    """The probability of failing one level, if all are passed with probability `passing_all`."""
    return -math.expm1(math.log(passing_all) / levels)


def _rate_rounded_down(p: float) -> float:
    """p rounded down to a multiple of 2^-64, at least one unit."""
    return math.ldexp(max(math.floor(math.ldexp(p, RATE_BITS)), 1), -RATE_BITS)
