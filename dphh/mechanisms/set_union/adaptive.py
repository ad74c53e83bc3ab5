"""Method "adaptive": after DP-SIPS (Swanberg, Desfontaines & Haney 2023).

From the second round on, users give more to items near the threshold, according to the noised
weights of all earlier rounds, released or not (`dphh.udfs.rules.weights`). The thresholds of
these rounds hold for any weights (`dphh.privacy.set_union`). If the first round finds almost
nothing, one round replaces the others, within both of their amounts. What is not released stays in
the engine. The proof: docs/items.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.set_union.draws import draw_together
from dphh.mechanisms.set_union.levels import (
    DrawnRound,
    NextRound,
    RoundsAndCost,
    SetUnionLevel,
    merged_round,
    price_rounds,
    rounds_after_first,
    shares_of_rounds,
)

THEOREM = (
    "rounds after DP-SIPS (Swanberg, Desfontaines & Haney 2023), with weights that follow "
    "earlier rounds' noised weights: each round a Gaussian release, given what was seen "
    "before, with a threshold that covers any weights of new items (proof: docs/items.md); "
    "the Gaussian releases composed exactly and the thresholds beside them, the later rounds "
    "chosen after the first, within both amounts set aside for them (proof: "
    "docs/composition.md, after Smith & Thakurta 2022); both directions"
)

#: These find more than those of DP-SIPS (tests/benchmarks/measurements.md).
SHARES = shares_of_rounds(0.15)


def price(epsilon: float, delta: float, max_items: int, counting: CountsOptions) -> RoundsAndCost:
    bounds = [max_items] * len(SHARES)
    return price_rounds(epsilon, delta, SHARES, bounds, counting, reweighed=True)


def run(levels: Sequence[SetUnionLevel], host: Host, once: DrawOnce) -> Iterator[DrawnRound]:
    return draw_together(host, once, "items", adaptive_rounds(levels))


def adaptive_rounds(levels: Sequence[SetUnionLevel]) -> NextRound:
    """These levels or, if the first finds very few items, one round in place of all later ones."""
    first, *later = levels
    return rounds_after_first(first, merged_round(later), later)
