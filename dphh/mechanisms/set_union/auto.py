"""Method "auto": a first round, and then one round or several.

The first round has very little of the budget, and releases nothing: whether at least
LEAST_ITEMS_FOR_ROUNDS items reach its threshold decides what follows. If they do, users share
popular items, and rounds whose weights follow earlier ones find the most (method "adaptive"). If
not, one round finds the most, because it prices new items and other items jointly (method
"gaussian"). Both are calibrated so that the mean, over what the first round may show, of the larger
cost is at most delta (`dphh.privacy.events.ChosenUnionEvent`; the proof: docs/items.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from math import fsum, nextafter

from dphh.engines.host import DrawOnce, Host
from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.running import Draws
from dphh.mechanisms.set_union import adaptive
from dphh.mechanisms.set_union.draws import draw_in_order, draw_words, draws_in_order, words_steps
from dphh.mechanisms.set_union.levels import (
    LEAST_ITEMS_FOR_ROUNDS,
    ROUNDS,
    ChoiceLevel,
    DrawnRound,
    OneRoundAfterChoice,
    RoundsAndCost,
    SetUnionLevel,
    round_level,
    round_levels,
    threshold_delta,
)
from dphh.mechanisms.terms import NOISE_TABLE_NOTE, arithmetic_delta, checked_arithmetic_delta
from dphh.privacy.accounting import compose
from dphh.privacy.events import ChosenUnionEvent, DeltaEvent, Event
from dphh.privacy.gaussian import compose_sigmas, gaussian_sigma, split_sigma
from dphh.privacy.search import least_whole
from dphh.privacy.set_union import delta_shares, grid_bits

THEOREM = (
    "a first round of the weighted Gaussian policy of DPSU (Gopi et al. 2020) chooses between "
    "one round, which prices new items and other items jointly, and rounds whose weights "
    "follow earlier ones (after DP-SIPS: Swanberg, Desfontaines & Haney 2023); the cost is the "
    "mean, over what the first round may show, of the larger of the two choices' costs (proof: "
    "docs/items.md), with the exact Gaussian curve (Balle & Wang 2018); both directions"
)

#: The first round's least and largest share of 1 / sigma^2, and its threshold's share of delta.
LEAST_CHOICE_SHARE, MOST_CHOICE_SHARE, CHOICE_DELTA = 3e-4, 3e-3, 1 / 512
#: Noise of the first round, in users, with which it sees what is popular among some 50,000 users.
CHOICE_SIGMA = 160.0
#: The share of delta for what follows the first round is a multiple of 1 / DELTA_PARTS.
DELTA_PARTS = 256


@lru_cache(maxsize=64, typed=True)  # takes nine compositions; a ledger or a shell asks again
def price(epsilon: float, delta: float, max_items: int, counting: CountsOptions) -> RoundsAndCost:
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
        most = min(CHOICE_SIGMA**-2, MOST_CHOICE_SHARE * finding)
        choosing = max(LEAST_CHOICE_SHARE * finding, most)
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
        split_sigma(event.rounds_sigma, adaptive.SHARES),
        [share * event.rounds_delta for share in adaptive.SHARES],
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


def run(levels: Sequence[SetUnionLevel], host: Host, once: DrawOnce) -> Iterator[DrawnRound]:
    """Runs the first round, which releases no item, and then one round or several: the number of
    items that the first round finds decides."""
    first, alone, *rounds = levels
    reached = once("items/choice", partial(draw_words, host, first, "items/choice"))
    # (key, noisy) of the items that reach its threshold
    yield first, reached.slice(0, 0)
    if reached.num_rows < LEAST_ITEMS_FOR_ROUNDS:
        yield from draw_in_order([alone], host, once)
    else:
        yield from adaptive.run(rounds, host, once)


def draws(levels: Sequence[SetUnionLevel]) -> Draws:
    first, alone, *rounds = levels
    yield "items/choice", words_steps(first, "items/choice")
    for after, found in ([alone], "little"), (rounds, "much"):
        for title, steps in draws_in_order(after):
            yield f"{title}, if {found} is found before", steps
