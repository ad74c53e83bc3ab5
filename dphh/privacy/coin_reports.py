"""Reports by coins: a client reports each value by a separate coin, p for the own, q for others.

This is asymmetric unary encoding with the p and q of a `SubsetSelection`. A report is drawn as the
number of other values, Binomial(s - 1, q), and a uniform set of that size. A client with nothing to
say reports Binomial(s, q) values: "nothing" is no value. (The price treats it as one more value
whose coin is never seen, so it costs no more than a value does.)

A report's size is random, but limited: sizes with a total probability below 2^-140 are never sent,
so that a collector can refuse them. So a report has the coins' distribution conditional on a size
within `sizes`. That condition has the same probability for every value, so it does not change the
ratio of two values' probabilities of a report.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from dphh.errors import UsageError
from dphh.privacy.binomial_weights import BITS, binomial_weights
from dphh.privacy.subset_selection import SubsetSelection

#: A device's report: a set of a fixed number of values, or each value by a separate coin.
Form = Literal["subsets", "coins"]
#: Which prefixes a user with too many reports: a uniform sample, or those with which most of the
#: user's own rows begin.
Sampling = Literal["random", "greedy"]
#: Sizes of at most this weight, where the likeliest size has 2^256, are left out.
_RARE_WEIGHT = 1 << BITS - 160
#: At most this probability is left out (`tests/privacy/test_sizes_of_reports.py`).
LEFT_OUT = 2.0**-140
#: Reports with more values than this on average are refused: too large for messages.
_MOST_VALUES = 1 << 20


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of a report but for which others: whether it has the own value, and how many
    others."""

    own: tuple[bool, ...]
    others: tuple[int, ...]
    #: In proportion to the probabilities.
    weights: tuple[int, ...]


def sizes(mechanism: SubsetSelection, form: Form) -> tuple[int, int]:
    """The least and the largest number of values in a report."""
    return (mechanism.size, mechanism.size) if form == "subsets" else _sizes_of_coins(mechanism)


def local_epsilon(mechanism: SubsetSelection, form: Form) -> float:
    """The local epsilon of one report."""
    return mechanism.epsilon if form == "subsets" else mechanism.epsilon_of_independent_values


@lru_cache(maxsize=64)
def _sizes_of_coins(mechanism: SubsetSelection) -> tuple[int, int]:
    if mechanism.size > _MOST_VALUES:
        raise UsageError(
            f"reports: with coins a report would hold about {mechanism.size:,} of "
            f"{mechanism.domain:,} values, more than the {_MOST_VALUES:,} allowed; give a larger "
            "local_epsilon, a smaller keep, or reports='subsets'"
        )
    kept = [
        size
        for size, weight in binomial_weights(mechanism.domain, mechanism.other_chance)
        if weight > _RARE_WEIGHT
    ]
    return min(kept), min(max(kept) + 1, mechanism.domain)


@lru_cache(maxsize=64)
def outcomes(mechanism: SubsetSelection, nothing: bool) -> Outcomes:
    """The outcomes of a report for a value, or for nothing, of the sizes that are sent."""
    least, most = _sizes_of_coins(mechanism)
    if nothing:
        weights = sorted(binomial_weights(mechanism.domain, mechanism.other_chance))
        found = [(False, others, weight) for others, weight in weights]
    else:
        heads = mechanism.numerator
        weights = sorted(binomial_weights(mechanism.domain - 1, mechanism.other_chance))
        found = [
            (own, others, weight * coin)
            for own, coin in ((True, heads), (False, (1 << 64) - heads))
            for others, weight in weights
        ]
    sent = [each for each in found if least <= each[0] + each[1] <= most]
    return Outcomes(*(tuple(column) for column in zip(*sent, strict=True)))
