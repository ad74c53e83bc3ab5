"""Rounds of a set union, in which each user weighs items: what a plan fixes for each, their
thresholds and events, which rounds follow the first, and the ways that a run may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

from dphh.level import LevelOnGrid
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.terms import (
    NOISE_TABLE_NOTE,
    Priced,
    arithmetic_delta,
    checked_arithmetic_delta,
)
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma, split_sigma
from dphh.privacy.set_union import (
    any_weights_delta,
    any_weights_threshold,
    grid_bits,
    new_item_delta,
    new_item_threshold,
)
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.noise.truncated import TruncatedGeometric, truncated_geometric
from dphh.udfs.rules.weights import RoundNoise
from dphh.wording.lines import number, with_noun


@dataclass(frozen=True)
class SetUnionLevel(LevelOnGrid):
    """What a plan fixes for one round of a set union: its noise, bound and threshold."""

    kind: ClassVar[str] = "set_union"
    shown = ("sigma", "threshold")

    level: int
    max_items: int
    grid_bits: int
    sigma_grid: int
    threshold_grid: int
    #: The round's number: DP-SIPS has several rounds on one level.
    round: int = 1

    @property
    def threshold(self) -> float:
        """The threshold in users: this many who hold only one item reach it without noise."""
        return self._grid_to_users(self.threshold_grid)

    @property
    def round_noise(self) -> RoundNoise:
        return RoundNoise(self.sigma_grid, self.grid_bits)

    def in_words(self) -> tuple[str, ...]:
        return (
            f"each user counts for at most {with_noun(self.max_items, 'item')}",
            f"noise: {number(self.sigma)} users (one standard deviation)",
            f"threshold: {number(self.threshold)} users, so {ceil(self.threshold):,} "
            "who hold nothing else carry an item over without noise",
        )


@dataclass(frozen=True)
class ReweighedLevel(SetUnionLevel):
    """What a plan fixes for a later round of a set union, in which users weigh items by the noised
    weights of earlier rounds. Its threshold is valid for any weights."""

    kind: ClassVar[str] = "weighed"


@dataclass(frozen=True)
class SingleLevel(SetUnionLevel):
    """What a plan fixes for optimal selection: its noise is truncated geometric, of the deviation
    `sigma_grid`, rounded up, and its threshold is that noise's reach plus 1. A grid unit is a
    user."""

    kind: ClassVar[str] = "single"

    #: At most e^epsilon, and P(noise = reach): in units of 2^-32 and 2^-64.
    ratio: int = 0
    edge: int = 0

    @property
    def reach(self) -> int:
        return self.threshold_grid - 1

    @property
    def noise(self) -> TruncatedGeometric:
        return truncated_geometric(self.ratio, self.reach, self.edge)

    def chances_to_miss(self, weights: Integers) -> Floats:
        return self.noise.chances_below(self.threshold_grid - weights)

    def in_words(self) -> tuple[str, ...]:
        return (
            "each user counts for one item; a user who holds several, for one of them at random",
            f"noise: never more than {with_noun(self.reach, 'user')} ({number(self.sigma)} is one "
            "standard deviation)",
            f"threshold: {self.threshold_grid:,} users",
        )


@dataclass(frozen=True)
class ChoiceLevel(SetUnionLevel):
    """What a plan fixes for a first round of `items` that releases nothing: users add to public
    buckets of items, at most `max_items` of them, or nothing. If the buckets' noised sum reaches
    the threshold and few of them stand out, a `OneRoundAfterChoice` follows, else several rounds.
    """

    kind: ClassVar[str] = "choice"

    buckets: int = 1

    def in_words(self) -> tuple[str, ...]:
        return (
            f"releases nothing, and decides what follows: one round if {self.buckets:,} buckets "
            f"of items together reach {number(self.threshold)} users and hardly any is much above "
            "the others, else several",
            f"noise: {number(self.sigma)} users (one standard deviation)",
        )


@dataclass(frozen=True)
class OneRoundAfterChoice(SetUnionLevel):
    """What a plan fixes for the one round that may follow a `ChoiceLevel`. Method "gaussian", with
    one round and no choice, has a plain `SetUnionLevel`."""

    kind: ClassVar[str] = "alone"


# What rounds cost, and which follow the first.

ROUNDS = 3


def shares_of_rounds(decay: float) -> tuple[float, ...]:
    """The rounds' shares of mu^2 and of delta: each has `decay` times that of the round after."""
    parts = [decay ** (ROUNDS - 1 - i) for i in range(ROUNDS)]
    return tuple(part / sum(parts) for part in parts)


#: A round as it was run, and an Arrow table (key, noisy) of what it released.
DrawnRound = tuple[SetUnionLevel, Any]
#: A function of the rounds that ran. It returns the round that follows, or None after the last.
NextRound = Callable[[Sequence[DrawnRound]], SetUnionLevel | None]


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
) -> Priced:
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
            GaussianEvent(level.sigma, note=f"weighted Gaussian, {said}"),
            DeltaEvent(threshold_delta(level), note=f"new items over the threshold, {said}"),
        ]
    events += counting.counts_events(total)
    events.append(DeltaEvent(spare, note=NOISE_TABLE_NOTE))
    shared_out = (
        ("Gaussian curve", delta / 2 - spare),
        ("new items over the threshold", delta / 2),
        (NOISE_TABLE_NOTE, spare),
    )
    return Priced(levels, tuple(events), shared_out)


def possible_runs(levels: Sequence[SetUnionLevel]) -> list[list[SetUnionLevel]]:
    """For each way that a run may go, one round or several: its levels that release items."""
    released = [level for level in levels if not isinstance(level, ChoiceLevel)]
    rounds = [level for level in released if not isinstance(level, OneRoundAfterChoice)]
    alone = [level for level in released if level not in rounds]
    return [some for some in (alone, rounds) if some]
