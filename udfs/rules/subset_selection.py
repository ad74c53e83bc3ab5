"""Subset selection: a client reports d of s values, and its own value more often than any other.

Algorithm 1 of the Gboard paper (Wang et al. 2016; Ye and Barg 2017). The set of d values contains
the own one with probability p, and is otherwise uniform. So a set with the client's value has
probability p / C(s-1, d-1), one without it (1-p) / C(s-1, d). Their ratio is
e^epsilon = p (s-d) / ((1-p) d), for any two values and any set.

p is a multiple of 2^-64, so that the draws have exactly the priced probability
(`dphh.udfs.rules.reports`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import inf, nextafter

import numpy as np
from numpy.typing import ArrayLike

from dphh.errors import UsageError
from dphh.udfs.arrays import Floats

_PROBABILITY_ONE = 1 << 64  # the numerator of the probability 1
_DECIMAL_CONTEXT = Context(prec=80)  # 80 digits for e^epsilon and for logarithms
_EXP_MARGIN = Decimal("1e-60")  # far above the error of e^epsilon, far below 2^-64


@dataclass(frozen=True)
class SubsetSelection:
    """Subset selection: a report is a set of `size` of the values 0 to domain - 1. It has the
    user's own value with probability numerator / 2^64."""

    domain: int
    size: int
    numerator: int

    def __post_init__(self) -> None:
        if not 2 <= self.domain < 1 << 62:
            raise UsageError(f"a domain has from 2 to 2^62 - 1 values, not {self.domain}")
        if not 1 <= self.size <= (self.domain + 1) // 2:
            raise UsageError(
                f"found subsets of {self.size} of {self.domain} values; "
                f"give a size from 1 to {(self.domain + 1) // 2}: larger ones are never better"
            )
        if (
            not self.size * _PROBABILITY_ONE
            < self.numerator * self.domain
            < self.domain * _PROBABILITY_ONE
        ):
            raise UsageError(
                "a user's own value must be in the subset more often than others, but not always; "
                f"give a numerator between {self.size * _PROBABILITY_ONE // self.domain} and 2^64"
            )

    @property
    def own_chance(self) -> Fraction:
        """p, exactly: the probability that a report has the user's own value."""
        return Fraction(self.numerator, _PROBABILITY_ONE)

    @property
    def other_chance(self) -> Fraction:
        """q, exactly: the probability that a report has a certain other value."""
        return (self.size - self.own_chance) / (self.domain - 1)

    @property
    def p(self) -> float:
        """`own_chance` as a float."""
        return float(self.own_chance)

    @property
    def q(self) -> float:
        """`other_chance` as a float."""
        return float(self.other_chance)

    @property
    def epsilon(self) -> float:
        """The local epsilon of a report, rounded up: ln(p (s-d) / ((1-p) d))."""
        p = self.own_chance
        ratio = p * (self.domain - self.size) / ((1 - p) * self.size)
        decimal = _DECIMAL_CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
        exact = decimal.ln(_DECIMAL_CONTEXT)
        up = float(exact)
        while Decimal(up) < exact:
            up = nextafter(up, inf)
        return up

    def variance(self, users: int, holders: ArrayLike = 0) -> Floats:
        """The variance of `estimated_holders` for a value that `holders` of `users` users hold."""
        p, q = self.p, self.q
        held = np.asarray(holders, dtype=np.float64)
        return np.asarray((held * p * (1 - p) + (users - held) * q * (1 - q)) / (p - q) ** 2)


@dataclass(frozen=True)
class LevelReports:
    """The reports of a level: how many users send `contributions` reports each, and the delta for
    which the epsilon of all reports is computed."""

    users: int
    contributions: int
    delta: float

    @property
    def reports(self) -> int:
        return self.users * self.contributions


def subset_selection(domain: int, epsilon: float, size: int | None = None) -> SubsetSelection:
    """Subset selection with at most this local epsilon. Without `size`, the paper's:
    ceil(s / (e^epsilon + 1)).

    p is the largest multiple of 2^-64 that the epsilon allows.
    """
    if not 0 < epsilon < inf:
        raise UsageError(f"a local epsilon must be positive and finite, not {epsilon!r}")
    # An epsilon of 100 allows every p: a domain below 2^62 and p <= 1 - 2^-64 cost at most 88.
    likelier = Fraction(
        _DECIMAL_CONTEXT.exp(Decimal(min(float(epsilon), 100.0))) * (1 - _EXP_MARGIN)
    )
    if size is None:
        size = -(domain // -(likelier + 1))
    own = size * likelier
    numerator = min(int(own * _PROBABILITY_ONE / (own + domain - size)), _PROBABILITY_ONE - 1)
    if numerator * domain <= size * _PROBABILITY_ONE:
        raise UsageError(
            f"a local epsilon of {epsilon!r} over {domain} values is too small for probabilities "
            "in units of 2^-64; give a larger one"
        )
    return SubsetSelection(domain, size, numerator)


def estimated_holders(
    reports_with_value: ArrayLike, reports: int, mechanism: SubsetSelection
) -> Floats:
    """An unbiased estimate of how many of the reports come from holders of a value, for each value,
    from how many reports contain it: (count - reports q) / (p - q). `mechanism.variance` is the
    estimate's."""
    counted = np.asarray(reports_with_value, dtype=np.float64)
    return np.asarray((counted - reports * mechanism.q) / (mechanism.p - mechanism.q))
