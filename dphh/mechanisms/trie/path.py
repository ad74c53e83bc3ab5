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
from functools import cache, lru_cache

from dphh.errors import UsageError
from dphh.mechanisms.terms import FINDING_PROBABILITY
from dphh.mechanisms.trie.path_bound import COARSE, FINE, Resolution, delta_bound, removal_epsilon
from dphh.privacy.search import betaincc, integer_minimiser, least_whole, sign_change
from dphh.wording.options import check_whole

RATE_BITS = 64  # sampling rates are multiples of 2^-RATE_BITS
LARGEST_THETA = 10**4


def path_delta(epsilon: float, p: float, theta: int, levels: int) -> float:
    """An upper bound on delta at this epsilon when one user is added. It is at most 2% too high
    where delta is 1e-80 or more.

    Below `removal_epsilon(p)` it does not hold in both directions.
    """
    check_whole("theta", theta, most=LARGEST_THETA)
    return delta_bound(epsilon, p, theta, levels, FINE)


def path_guarantee(epsilon: float, p: float, theta: int, levels: int) -> tuple[float, float]:
    """(epsilon, delta) in both directions: this epsilon or, if larger, the removal epsilon."""
    epsilon = max(epsilon, removal_epsilon(p))
    return epsilon, path_delta(epsilon, p, theta, levels)


def users_needed(p: float, theta: int, levels: int) -> int:
    """The smallest n such that an item that n users hold passes all levels with
    FINDING_PROBABILITY.

    The coins of different levels are independent, and at each level at least n users vote for the
    item's prefix if their coins show heads: P[Bin(n, p) >= theta]^levels.
    """
    allowed = _allowed_failure(levels)
    return least_whole(lambda users: _failure_probability(users, p, theta) <= allowed, theta - 1)


@lru_cache(maxsize=64, typed=True)
def choose_theta_and_p(epsilon: float, delta: float, levels: int) -> tuple[int, float]:
    """The theta and p, a multiple of 2^-64, that find the rarest item at (epsilon, delta), in both
    directions.

    For each theta the largest allowed p finds most. Of all thetas, the one with the fewest users is
    chosen, and if several tie, the one that finds an item of that many users most often.
    """
    if epsilon < 1e-9:
        raise UsageError(f"epsilon: found {epsilon!r}; give 1e-9 or more")
    search = _RateSearch(epsilon, delta, levels)

    def rough_users(theta: int) -> float:
        return _users_needed_unrounded(search.rough_rate(theta), theta, levels)

    def users_failure_and_rate(theta: int) -> tuple[int, float, float]:
        p = search.refined_rate(theta)
        n = users_needed(p, theta, levels)
        return n, _failure_probability(n, p, theta), p

    # The search was coarse: try the best theta's neighbours, as long as one of them is better.
    best = integer_minimiser(rough_users, LARGEST_THETA)
    choices = {best: users_failure_and_rate(best)}
    reach = 2
    while True:
        for theta in range(max(best - reach, 1), min(best + reach, LARGEST_THETA) + 1):
            if theta not in choices and rough_users(theta) < 1.005 * rough_users(best) + 1:
                choices[theta] = users_failure_and_rate(theta)
        better = min(choices, key=lambda theta: choices[theta][:2])
        if better == best:
            return best, choices[best][2]
        best, reach = better, 1


class _RateSearch:
    """The largest rate that each theta allows: roughly, or to 10^-4 for the best candidates."""

    def __init__(self, epsilon: float, delta: float, levels: int) -> None:
        self.epsilon, self.delta, self.levels = epsilon, delta, levels
        self._rates: dict[int, float] = {}
        cap = rate_rounded_down(min(-math.expm1(-epsilon), 1 - 2.0**-20))
        while removal_epsilon(cap) > epsilon:
            cap = rate_rounded_down(cap * (1 - 2.0**-50))
        self.cap = cap

    def rough_rate(self, theta: int) -> float:
        """The largest rate that this theta allows, roughly."""
        if theta not in self._rates:
            nearest = min(self._rates, key=lambda other: abs(other - theta), default=None)
            guess = self._rates.get(nearest or 0) or self.cap / 4
            self._rates[theta] = self._largest_rate(theta, guess, COARSE, 1.5, 1e-3)
        return self._rates[theta]

    def refined_rate(self, theta: int) -> float:
        """The largest rate that this theta allows, to 10^-4."""
        return self._largest_rate(theta, self.rough_rate(theta), FINE, 1.004, 1e-4)

    def _largest_rate(
        self,
        theta: int,
        first_guess: float,
        resolution: Resolution,
        first_factor: float,
        precision: float,
    ) -> float:
        def rate(log_p: float) -> float:
            return min(rate_rounded_down(math.exp(log_p)), self.cap)

        @cache
        def log_delta_slack(log_p: float) -> float:
            cost = delta_bound(self.epsilon, rate(log_p), theta, self.levels, resolution)
            return math.log(self.delta / cost)

        ceiling, step = math.log(self.cap), math.log(first_factor)
        low = high = min(math.log(first_guess), ceiling)
        floor = -RATE_BITS * math.log(2)
        if log_delta_slack(low) >= 0:
            while high < ceiling and log_delta_slack(high) >= 0:
                low, high, step = high, min(high + step, ceiling), 2 * step
        else:
            while log_delta_slack(low) < 0:
                if low <= floor:
                    return 0.0  # no rate is low enough
                low, high, step = max(low - step, floor), low, 2 * step
        if log_delta_slack(high) < 0:
            return rate(sign_change(log_delta_slack, low, high, precision)[0])
        return rate(high)


def _failure_probability(users: float, p: float, theta: int) -> float:
    """The probability that so many users' coins give fewer than theta votes; also for reals."""
    return float(betaincc(theta, users - theta + 1, p))


def _users_needed_unrounded(p: float, theta: int, levels: int) -> float:
    """`users_needed` as a real number, before it is rounded up."""
    allowed = _allowed_failure(levels)
    if p == 0:
        return math.inf
    if _failure_probability(theta, p, theta) <= allowed:
        return float(theta)
    low, high = float(theta), 2.0 * theta
    while _failure_probability(high, p, theta) > allowed:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _failure_probability(middle, p, theta) > allowed else (low, middle)
        )
    return high


def _allowed_failure(levels: int) -> float:
    """The probability of failing one level, if all are passed with FINDING_PROBABILITY."""
    return -math.expm1(math.log(FINDING_PROBABILITY) / levels)


def rate_rounded_down(p: float) -> float:
    """p rounded down to a multiple of 2^-64, at least one unit."""
    return math.ldexp(max(math.floor(math.ldexp(p, RATE_BITS)), 1), -RATE_BITS)
