"""How many of a word's holders vote at one level of TrieHH, and how often it is found so.

A word that W users hold gets a hypergeometric number of votes when m of n users are drawn, and a
binomial one where every user tosses a coin. Tails are sums of exact probabilities, not
approximations by a normal or a Poisson. All functions take arrays wherever a number varies.

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

# The relative error of `hypergeometric_tail`, below 1e-11 where measured against exact fractions
# and many digits; what keeps a delta is kept clear of it.
TAIL_ERROR = 1e-9
LARGEST_POPULATION = 2**53
#: The probability that plans speak of.
RATE = 0.9


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
        return LARGEST_POPULATION

    @property
    def chance(self) -> float:
        """The probability that a user is drawn."""
        return self.p


Sampling = FixedSize | Bernoulli


def hypergeometric_tail(
    holders: ArrayLike, users: ArrayLike, batch: ArrayLike, theta: ArrayLike
) -> FloatArray:
    """P[a batch of m of n users has at least theta of the W holders]: Proposition 2 of TrieHH.

    Summed by the ratio of neighbouring terms, away from the mean, so that the terms only fall:
    upwards from theta where theta lies above the mean, else as 1 less what lies below theta.
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
            # Past either end of the range a product of the numerator is 0, and stays so.
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
    """P[i of the W holders are in the batch], without the cancellation of three binomials' logs.

    C(W, i) C(n - W, m - i) / C(n, m) is b(i; W, p) b(m - i; n - W, p) / b(m; n, p) for binomial
    probabilities b at any p; at p = m / n none is smaller than it must be.
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
    """The least number of holders whose word is found at least so often."""
    check_levels(levels)
    check_rate(rate)

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
    return least(found, theta - 1, high)


def least(suffices: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number above `low` that suffices, where all from it to `high` do."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def check_levels(levels: int) -> None:
    if levels < 1:
        raise UsageError(f"levels must be 1 or more, found {levels!r}; give the longest length.")


def check_rate(rate: float) -> None:
    if not 0 < rate < 1:
        raise UsageError(
            f"rate must lie between 0 and 1, found {rate!r}; 0.9 is what plans speak of."
        )
