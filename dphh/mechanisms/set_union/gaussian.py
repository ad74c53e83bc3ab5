"""Method "gaussian": one round of the weighted Gaussian policy (Gopi, Gulhane, Kulkarni, Shen,
Shokouhi, Yekhanin 2020; Algorithm 5 of the DPNE paper).

For each user with items W: keep at most D0 of them, U; add 1/sqrt(|U|) to H[u] for each u in U.
Release { u : H[u] + N(0, sigma^2) > rho }.

H restricted to the items that others hold is a Gaussian mechanism (Balle & Wang 2018) of L2
sensitivity sqrt(1 - x), where x is the share of new items among the user's; new items pass rho with
probability at most x delta_new, by noise independent of the rest. No user pays for both in full, so
both may take nearly all of delta, where the papers give each one half.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.set_union.levels import (
    SetUnionLevel,
    round_level,
    threshold_delta,
)
from dphh.mechanisms.terms import (
    DELTA_BY_HAND,
    NOISE_TABLE_NOTE,
    Priced,
    arithmetic_delta,
    checked_arithmetic_delta,
)
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, SetUnionEvent
from dphh.privacy.gaussian import gaussian_sigma
from dphh.privacy.set_union import delta_shares, grid_bits

THEOREM = (
    "weighted Gaussian policy of DPSU (Gopi et al. 2020), with new items and other items "
    "priced jointly (after Wilkins, Kifer, Zhang & Karrer 2024; proof for weights: "
    "docs/items.md), with the exact Gaussian curve (Balle & Wang 2018) and integer thresholds "
    "from the rounded Gaussian's own tail; both directions"
)


def price(
    epsilon: float,
    delta: float,
    max_items: int,
    counting: CountsOptions,
    sigma: float | None = None,
    threshold: float | None = None,
) -> Priced:
    """One round, whose new items and other items are priced jointly: its level, the events that it
    costs, and how delta is divided. Noise and threshold may be given, in users: then the events may
    cost more than epsilon and delta (`stated_epsilon`)."""
    spare = arithmetic_delta(max_items, epsilon) + counting.arithmetic_delta(epsilon)
    spare = checked_arithmetic_delta(spare, epsilon, delta)
    for_curve, for_new = _delta_shares(epsilon, delta, spare, counting)
    total = gaussian_sigma(epsilon, for_curve * delta - spare)
    by_hand = sigma is not None or threshold is not None
    if sigma is None:
        sigma = counting.sigma_of_finding(total)
    else:
        total = counting.sigma_with_counts(sigma)
    bits = grid_bits(sigma, max_items)
    level = round_level(SetUnionLevel, bits, sigma, max_items, for_new * delta, 1)
    if threshold is not None:
        level = replace(level, threshold_grid=ceil(threshold * 2**bits))
    events = (
        SetUnionEvent(
            level.sigma, threshold_delta(level), note="weighted Gaussian and its threshold"
        ),
        *counting.counts_events(total),
        DeltaEvent(spare, note=NOISE_TABLE_NOTE),
    )
    if by_hand:
        return Priced((level,), events, ((DELTA_BY_HAND, delta),))
    shared_out = (
        ("the noise, where a user has no new item", for_curve * delta - spare),
        (
            "new items over the threshold, where a user has no other item (the larger of these "
            "two amounts counts)",
            for_new * delta,
        ),
        (NOISE_TABLE_NOTE, spare),
    )
    return Priced((level,), events, shared_out)


def _delta_shares(
    epsilon: float, delta: float, for_arithmetic: float, counting: CountsOptions
) -> tuple[float, float]:
    """The shares of delta for the Gaussian curve and for new items: those of `delta_shares`. With
    counts, which a user with only new items changes too, these may be too much; then 1/2 each."""
    for_curve, for_new = delta_shares(epsilon, delta)
    if counting.share:
        total = gaussian_sigma(epsilon, for_curve * delta - for_arithmetic)
        found = SetUnionEvent(counting.sigma_of_finding(total), for_new * delta)
        events = [found, *counting.counts_events(total), DeltaEvent(for_arithmetic)]
        if compose(events).delta(epsilon) > delta:
            return 1 / 2, 1 / 2
    return for_curve, for_new
