"""Subset selection: a client reports d values of s, its own among them more often than another.

Algorithm 1 of the Gboard paper (Wang et al. 2016; Ye and Barg 2017). The set of d values holds the
own one with probability p, and the rest of it is uniform. So a set that holds the client's value
has the chance p / C(s-1, d-1), one that does not (1-p) / C(s-1, d), and the two differ by
e^epsilon = p (s-d) / ((1-p) d), whatever the two values and whatever the set.

Everything drawn is exact: p is a multiple of 2^-64, the values come from whole words by rejection.
A client draws d of the other s-1 values at once and draws again, of the same s-1, for each that it
had already. What it keeps has no favourites: a renaming of the others renames all of it, so that
every set of the size it ends with is equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphh.errors import UsageError
from dphh.udfs.randomness import Randomness, numbered_keys, uniform_below

if TYPE_CHECKING:  # a client on a device needs NumPy alone
    import pyarrow as pa

Integers = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_WORDS = 1 << 64
_EXACT = Context(prec=80)  # digits of e^epsilon and of logarithms
_SLACK = Decimal("1e-60")  # far above their error, far below what a numerator can express
_BLOCK = 1 << 19  # values drawn at a time: the intermediate arrays stay in the processor's cache


@dataclass(frozen=True)
class SubsetSelection:
    """Reports of `size` of the values 0..domain-1; the own one with probability numerator/2^64."""

    domain: int
    size: int
    numerator: int

    def __post_init__(self) -> None:
        if not 2 <= self.domain < 1 << 62:
            raise UsageError(f"a domain has 2 to 2^62 values, not {self.domain}")
        if not 1 <= self.size <= (self.domain + 1) // 2:
            raise UsageError(
                f"subsets of {self.size} of {self.domain} values were asked for; "
                "take from 1 to half of them: more is never better"
            )
        if not self.size * _WORDS < self.numerator * self.domain < self.domain * _WORDS:
            raise UsageError(
                "the own value must be in the subset more often than another and less than always; "
                f"take a numerator between {self.size * _WORDS // self.domain} and 2^64"
            )

    @property
    def own_chance(self) -> Fraction:
        """p, exactly: how often the own value is in the set."""
        return Fraction(self.numerator, _WORDS)

    @property
    def other_chance(self) -> Fraction:
        """q, exactly: how often any other given value is in the set."""
        return (self.size - self.own_chance) / (self.domain - 1)

    @property
    def p(self) -> float:
        """How often the own value is in the set."""
        return float(self.own_chance)

    @property
    def q(self) -> float:
        """How often any other given value is in the set."""
        return float(self.other_chance)

    @property
    def epsilon(self) -> float:
        """The local epsilon of what is drawn, rounded up: ln(p (s-d) / ((1-p) d))."""
        p = self.own_chance
        return _log_up(p * (self.domain - self.size) / ((1 - p) * self.size))

    @property
    def epsilon_of_independent_values(self) -> float:
        """The local epsilon if every value were reported or not by a coin of its own, rounded up.

        With the same p and q: ln(p (1-q) / ((1-p) q)), a little more. It is what prices
        `draw_aggregate`, whose counts are independent.
        """
        p, q = self.own_chance, self.other_chance
        return _log_up(p * (1 - q) / ((1 - p) * q))

    def variance(self, users: int, holders: ArrayLike = 0) -> FloatArray:
        """The variance of `estimate` for a value that `holders` of the `users` reports are for."""
        p, q = self.p, self.q
        held = np.asarray(holders, dtype=np.float64)
        return np.asarray((held * p * (1 - p) + (users - held) * q * (1 - q)) / (p - q) ** 2)


def subset_selection(domain: int, epsilon: float, size: int | None = None) -> SubsetSelection:
    """Subset selection of at most this local epsilon, with the paper's ceil(s / (e^epsilon + 1)).

    p is the largest multiple of 2^-64 that keeps to epsilon.
    """
    if not 0 < epsilon < inf:
        raise UsageError(f"a local epsilon must be positive and finite, not {epsilon!r}")
    # Every p below 1 keeps to 100: a domain below 2^62 and p <= 1 - 2^-64 cost at most 88.
    likelier = Fraction(_EXACT.exp(Decimal(min(float(epsilon), 100.0))) * (1 - _SLACK))
    if size is None:
        size = -(domain // -(likelier + 1))
    own = size * likelier
    numerator = min(int(own * _WORDS / (own + domain - size)), _WORDS - 1)
    if numerator * domain <= size * _WORDS:
        raise UsageError(
            f"a local epsilon of {epsilon!r} over {domain} values is too small for 64-bit coins; "
            "ask for more"
        )
    return SubsetSelection(domain, size, numerator)


def _log_up(ratio: Fraction) -> float:
    """A float at least ln(ratio), and the next one at most."""
    exact = _EXACT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(_EXACT)
    up = float(exact)
    while Decimal(up) < exact:
        up = nextafter(up, inf)
    return up


def draw_subsets(
    randomness: Randomness,
    values: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None = None,
) -> Integers:
    """One report a value: row i holds `size` different values, for values[i], in rising order.

    (In rising order, so that the place of the own value says nothing.) `keys`, one a value, are
    for tests: a test's randomness then gives each its report by seed, purpose and key alone. Work
    is done in blocks; beyond the result itself, no more than some blocks are held.
    """
    held = np.asarray(values, dtype=np.int64)
    if held.ndim != 1:
        raise UsageError(f"values must be one array, found {held.ndim} dimensions")
    if len(held) and not (held.min() >= 0 and held.max() < mechanism.domain):
        raise UsageError(f"values must lie from 0 to {mechanism.domain - 1}; found others")
    if keys is not None and len(keys) != len(held):
        raise UsageError(f"{len(keys)} keys were given for {len(held)} values; give one for each")
    reports = np.empty((len(held), mechanism.size), dtype=np.int64)
    rows = max(_BLOCK // mechanism.size, 1)
    for start in range(0, len(held), rows):
        block = slice(start, start + rows)
        named = None if keys is None else keys[block]
        _draw_block(randomness, held[block], mechanism, purpose, named, reports[block])
    return reports


def _draw_block(
    randomness: Randomness,
    held: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None,
    reports: Integers,
) -> None:
    def others(rows: Integers, count: NDArray[np.int64], attempt: int) -> Integers:
        """So many uniform values for each of the rows, none of them the row's own."""
        named = None if keys is None else numbered_keys(keys, rows, count)
        total = int(count.sum())
        drawn = uniform_below(
            randomness, mechanism.domain - 1, total, f"{purpose}/others {attempt}", named
        ).astype(np.int64)
        drawn += drawn >= np.repeat(held[rows], count)
        return drawn

    rows = np.arange(len(held), dtype=np.int64)
    reports[:] = others(rows, np.full(len(rows), mechanism.size), 1).reshape(reports.shape)
    coins = randomness.words(len(held), f"{purpose}/own", keys)
    own = coins < np.uint64(mechanism.numerator)
    reports[own, 0] = held[own]
    reports.sort(axis=1)
    attempt = 1
    again = reports[:, 1:] == reports[:, :-1]
    rows = rows[again.any(axis=1)]
    while len(rows):
        attempt += 1
        mended = reports[rows]
        again = mended[:, 1:] == mended[:, :-1]
        mended[:, 1:][again] = others(rows, again.sum(axis=1), attempt)
        mended.sort(axis=1)
        reports[rows] = mended
        rows = rows[(mended[:, 1:] == mended[:, :-1]).any(axis=1)]


def estimate(reports: ArrayLike, users: int, mechanism: SubsetSelection) -> FloatArray:
    """How many of the `users` reports are for each value, from how many hold it: unbiased.

    (count - n q) / (p - q), with the variance that `mechanism.variance` gives.
    """
    counted = np.asarray(reports, dtype=np.float64)
    return np.asarray((counted - users * mechanism.q) / (mechanism.p - mechanism.q))
