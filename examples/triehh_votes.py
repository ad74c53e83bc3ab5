"""How many of a word's holders vote at one level of TrieHH, and how likely the word is found.

A word that W users hold gets a hypergeometric number of votes if m of n users are sampled, and a
binomial one if every user tosses a coin. Proposition 1 of TrieHH: a word that shares no prefix with
any other is found with probability P[votes >= theta]^L.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from baselines.triehh import LARGEST_POPULATION
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, hypergeom

from dphh.errors import UsageError
from dphh.privacy.search import least_whole

Floats = NDArray[np.float64]
RATE = 0.9  # a word counts as found if it is found at least so often


@dataclass(frozen=True)
class FixedSize:
    """`batch` of `users` users at each level, without replacement, as in the papers."""

    users: int
    batch: int

    @property
    def p(self) -> float:
        """The probability that a user is sampled at a level."""
        return self.batch / self.users

    def tail(self, holders: ArrayLike, theta: ArrayLike) -> Floats:
        """P[at least theta votes] at one level for a prefix with these numbers of holders."""
        return hypergeometric_tail(holders, self.users, self.batch, theta)

    @property
    def most_holders(self) -> int:
        return self.users


@dataclass(frozen=True)
class Bernoulli:
    """Each user with probability `p` at each level, independently, as in the path accountant."""

    p: float

    def tail(self, holders: ArrayLike, theta: ArrayLike) -> Floats:
        """P[at least theta votes] at one level for a prefix with these numbers of holders."""
        return np.asarray(binom.sf(np.asarray(theta) - 1, np.floor(holders), self.p))

    @property
    def most_holders(self) -> int:
        return LARGEST_POPULATION


Sampling = FixedSize | Bernoulli


def hypergeometric_tail(
    holders: ArrayLike, users: ArrayLike, batch: ArrayLike, theta: ArrayLike
) -> Floats:
    """Proposition 2: P[a batch of m of n users has at least theta of the W holders]."""
    return np.asarray(hypergeom.sf(np.asarray(theta) - 1, users, np.floor(holders), batch))


def discovery_rate(sampling: Sampling, theta: int, levels: int, holders: ArrayLike) -> Floats:
    """Proposition 1: P[at least theta of the W holders vote]^L, for each number of holders."""
    return np.asarray(sampling.tail(holders, theta) ** levels, dtype=np.float64)


def holders_needed(sampling: Sampling, theta: int, levels: int, rate: float = RATE) -> int:
    """The least number of holders whose word is found with probability `rate` or more."""

    def found(holders: int) -> bool:
        return float(discovery_rate(sampling, theta, levels, holders)) >= rate

    high = theta
    while high < sampling.most_holders and not found(high):
        high = min(2 * high, sampling.most_holders)
    if not found(high):
        raise UsageError(f"no word is found with probability {rate!r}; sample more users")
    return least_whole(found, theta - 1, high)
