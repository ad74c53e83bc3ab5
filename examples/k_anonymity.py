"""Approximate k-anonymity of LDP TrieHH: how rarely a word of fewer than k users is released.

A word is released only if its count is among the `keep` largest of a level of all s - 1 candidates
(and "nothing", which is none). A user reports a word once a level, so holders are users. With k
holders of n reports the count is f(k) ~ Binomial(k, p) + Binomial(n - k, q). It is not kept if it
is below x and `keep` others reach x. So for every x

    P[kept] <= P[f(k) >= x] + P[K < keep],   K = how many of the others reach x,

and K is well above `keep` where x is a little low. Two ways to say what the others' counts are:

- `k_anonymity`: what they are. Every other candidate is in every report with q at least, so its
  count is above Binomial(n, q), whoever holds it. A report is a set S with chance in proportion to
  e^epsilon if the own value is in S: independent coins given their sum. So its values, and the
  counts of n independent reports, are negatively associated, and Chernoff's bound holds for K as
  for independent ones: P[K <= keep] <= exp(-(mu - keep)^2 / (2 mu)), mu = E K > keep.
- `lemma_1`: what the Gboard paper's Lemma 1 puts in their place so that its proof goes through,
  uniform subsets of d - 2 of s - 1 values. Their counts lie lower by n (2 - p) / (s - 1) in the
  mean; where n is large that is more than the spread, sqrt(n q), and the lemma says nothing.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from dphh.errors import UsageError
from dphh.udfs.rules.reports import SubsetSelection

# The part of 1 - alpha that may go to K < keep.
_PART = 1e-3
_SLACK = 1e-9


def kept_at_most(
    mechanism: SubsetSelection, reports: int, keep: int, holders: int, alpha: float = 0.95
) -> float:
    """An upper bound on how often a word of so many holders is kept; tightest about 1 - alpha."""
    _check(mechanism, reports, keep, alpha)
    if not 0 <= holders <= reports:
        raise UsageError(f"holders must be 0 to the {reports} reports, not {holders}")
    reached, missed = _surely_reached(
        mechanism.domain - 2, reports, mechanism.q, keep, (1 - alpha) * _PART
    )
    return min(_tail(mechanism, reports, holders, reached) + missed, 1.0)


def k_anonymity(
    mechanism: SubsetSelection, reports: int, keep: int, alpha: float = 0.95
) -> int | None:
    """The largest k whose words are kept with at most 1 - alpha; None if none is. Proved."""
    _check(mechanism, reports, keep, alpha)
    reached, missed = _surely_reached(
        mechanism.domain - 2, reports, mechanism.q, keep, (1 - alpha) * _PART
    )
    return _largest_k(mechanism, reports, reached, 1 - alpha - missed)


def lemma_1(mechanism: SubsetSelection, reports: int, keep: int, alpha: float = 0.95) -> int | None:
    """The largest k of the Gboard paper's Lemma 1, as it is written; None if it has none."""
    _check(mechanism, reports, keep, alpha)
    if mechanism.size <= 2:
        return None  # the subsets are empty
    cells = mechanism.domain - 1
    reached, missed = _surely_reached(
        cells, reports, (mechanism.size - 2) / cells, keep, (1 - alpha) * _PART
    )
    return _largest_k(mechanism, reports, reached, 1 - alpha - missed)


def normal_k(mechanism: SubsetSelection, reports: int, keep: int, alpha: float = 0.95) -> float:
    """About `k_anonymity`, by normal approximations and the expected threshold; not proved."""
    _check(mechanism, reports, keep, alpha)
    spread = math.sqrt(reports * mechanism.q * (1 - mechanism.q))
    above = -ndtri(keep / (mechanism.domain - 2)) + ndtri(1 - alpha)
    return float(above * spread / (mechanism.p - mechanism.q))


def _surely_reached(
    cells: int, reports: int, inclusion: float, keep: int, allowed: float
) -> tuple[int, float]:
    """The largest x that fewer than `keep` counts of Binomial(n, inclusion) reach with no more than
    the allowed probability, and a bound on that.
    """

    def missed(x: int) -> float:
        expected = cells * float(binom.sf(x - 1, reports, inclusion)) * (1 - _SLACK)
        return math.exp(-((expected - keep) ** 2) / (2 * expected)) if expected > keep else 1.0

    if missed(0) > allowed:
        return 0, 1.0  # too few candidates: all are kept
    low, high = 0, reports + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(middle) <= allowed else (low, middle)
    return low, missed(low)


def _tail(mechanism: SubsetSelection, reports: int, holders: int, x: int) -> float:
    """P[f(holders) >= x], rounded up."""
    own = np.arange(holders + 1)
    chances = binom.pmf(own, holders, mechanism.p)
    others = binom.sf(x - 1 - own, reports - holders, mechanism.q)
    return min(float(chances @ others) * (1 + _SLACK), 1.0)


def _largest_k(mechanism: SubsetSelection, reports: int, x: int, chance: float) -> int | None:
    def rare(holders: int) -> bool:
        return _tail(mechanism, reports, holders, x) <= chance

    if not rare(0):
        return None
    low, high = 0, 1
    while high <= reports and rare(high):
        low, high = high, 2 * high
    high = min(high, reports + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rare(middle) else (low, middle)
    return low


def _check(mechanism: SubsetSelection, reports: int, keep: int, alpha: float) -> None:
    if reports < 1:
        raise UsageError(f"there must be at least one report, not {reports}")
    if not 1 <= keep < mechanism.domain:
        raise UsageError(f"1 to {mechanism.domain - 1} candidates can be kept, not {keep}")
    if not 0 < alpha < 1:
        raise UsageError(f"alpha must lie between 0 and 1, found {alpha!r}; 0.95 is a common one")
