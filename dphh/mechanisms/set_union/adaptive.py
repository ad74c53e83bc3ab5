"""Method "adaptive": after DP-SIPS (Swanberg, Desfontaines & Haney 2023).

From the second round on, users give more to items near the threshold, according to the noised
weights of all earlier rounds, released or not (`dphh.udfs.rules.weights`). The thresholds of
these rounds hold for any weights (`dphh.privacy.set_union`). What is not released stays in the
engine. The proof: docs/items.md.
"""

from __future__ import annotations

from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.set_union.levels import price_rounds, shares_of_rounds
from dphh.mechanisms.terms import Priced

THEOREM = (
    "rounds after DP-SIPS (Swanberg, Desfontaines & Haney 2023), with weights that follow "
    "earlier rounds' noised weights: each round a Gaussian release, given what was seen "
    "before, with a threshold that covers any weights of new items (proof: docs/items.md); "
    "the Gaussian releases composed exactly and the thresholds beside them (proof: "
    "docs/composition.md, after Smith & Thakurta 2022); both directions"
)

#: These find more than those of DP-SIPS (tests/benchmarks/measurements.md).
SHARES = shares_of_rounds(0.15)


def price(epsilon: float, delta: float, max_items: int, counting: CountsOptions) -> Priced:
    bounds = [max_items] * len(SHARES)
    return price_rounds(epsilon, delta, SHARES, bounds, counting, reweighed=True)
