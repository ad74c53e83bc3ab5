"""How many of a word's holders vote at one level of TrieHH, and how likely the word is found.

A word that W users hold gets a hypergeometric number of votes if m of n users are sampled, and a
binomial one if every user tosses a coin. Tails are sums of exact probabilities, not approximations
by a normal or a Poisson distribution. Functions take arrays for all numbers that may vary.

Proposition 1 of TrieHH: a word that shares no prefix with any other is found with probability
P[votes >= theta]^L. Shared prefixes and words shorter than L only help.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from scipy.stats import binom

from dphh.errors import UsageError

FloatArray = NDArray[np.float64]

# A bound on the relative error of `hypergeometric_tail`, which is below 1e-11 where measured
# against exact fractions; a margin of this size is kept below a delta.
TAIL_ERROR = 1e-9
LARGEST_POPULATION = 2**53
#: The probability that plans use.
RATE = 0.9


@dataclass(frozen=True)
class FixedSize:
    """`batch` of `users` users at each level, without replacement, as in the papers."""

    users: int
    batch: int

    def tail(self, holders: ArrayLike, theta: ArrayLike) -> FloatArray:
        """P[at least theta votes] at one level for a prefix with these numbers of holders."""
        return hypergeometric_tail(holders, self.users, self.batch, theta)

    @property
    def most_holders(self) -> int:
        """The largest possible number of holders: all users."""
        return self.users

    @property
    def sampling_probability(self) -> float:
        """The probability that a user is sampled."""
        return self.batch / self.users


@dataclass(frozen=True)
class Bernoulli:
    """Each user with probability `p` at each level, independently, as in the path accountant."""

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise UsageError(
                f"p must be above 0 and at most 1, found {self.p!r}; give a sampling rate."
            )

    def tail(self, holders: ArrayLike, theta: ArrayLike) -> FloatArray:
        """P[at least theta votes] at one level for a prefix with these numbers of holders."""
        return binomial_tail(holders, self.p, theta)

    @property
    def most_holders(self) -> int:
        """A bound for searches; the population does not matter."""
        return LARGEST_POPULATION

    @property
    def sampling_probability(self) -> float:
        """The probability that a user is sampled."""
        return self.p


Sampling = FixedSize | Bernoulli


def hypergeometric_tail(
    holders: ArrayLike, users: ArrayLike, batch: ArrayLike, theta: ArrayLike
) -> FloatArray:
    """P[a batch of m of n users has at least theta of the W holders]: Proposition 2 of TrieHH.

    Summed by the ratio of neighbouring terms, away from the mean, so that the terms decrease:
    upwards from theta if theta is above the mean, else as 1 minus the sum below theta.
    """
    w, n, m, t = np.broadcast_arrays(
        np.floor(floats(holders)), floats(users), floats(batch), floats(theta)
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
            # Beyond either end of the range the numerator is 0, and all further terms are 0.
            term = np.where(term > 0, np.nan_to_num(term * np.where(upwards, up, down)), 0.0)
            total = total + term
            i = np.where(upwards, i + 1, i - 1)
    tail = np.where(upwards, total, 1 - total)
    return np.asarray(np.clip(np.where(t <= 0, 1.0, tail), 0.0, 1.0), dtype=np.float64)


def binomial_tail(holders: ArrayLike, p: ArrayLike, theta: ArrayLike) -> FloatArray:
    """P[Binomial(W, p) >= theta], by the incomplete beta function."""
    w, q, t = np.broadcast_arrays(np.floor(floats(holders)), floats(p), floats(theta))
    enough = w >= t
    beta = betainc(np.maximum(t, 1.0), np.where(enough, w - t + 1, 1.0), q)
    return np.asarray(np.where(t <= 0, 1.0, np.where(enough, beta, 0.0)), dtype=np.float64)


def _hypergeometric(i: FloatArray, w: FloatArray, n: FloatArray, m: FloatArray) -> FloatArray:
    """P[i of the W holders are in the batch], without cancellation in logarithms of binomials.

    C(W, i) C(n - W, m - i) / C(n, m) is b(i; W, p) b(m - i; n - W, p) / b(m; n, p) for binomial
    probabilities b at any p; p = m / n avoids underflow as far as possible.
    """
    p = m / n
    top = binom.pmf(i, w, p) * binom.pmf(m - i, n - w, p)
    return np.asarray(top / binom.pmf(m, n, p), dtype=np.float64)


def floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


# --- what is found --------------------------------------------------------------------------------


def discovery_rate(sampling: Sampling, theta: int, levels: int, holders: ArrayLike) -> FloatArray:
    """Proposition 1: P[at least theta of the W holders vote]^L, for each number of holders."""
    check_levels(levels)
    return np.asarray(sampling.tail(holders, theta) ** levels, dtype=np.float64)


def holders_needed(sampling: Sampling, theta: int, levels: int, rate: float = RATE) -> int:
    """The least number of holders whose word is found with probability `rate` or more."""
    check_levels(levels)
    check_rate(rate)

    def found(holders: int) -> bool:
        return float(discovery_rate(sampling, theta, levels, holders)) >= rate

    # The rate is met somewhere between theta and many times theta / sampling_probability.
    high = max(theta, math.ceil(theta / sampling.sampling_probability))
    while high < sampling.most_holders and not found(high):
        high *= 2
    high = min(high, sampling.most_holders)
    if not found(high):
        raise UsageError(
            f"rate {rate!r} cannot be reached: even a word that every user holds is found less "
            f"often over {levels} levels with theta {theta} and this sample; sample more users."
        )
    return least(found, theta - 1, high)


def least(suffices: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number above `low` that suffices; `suffices` is monotone up to `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def check_levels(levels: int) -> None:
    if levels < 1:
        raise UsageError(f"levels must be 1 or more, found {levels!r}; give the longest length.")


def check_rate(rate: float) -> None:
    if not 0 < rate < 1:
        raise UsageError(f"rate must lie between 0 and 1, found {rate!r}; plans use 0.9.")
