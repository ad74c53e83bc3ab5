"""Rounds of a set union: their levels, thresholds and events, and which rounds follow the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, isqrt, nextafter, prod
from typing import Any

from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.set_union.levels import LEAST_ITEMS_FOR_ROUNDS, ReweighedLevel, SetUnionLevel
from dphh.mechanisms.terms import NOISE_TABLE_NOTE, arithmetic_delta, checked_arithmetic_delta
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma, split_sigma
from dphh.privacy.set_union import (
    any_weights_delta,
    any_weights_threshold,
    grid_bits,
    new_item_delta,
    new_item_threshold,
)
from dphh.udfs.noise.table import rounded_gaussian

ROUNDS = 3


def shares_of_rounds(decay: float) -> tuple[float, ...]:
    """The rounds' shares of mu^2 and of delta: each has `decay` times that of the round after."""
    parts = [decay ** (ROUNDS - 1 - i) for i in range(ROUNDS)]
    return tuple(part / sum(parts) for part in parts)


#: A round as it was run, and an Arrow table (key, noisy) of what it released.
DrawnRound = tuple[SetUnionLevel, Any]
#: A function of the rounds that ran. It returns the round that follows, or None after the last.
NextRound = Callable[[Sequence[DrawnRound]], SetUnionLevel | None]
RoundsAndCost = tuple[tuple[SetUnionLevel, ...], tuple[Event, ...], tuple[tuple[str, float], ...]]


def rounds_after_first(
    first: SetUnionLevel, alone: SetUnionLevel, several: Sequence[SetUnionLevel]
) -> NextRound:
    """The first round; and then one round `alone` if the first finds very few items, else
    `several`."""

    def next_round(ran: Sequence[DrawnRound]) -> SetUnionLevel | None:
        if not ran:
            return first
        after = [alone] if ran[0][1].num_rows < LEAST_ITEMS_FOR_ROUNDS else several
        return after[len(ran) - 1] if len(ran) <= len(after) else None

    return next_round


def merged_round(rounds: Sequence[SetUnionLevel]) -> SetUnionLevel:
    """One round that replaces these, within their budget of 1/sigma^2 and delta. Its weights are
    equal, because if nothing is common, the first round's noised weights say almost nothing.

    Its threshold costs what theirs compose to, which is what a ledger has booked, and not the sum.
    """
    first = rounds[0]
    precision = sum(Fraction(1, level.sigma_grid**2) for level in rounds)
    # The least sigma with 1 / sigma^2 <= precision.
    sigma_grid = isqrt(ceil(1 / precision) - 1) + 1
    together = 1 - prod(1 - Fraction(threshold_delta(level)) for level in rounds)
    delta, bits = nextafter(float(together), 0.0), first.grid_bits
    sigma = sigma_grid / 2**bits  # exact, so that the level has this sigma_grid
    return round_level(SetUnionLevel, bits, sigma, first.max_items, delta, first.round)


def threshold_delta(level: SetUnionLevel) -> float:
    """The delta that a level's threshold costs."""
    noise = rounded_gaussian(level.sigma_grid)
    if isinstance(level, ReweighedLevel):
        unit = 2**level.grid_bits
        return any_weights_delta(noise, unit, level.max_items, level.threshold_grid)
    return new_item_delta(noise, level.grid_bits, level.max_items, level.threshold_grid)


def round_levels(
    sigmas: Sequence[float],
    deltas: Sequence[float],
    bounds: Sequence[int],
    reweighed: bool = False,
    first_number: int = 1,
) -> tuple[SetUnionLevel, ...]:
    """A level for each round, on one grid. The numbers of the rounds begin with `first_number`.
    `reweighed`: whether the later rounds' weights depend on the earlier ones."""
    bits = grid_bits(max(sigmas), max(bounds))
    rounds = zip(sigmas, bounds, deltas, strict=True)
    return tuple(
        round_level(
            ReweighedLevel if reweighed and index else SetUnionLevel,
            bits,
            *each,
            first_number + index,
        )
        for index, each in enumerate(rounds)
    )


def round_level(
    kind: type[SetUnionLevel], bits: int, sigma: float, max_items: int, delta: float, number: int
) -> SetUnionLevel:
    """A round on the grid of 2^bits, with the least threshold that costs at most delta. That of a
    `ReweighedLevel` holds for any weights."""
    noise = rounded_gaussian(ceil(sigma * 2**bits))
    if kind is ReweighedLevel:
        threshold = any_weights_threshold(noise, 2**bits, max_items, delta)
    else:
        threshold = new_item_threshold(noise, bits, max_items, delta)
    return kind(1, max_items, bits, noise.sigma, threshold, number)


def price_rounds(
    epsilon: float,
    delta: float,
    shares: Sequence[float],
    bounds: Sequence[int],
    counting: CountsOptions,
    reweighed: bool = False,
) -> RoundsAndCost:
    """The rounds' levels, the events that they cost, and how delta is divided. `shares`: of mu^2
    and of delta, by round. `reweighed`: as in `round_levels`."""
    spare = checked_arithmetic_delta(
        sum(arithmetic_delta(bound, epsilon) for bound in bounds)
        + counting.arithmetic_delta(epsilon),
        epsilon,
        delta,
    )
    total = gaussian_sigma(epsilon, delta / 2 - spare)
    sigmas = split_sigma(counting.sigma_of_finding(total), shares)
    levels = round_levels(sigmas, [share * delta / 2 for share in shares], bounds, reweighed)
    events: list[Event] = []
    for level in levels:
        said = f"round {level.round}"
        events += [
            GaussianEvent(level.sigma, f"weighted Gaussian, {said}"),
            DeltaEvent(threshold_delta(level), f"new items over the threshold, {said}"),
        ]
    events += counting.counts_events(total)
    events.append(DeltaEvent(spare, NOISE_TABLE_NOTE))
    shared_out = (
        ("Gaussian curve", delta / 2 - spare),
        ("new items over the threshold", delta / 2),
        (NOISE_TABLE_NOTE, spare),
    )
    return levels, tuple(events), shared_out
