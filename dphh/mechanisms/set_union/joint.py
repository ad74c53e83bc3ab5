"""Prices of a set union: one round, jointly priced, and the choice between it and several rounds.

Method "auto". A first round has very little of the budget, and releases nothing: whether at least
LEAST_ITEMS_FOR_ROUNDS items reach its threshold decides what follows. If they do, users share
popular items, and rounds whose weights follow earlier ones find the most (method "adaptive"). If
not, one round finds the most, because it prices new items and other items jointly (method
"gaussian"). Both are calibrated so that the mean, over what the first round may show, of the larger
cost is at most delta (`dphh.privacy.events.ChosenUnionEvent`; the proof: docs/items.md).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, fsum, nextafter

from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.set_union.levels import ChoiceLevel, OneRoundAfterChoice, SetUnionLevel
from dphh.mechanisms.set_union.rounds import (
    ADAPTIVE_SHARES,
    ROUNDS,
    RoundsAndCost,
    round_level,
    round_levels,
    threshold_delta,
)
from dphh.mechanisms.terms import NOISE_TABLE_NOTE, checked_arithmetic_delta
from dphh.privacy.accounting import compose
from dphh.privacy.draws import arithmetic_delta
from dphh.privacy.events import ChosenUnionEvent, DeltaEvent, Event, SetUnionEvent
from dphh.privacy.gaussian import compose_sigmas, gaussian_sigma, split_sigma
from dphh.privacy.search import least_whole
from dphh.privacy.set_union import delta_shares, grid_bits, new_item_delta, new_item_threshold
from dphh.udfs.noise.table import rounded_gaussian

#: The first round's share of 1 / sigma^2, and its threshold's share of delta.
CHOICE_SHARE, CHOICE_DELTA = 3e-4, 1 / 512
#: The share of delta for what follows the first round is a multiple of 1 / DELTA_PARTS.
DELTA_PARTS = 256


def price_one_round(
    epsilon: float, delta: float, max_items: int, counting: CountsOptions
) -> RoundsAndCost:
    """One round, whose new items and other items are priced jointly: its level, the events that it
    costs, and how delta is divided."""
    spare = arithmetic_delta(max_items, epsilon) + counting.arithmetic_delta(epsilon)
    spare = checked_arithmetic_delta(spare, epsilon, delta)
    for_curve, for_new = _delta_shares(epsilon, delta, spare, counting)
    total = gaussian_sigma(epsilon, for_curve * delta - spare)
    sigma = counting.sigma_of_finding(total)
    bits = grid_bits(sigma, max_items)
    sigma_grid = ceil(sigma * 2**bits)
    noise = rounded_gaussian(sigma_grid)
    level = SetUnionLevel(
        level=1,
        max_items=max_items,
        grid_bits=bits,
        sigma_grid=noise.sigma,
        threshold_grid=new_item_threshold(noise, bits, max_items, for_new * delta),
    )
    new = new_item_delta(noise, bits, max_items, level.threshold_grid)
    events = (
        SetUnionEvent(level.sigma, new, "weighted Gaussian and its threshold"),
        *counting.counts_events(total),
        DeltaEvent(spare, NOISE_TABLE_NOTE),
    )
    shared_out = (
        ("the noise, where a user has no new item", for_curve * delta - spare),
        (
            "new items over the threshold, where a user has no other item (the larger of these "
            "two amounts counts)",
            for_new * delta,
        ),
        (NOISE_TABLE_NOTE, spare),
    )
    return (level,), events, shared_out


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


@lru_cache(maxsize=64, typed=True)  # takes nine compositions; a ledger or a shell asks again
def price_choice(
    epsilon: float, delta: float, max_items: int, counting: CountsOptions
) -> RoundsAndCost:
    """The first round; the one round or the several that it chooses; and what these cost."""
    spare = (1 + ROUNDS) * arithmetic_delta(max_items, epsilon)
    spare = checked_arithmetic_delta(spare + counting.arithmetic_delta(epsilon), epsilon, delta)
    for_curve, for_new = delta_shares(epsilon, delta)

    def union_and_counts_events(delta_share: float) -> tuple[ChosenUnionEvent, tuple[Event, ...]]:
        """The events, if what follows the first round has this share of delta."""
        rounds = gaussian_sigma(epsilon, delta_share * delta / 2)
        finding = counting.sigma_of_finding(rounds) ** -2
        counted = rounds**-2 - finding if counting.share else 0.0
        one = gaussian_sigma(epsilon, for_curve * delta_share * delta) ** -2 - counted
        choosing = CHOICE_SHARE * finding
        event = ChosenUnionEvent(
            choosing**-0.5,
            (one - choosing) ** -0.5,
            for_new * delta_share * delta,
            (finding - choosing) ** -0.5,
            delta_share * delta / 2,
        )
        return event, counting.counts_events(rounds)

    first_new = CHOICE_DELTA * delta
    always = (DeltaEvent(first_new), DeltaEvent(spare))

    def exceeds_delta(parts: int) -> bool:
        event, counts = union_and_counts_events(parts / DELTA_PARTS)
        return compose([event, *counts, *always]).delta(epsilon) > delta

    most = least_whole(exceeds_delta, 0, DELTA_PARTS) - 1
    if not most:
        raise UsageError(
            f"delta: found {delta:g}, of which too little is left for method 'auto' at epsilon "
            f"{epsilon:g}; give a larger delta"
        )
    event, counts = union_and_counts_events(most / DELTA_PARTS)
    # The first round has much noise. Its grid may be so coarse that users count for fewer items.
    bits = grid_bits(event.before, 1)
    first = round_level(ChoiceLevel, bits, event.before, min(max_items, 4**bits), first_new, 1)
    rounds = round_levels(
        split_sigma(event.rounds_sigma, ADAPTIVE_SHARES),
        [share * event.rounds_delta for share in ADAPTIVE_SHARES],
        [max_items] * ROUNDS,
        reweighed=True,
        first_number=2,
    )
    bits = rounds[0].grid_bits
    alone = round_level(OneRoundAfterChoice, bits, event.sigma, max_items, event.delta, 2)
    chosen = ChosenUnionEvent(
        first.sigma,
        alone.sigma,
        threshold_delta(alone),
        compose_sigmas([level.sigma for level in rounds]),
        nextafter(fsum(threshold_delta(level) for level in rounds), 1.0),
        "a first round, and then one round or several, as the first decides",
    )
    new = DeltaEvent(threshold_delta(first), "new items over the first round's threshold")
    shared_out = (
        (
            "the noise, if one round follows and a user has no new item",
            for_curve * most / DELTA_PARTS * delta,
        ),
        (
            "new items over the threshold, if one round follows and a user has no other item",
            event.delta,
        ),
        ("the noise, if several rounds follow", event.rounds_delta),
        ("new items over the thresholds, if several rounds follow", event.rounds_delta),
        ("new items over the first round's threshold", first_new),
        (NOISE_TABLE_NOTE, spare),
    )
    return (
        (first, alone, *rounds),
        (chosen, new, *counts, DeltaEvent(spare, NOISE_TABLE_NOTE)),
        shared_out,
    )
