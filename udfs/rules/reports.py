"""Subset selection: a client reports d of s values, and its own value more often than any other.

Algorithm 1 of the Gboard paper (Wang et al. 2016; Ye and Barg 2017). The set of d values contains
the own one with probability p, and is otherwise uniform. So a set with the client's value has
probability p / C(s-1, d-1), one without it (1-p) / C(s-1, d). Their ratio is
e^epsilon = p (s-d) / ((1-p) d), for any two values and any set.

p is a multiple of 2^-64, so that the draws have exactly the priced probability, and other values
come from random words by rejection. A client draws d of the other s-1 values at once, and redraws
each duplicate from the same s-1. The procedure is symmetric under any permutation of the other
values, so all sets of the final size are equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from dphh.errors import UsageError
from dphh.udfs.arrays import Floats, Integers, lists_of
from dphh.udfs.noise.randomness import (
    Randomness,
    check_keys,
    keys_if_needed,
    numbered_keys,
    uniform_below,
)

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


# How reports are drawn.

_VALUES_AT_ONCE = 1 << 19  # so few that intermediate arrays stay in the processor's cache


def draw_subsets(
    randomness: Randomness,
    values: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None = None,
) -> Integers:
    """One report for each value: row i has `size` different values, in ascending order.

    (Ascending, so that the own value's position discloses nothing.) `keys`, one for each value, are
    for tests: a test's randomness then draws each report from seed, purpose and key alone. The work
    is done in blocks of values; beyond the result itself, only some blocks are in memory.
    """
    own_values = np.asarray(values, dtype=np.int64)
    if own_values.ndim != 1:
        raise UsageError(f"values must be one array, found {own_values.ndim} dimensions")
    if len(own_values) and not (own_values.min() >= 0 and own_values.max() < mechanism.domain):
        raise UsageError(f"values must lie from 0 to {mechanism.domain - 1}; found others")
    check_keys(len(own_values), keys)
    reports = np.empty((len(own_values), mechanism.size), dtype=np.int64)
    rows = max(_VALUES_AT_ONCE // mechanism.size, 1)
    for start in range(0, len(own_values), rows):
        some = slice(start, start + rows)
        named = None if keys is None else keys[some]
        _fill_reports(randomness, own_values[some], mechanism, purpose, named, reports[some])
    return reports


def _fill_reports(
    randomness: Randomness,
    own_values: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None,
    reports: Integers,
) -> None:
    """Draws one report for each of these values, into the rows of `reports`."""

    def other_values(rows: Integers, counts: Integers, attempt: int) -> Integers:
        """So many uniform values for each of the rows, none of which is the row's own value."""
        named = None if keys is None else numbered_keys(keys, rows, counts)
        total = int(counts.sum())
        drawn = uniform_below(
            randomness, mechanism.domain - 1, total, f"{purpose}/others {attempt}", named
        ).astype(np.int64)
        drawn += drawn >= np.repeat(own_values[rows], counts)
        return drawn

    rows = np.arange(len(own_values), dtype=np.int64)
    reports[:] = other_values(rows, np.full(len(rows), mechanism.size), 1).reshape(reports.shape)
    coins = randomness.random_words(len(own_values), f"{purpose}/own", keys)
    has_own = coins < np.uint64(mechanism.numerator)
    reports[has_own, 0] = own_values[has_own]
    reports.sort(axis=1)
    attempt = 1
    again = reports[:, 1:] == reports[:, :-1]
    rows = rows[again.any(axis=1)]
    while len(rows):
        attempt += 1
        mended = reports[rows]
        again = mended[:, 1:] == mended[:, :-1]
        mended[:, 1:][again] = other_values(rows, again.sum(axis=1), attempt)
        mended.sort(axis=1)
        reports[rows] = mended
        rows = rows[(mended[:, 1:] == mended[:, :-1]).any(axis=1)]


def reports_of_rows(
    randomness: Randomness,
    key: Any,
    value: Any,
    domain: int,
    report_size: int,
    numerator: Decimal,
    purpose: str,
) -> pa.Array:
    """`dphh_report(key, value, domain, size, numerator, purpose)`: one report for each row, a list
    of values in ascending order."""
    if value.null_count:
        raise UsageError("a value to report must not be NULL; give 'nothing' a value of its own")
    mechanism = SubsetSelection(domain, report_size, int(numerator))
    named = keys_if_needed(key, randomness, purpose)
    drawn = draw_subsets(randomness, value.to_numpy(), mechanism, purpose, named)
    return lists_of(np.full(len(drawn), mechanism.size), drawn.ravel())
