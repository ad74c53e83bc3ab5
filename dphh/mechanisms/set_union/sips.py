"""Method "sips": DP-SIPS (Swanberg, Desfontaines & Haney 2023).

Round i spends a share f_i of mu^2 and of delta, later rounds more; items that a round released are
removed from every user, who then spreads the same norm over the rest. The Gaussian releases compose
to one, with one half of delta, and the thresholds' deltas to the other half, because a user's share
of new items in a later round may depend on earlier releases (a Gaussian filter beside a filter of
deltas: docs/composition.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.set_union.levels import price_rounds, shares_of_rounds
from dphh.mechanisms.terms import Priced

THEOREM = (
    "DP-SIPS (Swanberg, Desfontaines & Haney 2023): rounds of the weighted Gaussian policy, "
    "their Gaussian releases composed exactly and their thresholds beside them (proof: "
    "docs/composition.md, after Smith & Thakurta 2022); both directions"
)

#: As published.
SHARES = shares_of_rounds(0.3)


def price(
    epsilon: float,
    delta: float,
    max_items: int,
    counting: CountsOptions,
    shares: Sequence[float] | None = None,
) -> Priced:
    """As many rounds as shares, which are in proportion to the parts that they take."""
    parts = SHARES if shares is None else [share / sum(shares) for share in shares]
    return price_rounds(epsilon, delta, parts, [max_items] * len(parts), counting)
