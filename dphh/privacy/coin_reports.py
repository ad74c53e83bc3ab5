"""Independent values: a client reports each by a coin of its own, p for the own, q for another.

Asymmetric unary encoding, with the p and q of a `SubsetSelection`. It is drawn as how many other
values come up, Binomial(s - 1, q), and a uniform set of so many. Who has nothing to say reports
Binomial(s, q) values: "nothing" is no value. (Where it is priced it counts as one more value whose
coin nobody gets to see, so that it costs no more than a value does.)

A report's size is not fixed, but neither may it be anything: sizes that come up less than once in
2^140 are not sent by anybody, so that a collector can refuse them. What is drawn is the coins' law,
given that the size is one of `sizes`. That has the same probability whatever value a report is for,
so that two values' chances of a report differ by the factor that they differ by without this limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from dphh.errors import UsageError
from dphh.privacy.binomial_weights import BITS, binomial_weights
from dphh.privacy.subset_selection import SubsetSelection

#: What a device's report is: a set of just so many values, or each value by a coin of its own.
Form = Literal["subsets", "coins"]
#: Sizes of this part of the likeliest one's probability, or less, are left out.
_RARE = 1 << BITS - 160
#: No more than this of a report's law is left out (`tests/privacy/test_sizes_of_reports.py`).
LEFT_OUT = 2.0**-140
#: Reports of more values than this, on average, are no messages.
_LARGEST = 1 << 20


@dataclass(frozen=True)
class Outcomes:
    """What a report holds beside a uniform choice: whether the own value, and how many others."""

    own: tuple[bool, ...]
    others: tuple[int, ...]
    #: In proportion to the probabilities.
    weights: tuple[int, ...]


def sizes(mechanism: SubsetSelection, form: Form) -> tuple[int, int]:
    """The least and the most values of a report."""
    return (mechanism.size, mechanism.size) if form == "subsets" else _sizes(mechanism)


def local_epsilon(mechanism: SubsetSelection, form: Form) -> float:
    """What one report tells."""
    return mechanism.epsilon if form == "subsets" else mechanism.epsilon_of_independent_values


@lru_cache(maxsize=64)
def _sizes(mechanism: SubsetSelection) -> tuple[int, int]:
    if mechanism.size > _LARGEST:
        raise UsageError(
            f"reports: by coins a report would hold about {mechanism.size:,} of "
            f"{mechanism.domain:,} values, and {_LARGEST:,} are the most; ask for a larger "
            "local_epsilon or keep fewer prefixes, or say reports='subsets'"
        )
    kept = [
        size
        for size, weight in binomial_weights(mechanism.domain, mechanism.other_chance)
        if weight > _RARE
    ]
    return min(kept), min(max(kept) + 1, mechanism.domain)


@lru_cache(maxsize=64)
def outcomes(mechanism: SubsetSelection, nothing: bool) -> Outcomes:
    """Of a report for a value, or for nothing; sizes that are not sent left out."""
    least, most = _sizes(mechanism)
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
