"""Method "auto": a first look, and then one round or several.

Several rounds, whose weights follow earlier ones (method "adaptive"), find the most where some
items are far more popular than others, or users hold far more than they count for. Where all items
are about as popular, one round does (method "gaussian"), because it prices new items and other
items jointly. So users first add to public buckets of items, with noise and very little of the
budget. One round follows if users are so many that popular items would stand out, and none does.
Both ways are calibrated so that the mean, over what the first look may show, of the larger cost is
at most delta (`dphh.privacy.events.ChosenUnionEvent`; the proof: docs/items.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from math import ceil, fsum, nextafter
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.host import DrawOnce, Host
from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.running import Draws, integer_columns, parameters_of, steps_of
from dphh.mechanisms.set_union import adaptive
from dphh.mechanisms.set_union.draws import draw_in_order, draws_in_order
from dphh.mechanisms.set_union.levels import (
    ROUNDS,
    ChoiceLevel,
    DrawnRound,
    OneRoundAfterChoice,
    SetUnionLevel,
    round_level,
    round_levels,
    threshold_delta,
)
from dphh.mechanisms.terms import (
    NOISE_TABLE_NOTE,
    Priced,
    arithmetic_delta,
    checked_arithmetic_delta,
)
from dphh.privacy.accounting import compose
from dphh.privacy.events import ChosenUnionEvent, DeltaEvent, Event
from dphh.privacy.gaussian import compose_sigmas, gaussian_sigma, split_sigma
from dphh.privacy.search import least_whole
from dphh.privacy.set_union import delta_shares, grid_bits
from dphh.udfs.arrays import Integers

THEOREM = (
    "a Gaussian release of public buckets of items chooses between one round of the weighted "
    "Gaussian policy of DPSU (Gopi et al. 2020), which prices new items and other items jointly, "
    "and rounds whose weights follow earlier ones (after DP-SIPS: Swanberg, Desfontaines & Haney "
    "2023); the cost is the mean, over what the first release may show, of the larger of the two "
    "choices' costs (proof: docs/items.md), with the exact Gaussian curve (Balle & Wang 2018); "
    "both directions"
)

#: The first look's least and largest share of 1 / sigma^2, and its noise, in users, where a share
#: between them has it.
LEAST_CHOICE_SHARE, MOST_CHOICE_SHARE, CHOICE_SIGMA = 3e-4, 3e-3, 160.0
#: How many public buckets items fall into, by a hash.
BUCKETS = 1024
#: A user adds to as many buckets as this times `max_items`; a user of more items, to none: rounds
#: are better for such users, as they choose the items that count by earlier rounds.
BUCKETS_PER_ITEM = 4
#: A bucket stands out if it is this many median deviations above the median (3.6 times the standard
#: deviation of equal buckets: of them, three stand out in less than one case of 1,000).
STANDS_OUT = 5.3
#: With so many buckets that stand out, some items are popular.
POPULAR = 3
#: One round may follow if the sum of all buckets is this many times their noise's sigma, 8 times
#: the sigma of the sum.
LEAST_SUM = 256
#: The share of delta for what follows the first round is a multiple of 1 / DELTA_PARTS.
DELTA_PARTS = 256


@lru_cache(maxsize=64, typed=True)  # takes nine compositions; a ledger or a shell asks again
def price(epsilon: float, delta: float, max_items: int, counting: CountsOptions) -> Priced:
    """The first round; the one round or the several that it chooses; and what these cost."""
    spare = ROUNDS * arithmetic_delta(max_items, epsilon) + arithmetic_delta(BUCKETS, epsilon)
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

    def suffices(parts_left: int) -> bool:
        """Whether what follows costs at most delta, if it has all parts but these."""
        if parts_left >= DELTA_PARTS:
            return True
        event, counts = union_and_counts_events(1 - parts_left / DELTA_PARTS)
        return compose([event, *counts, DeltaEvent(spare)]).delta(epsilon) <= delta

    most = max(DELTA_PARTS - least_whole(suffices, 0), 0)  # few parts are left: tried first
    if not most:
        raise UsageError(
            f"delta: found {delta:g}, of which too little is left for method 'auto' at epsilon "
            f"{epsilon:g}; give a larger delta"
        )
    event, counts = union_and_counts_events(most / DELTA_PARTS)
    # The first look has much noise. Its grid may be so coarse that users count for fewer buckets.
    bits = grid_bits(event.before, 1)
    most_buckets = min(BUCKETS_PER_ITEM * max_items, BUCKETS, 4**bits)
    sigma_grid = ceil(event.before * 2**bits)
    first = ChoiceLevel(
        1, most_buckets, bits, sigma_grid, LEAST_SUM * sigma_grid, 1, buckets=BUCKETS
    )
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
        note="a first look, and then one round or several, as it decides",
    )
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
        (NOISE_TABLE_NOTE, spare),
    )
    return Priced(
        (first, alone, *rounds),
        (chosen, *counts, DeltaEvent(spare, note=NOISE_TABLE_NOTE)),
        shared_out,
    )


def run(levels: Sequence[SetUnionLevel], host: Host, once: DrawOnce) -> Iterator[DrawnRound]:
    """Draws the buckets, which release no item; they decide whether one round follows, or several.
    All rounds run, whatever they find: their thresholds were made for their weights."""
    first, alone, *rounds = levels
    assert isinstance(first, ChoiceLevel)
    drawn = once("items/choice", partial(draw_buckets, host, first))
    (noisy,) = integer_columns(drawn, "noisy")
    yield first, pa.table({"key": pa.array([], pa.string()), "noisy": pa.array([], pa.int64())})
    follow = [alone] if one_round_suffices(first, noisy) else rounds
    yield from draw_in_order(follow, host, once)


def draw_buckets(host: Host, first: ChoiceLevel) -> Any:
    """Draw the noised sum (key, noisy) of every bucket."""
    host.run("buckets_of_choice", **parameters_of(first, "items/choice"))
    # noised (key, noisy)
    drawn = host.take("counts_drawn")
    host.drop("noised")
    return drawn


def one_round_suffices(first: ChoiceLevel, noisy: Integers) -> bool:
    """Whether users are many, by the noised sums of buckets, and no items are popular."""
    median = np.median(noisy)
    deviation = np.median(np.abs(noisy - median))
    popular = noisy - median > STANDS_OUT * deviation
    return bool(noisy.sum() >= first.threshold_grid and popular.sum() < POPULAR)


def draws(levels: Sequence[SetUnionLevel]) -> Draws:
    first, alone, *rounds = levels
    yield "items/choice", steps_of(first, "items/choice", "buckets_of_choice", "counts_drawn")
    for after, much in ([alone], "little"), (rounds, "much"):
        for title, steps in draws_in_order(after):
            yield f"{title}, if {much} stands out before", steps
