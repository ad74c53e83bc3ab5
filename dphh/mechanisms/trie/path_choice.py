"""Chooses the theta and p that find the rarest items at a given price by the path accountant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from dphh.errors import UsageError
from dphh.mechanisms.trie.path_bound import COARSE, FINE, Resolution, delta_bound
from dphh.mechanisms.trie.path_rates import (
    LARGEST_THETA,
    RATE_BITS,
    check_epsilon,
    check_whole_number,
    multiple,
    rate_numerator,
    removal,
    rounded_down,
)
from dphh.privacy.search import crossing, smallest_integer
from dphh.privacy.special import betaincc


@dataclass(frozen=True)
class PathParameters:
    """A threshold and a sampling rate, with what they find and cost."""

    theta: int
    p: float  # an exact multiple of 2^-64
    users_needed: int  # the smallest number of holders with which an item is found
    delta: float  # path_delta at the given epsilon

    @property
    def numerator(self) -> int:
        """p in units of 2^-64, with which a 64-bit random word is compared."""
        return rate_numerator(self.p)


def users_needed(p: float | int, theta: int, levels: int, probability: float = 0.9) -> int:
    """The smallest n such that an item that n users hold passes all levels with this probability.

    The coins of different levels are independent, and at each level at least n users vote for the
    item's prefix if their coins show heads: P[Bin(n, p) >= theta]^levels.
    """
    check_whole_number("theta", theta, LARGEST_THETA, "20 is a common choice")
    check_whole_number("levels", levels, 10**4, "give the longest length that sequences may have")
    rate = rounded_down(p)
    missed = _miss_of_one_level(levels, probability)
    low, high = theta - 1, theta
    while _failure_probability(high, rate, theta) > missed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if _failure_probability(middle, rate, theta) > missed else (low, middle)
        )
    return high


@lru_cache(maxsize=64, typed=True)
def choose_path(
    epsilon: float, delta: float, levels: int, probability: float = 0.9
) -> PathParameters:
    """The theta and p that find the rarest item at (epsilon, delta), in both directions.

    For each theta the largest allowed p finds most. Of all thetas, the one with the fewest users is
    chosen, and if several tie, the one that finds an item of that many users most often.
    """
    check_epsilon(epsilon)
    if epsilon < 1e-9:
        raise UsageError(f"epsilon must be at least 1e-9, found {epsilon}; 1.0 is a common choice.")
    if not 1e-100 <= delta < 1:
        raise UsageError(
            f"delta must be at least 1e-100 and below 1, found {delta!r}; "
            "choose it well below one over the number of users."
        )
    check_whole_number("levels", levels, 10**4, "give the longest length that sequences may have")
    missed = _miss_of_one_level(levels, probability)
    search = _Search(epsilon, delta, levels)

    def users(theta: int) -> float:
        return _real_users(search.rate(theta), theta, missed)

    def choice(theta: int) -> tuple[int, float, PathParameters]:
        p, cost = search.refined(theta)
        n = users_needed(p, theta, levels, probability)
        return n, _failure_probability(n, p, theta), PathParameters(theta, p, n, cost)

    # The search was coarse: try the neighbours, and continue while the best is a new one.
    best = smallest_integer(users, LARGEST_THETA)
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


class _Search:
    """The largest rate that each theta allows: coarse, or to 10^-4 for the best candidates."""

    def __init__(self, epsilon: float, delta: float, levels: int) -> None:
        self.epsilon, self.delta, self.levels = epsilon, delta, levels
        self._rates: dict[int, float] = {}
        cap = multiple(min(-math.expm1(-epsilon), 1 - 2.0**-20))
        while removal(cap, 1 - cap) > epsilon:
            cap = multiple(cap * (1 - 2.0**-50))
        self.cap = cap

    def rate(self, theta: int) -> float:
        """About the largest rate."""
        if theta not in self._rates:
            nearest = min(self._rates, key=lambda other: abs(other - theta), default=None)
            guess = self._rates.get(nearest or 0) or self.cap / 4
            found = self._largest_sampling_probability(theta, guess, COARSE, 1.5, 1e-3)
            self._rates[theta] = found[0]
        return self._rates[theta]

    def refined(self, theta: int) -> tuple[float, float]:
        """The largest rate, and its delta."""
        return self._largest_sampling_probability(theta, self.rate(theta), FINE, 1.004, 1e-4)

    def _largest_sampling_probability(
        self, theta: int, guess: float, resolution: Resolution, stride: float, precision: float
    ) -> tuple[float, float]:
        costs: dict[float, float] = {}

        def slack(log_p: float) -> float:
            p = min(multiple(math.exp(log_p)), self.cap)
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
            low, high = crossing(slack, low, high, precision)
        else:
            low = high
        p = min(multiple(math.exp(low)), self.cap)
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


def _miss_of_one_level(levels: int, probability: float) -> float:
    """The probability with which an item may fail one level, to pass all with `probability`."""
    if not 0 < probability < 1:
        raise UsageError(
            f"probability must lie between 0 and 1, found {probability!r}; 0.9 is the default."
        )
    return -math.expm1(math.log(probability) / levels)
