"""The forecast ladder above level 1: two rounds a level; this module sees public numbers alone.

forecast classes -> round 1 -> distributions of masses -> shares, weights and thresholds ->
round 2 -> the rule of signs -> release -> masses, the next level's forecast. `docs/ngrams.md` has
the privacy statement; `dphh.privacy.forecast_rounds` the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.mechanisms.ngrams.forecast.masses import (
    MassDistributions,
    estimated_masses,
    mass_distributions,
    mass_grid,
    precision_weighted_mean,
    widened_posteriors,
)
from dphh.mechanisms.ngrams.forecast.plan_round import (
    RoundPlan,
    Saturation,
    plan_second_round,
    saturation,
)
from dphh.mechanisms.ngrams.forecast.shares import Shares
from dphh.mechanisms.ngrams.forecast.signs import tails_by_signs
from dphh.mechanisms.ngrams.ladder.classes import Partition, ValidClasses, valid_classes
from dphh.mechanisms.ngrams.ladder.lift import Lift
from dphh.mechanisms.ngrams.ladder.rungs import Integers, Ladder
from dphh.privacy.forecast_rounds import (
    LIST_SIZES_DIVISOR,
    Bins,
    list_size_weight,
    norm_on_grid,
)

Floats = NDArray[np.float64]
#: Weights of round 2 are whole numbers; this one stands for a weight of 1.
PLAIN_WEIGHT = 64


@dataclass(frozen=True)
class FirstRound:
    """What round 1 shows: how many valid grams of each class fall into each bin, and the noised
    numbers of users by how many grams they hold."""

    counts: Integers
    list_sizes: Integers


@dataclass(frozen=True)
class PassedUnlistedWords:
    """The released words that the list lacks, in ascending order of their spelling."""

    words: Any
    #: 1 for each word that round 1 released, 0 for the others.
    early: Integers
    first: Integers
    second: Integers


@dataclass(frozen=True)
class PassedGrams:
    """The grams that a level releases, including spurious ones, ascending by key. `first` and
    `second`: their noised weights in the two rounds."""

    keys: Integers
    bins: Integers
    first: Integers
    second: Integers
    #: Of level 1 with a prior alone.
    unlisted_words: PassedUnlistedWords | None = None


class Rounds(Protocol):
    """What an engine computes for a level. Only the returned values leave the engine.
    `law`: the noise's distribution over the bins. `unit`: a user's norm in the round, in grid
    units."""

    def run_first_round(
        self, level: int, valid: ValidClasses, law: Bins, unit: int
    ) -> FirstRound: ...

    def run_second_round(self, weights: Integers, unit: int) -> Integers:
        """Takes weights by (class, bin). Returns how many valid grams of each have a noised
        weight of 0 or less."""
        ...

    def passing_grams(self, thresholds: Integers) -> PassedGrams: ...


@dataclass(frozen=True, eq=False)
class LevelToRun:
    """One level, before its rounds: everything in it follows from earlier releases."""

    level: int
    #: How many grams the level below released.
    below: int
    valid: ValidClasses
    #: No gram's mass is more than this.
    largest_mass: float
    shares: Shares
    #: The sigma, in users, of the Gaussian mechanism to which all rounds of the run compose.
    total_sigma: float
    #: E[spurious grams] is at most this share of `below`.
    spurious: float
    #: The noise's sigma, in grid units.
    sigma_grid: int

    def sigma_of_round(self, share: float) -> float:
        """The sigma of a round that has this share of the whole mu^2."""
        return float(self.total_sigma / share**0.5)

    def run(self, rounds: Rounds) -> Any:
        """Runs both rounds. Beyond what `rounds` returns, nothing that is private is seen."""
        law = Bins(self.sigma_grid)
        first_share = self.shares.first_round_share()
        first_unit = norm_on_grid(self.sigma_of_round(first_share), self.sigma_grid)
        seen = rounds.run_first_round(self.level, self.valid, law, first_unit)

        first_sigma = self.sigma_grid / first_unit
        seen_first = (1 - 1 / LIST_SIZES_DIVISOR) ** 0.5
        # A noised number of users counts as 0 if noise alone could easily reach it.
        seen_lists = seen.list_sizes / list_size_weight(first_unit)
        lists = np.where(seen.list_sizes > 2 * self.sigma_grid, seen_lists, 0.0)
        most_spurious, saturated = self.most_spurious(seen.counts), saturation(lists)
        views = self._partitions_in_round_1(seen.counts, lists, first_sigma, seen_first)
        nulls = self.valid.sizes[:, None] * law.noise_probabilities[None, :]

        @cache
        def planned(place: int, most_spurious: float, share: float) -> RoundPlan:
            view, sigma = views[place], self.sigma_of_round(share)
            of_way = view.partition.sums_of_parts(nulls).ravel()
            posterior = widened_posteriors(view.distributions.by_bin).reshape(of_way.size, -1)
            rows = view.counts.ravel(), of_way, posterior
            return plan_second_round(
                *rows, view.distributions.masses, sigma, most_spurious, saturated
            )

        # Any rule may choose the view: it sees only round 1's outputs and earlier releases.
        even, places = self.shares.even(), range(len(views))
        place = max(places, key=lambda place: planned(place, most_spurious, even).finds)
        finds = planned(place, most_spurious, even).finds
        most_spurious = self.most_spurious_after_planning(most_spurious, finds)
        second_share = self.second_share(partial(planned, place, most_spurious))
        view, plan = views[place], planned(place, most_spurious, second_share)
        merged, shape = view.partition.part_of_class, view.counts.shape
        weights = np.maximum(1, np.rint(plan.weights * PLAIN_WEIGHT)).astype(np.int64)
        weights = weights.reshape(shape)[merged]
        second_unit = norm_on_grid(self.sigma_of_round(second_share), self.sigma_grid)
        nonpositive = view.partition.sums_of_parts(rounds.run_second_round(weights, second_unit))
        tails = tails_by_signs(plan.tails, nonpositive.ravel(), most_spurious)
        passed = rounds.passing_grams(_thresholds_for_tails(tails, law).reshape(shape)[merged])

        group = self.valid.class_of(passed.keys)
        sigmas = first_sigma, self.sigma_grid / second_unit
        masses = estimated_masses(
            passed.first / first_unit,
            passed.second / second_unit,
            seen_first,
            saturated(weights[group, passed.bins] / PLAIN_WEIGHT),
            sigmas,
            view.distributions.by_class,
            view.distributions.masses,
            merged[group],
        )
        unlisted = self._masses_of_unlisted_words(
            passed, first_unit, second_unit, saturated, sigmas
        )
        shares = first_share, second_share
        outcome = LevelOutcome(passed, masses, unlisted, shares, plan.finds, most_spurious)
        return self.release_of(outcome)

    def release_of(self, outcome: LevelOutcome) -> Any:
        keys, masses = outcome.passed.keys, outcome.masses
        return ForecastRelease(keys, masses, outcome.shares, outcome.finds)

    def _partitions_in_round_1(
        self, counts: Integers, lists: Floats, first_sigma: float, seen_first: float
    ) -> list[PartitionView]:
        """What round 1 shows of the classes, for each partition of them."""
        forecasts, largest_mass = self.forecasts_and_bound(lists)
        grid = mass_grid(first_sigma, largest_mass)
        partitions = self.valid.partitions or (Partition(np.arange(len(forecasts)), forecasts),)
        views = []
        for partition in partitions:
            seen = partition.sums_of_parts(counts.astype(np.float64))
            shown = seen_first * grid / first_sigma
            distributions = mass_distributions(seen, partition.forecasts, grid, shown)
            views.append(PartitionView(partition, seen, distributions))
        return views

    def forecasts_and_bound(self, lists: Floats) -> tuple[Floats, float]:
        """The forecast mass of each class, and an upper bound on all masses. `lists`: the noised
        numbers of users by how many grams they hold."""
        return self.valid.forecasts, self.largest_mass

    def most_spurious(self, counts: Integers) -> float:
        """The largest allowed expected number of spurious grams, from what round 1 has shown."""
        return self.spurious * self.below

    def most_spurious_after_planning(self, most_spurious: float, finds: float) -> float:
        """The final bound on spurious grams. `finds`: how many finds are expected with the bound
        `most_spurious`."""
        return most_spurious

    def second_share(self, planned: Callable[[float], RoundPlan]) -> float:
        even = self.shares.even()
        return self.shares.second_round_share(
            planned(even).finds, planned(2 * even).finds, self.below
        )

    def _masses_of_unlisted_words(
        self,
        passed: PassedGrams,
        first_unit: int,
        second_unit: int,
        saturated: Saturation,
        sigmas: tuple[float, float],
    ) -> Floats:
        """The masses of words that the list lacks, by their noised weights alone: they passed
        thresholds."""
        words, rule = passed.unlisted_words, self.valid.rule_for_unlisted
        if words is None or rule is None:
            return np.empty(0)
        weight = np.array([rule.weight / PLAIN_WEIGHT])
        return precision_weighted_mean(
            words.first / first_unit,
            words.second / second_unit,
            (1 - 1 / LIST_SIZES_DIVISOR) ** 0.5,
            np.where(words.early == 1, 0.0, saturated(weight)),
            sigmas,
        )[0]


@dataclass(frozen=True, eq=False)
class PartitionView:
    """What round 1 shows of one partition of the classes: the number of grams in each bin, and the
    distributions of masses that follow from it."""

    partition: Partition
    counts: Floats
    distributions: MassDistributions


@dataclass(frozen=True, eq=False)
class LevelOutcome:
    """The outcome of both rounds of a level: the grams that passed, the masses of these and of
    words that the list lacks, the shares of mu^2 that were spent, the expected number of finds, and
    the bound on the expected number of spurious ones."""

    passed: PassedGrams
    masses: Floats
    unlisted_masses: Floats
    shares: tuple[float, float]
    finds: float
    most_spurious: float


@dataclass(frozen=True, eq=False)
class ForecastRelease:
    """The released keys, ascending, with masses; the share of mu^2 that the two rounds took; and
    the expected number of finds."""

    keys: Integers
    masses: Floats
    shares: tuple[float, float]
    predicted: float

    def to_table(self) -> Any:
        """Columns key, mass, as the journal stores it. The keys -1, -2 and -3 stand for the shares
        and the expected finds."""
        said = np.array([-1, -2, -3])
        numbers = np.array([*self.shares, self.predicted])
        return pa.table(
            {
                "key": np.concatenate([said, self.keys]),
                "mass": np.concatenate([numbers, self.masses]),
            }
        )

    @classmethod
    def from_table(cls, table: Any) -> ForecastRelease:
        keys, masses = (table.column(name).to_numpy() for name in ("key", "mass"))
        order = np.argsort(keys)
        keys, masses = keys[order], masses[order]
        predicted, second, first = masses[:3].tolist()
        return cls(keys[3:], masses[3:], (first, second), predicted)


@dataclass(frozen=True, eq=False)
class Climb:
    """The state of a run between levels: everything that determines the next level."""

    ladder: Ladder
    #: The masses of the top's grams, and of those of the level below it.
    masses: Floats
    masses_before: Floats
    #: The part of mu^2 that is left.
    left: float
    levels: int
    total_sigma: float
    spurious: float
    sigma_grid: int

    def next_level(self, lift: Lift | None = None) -> LevelToRun:
        """The next level. `lift`: the public text's lifts for it, if there is a prior."""
        top = self.ladder.top
        return LevelToRun(
            level=top.level + 1,
            below=len(top),
            valid=valid_classes(top, self.masses, self.masses_before, lift),
            largest_mass=float(self.masses.sum()),
            shares=Shares(self.left, top.level + 1, self.levels),
            total_sigma=self.total_sigma,
            spurious=self.spurious,
            sigma_grid=self.sigma_grid,
        )

    def after_level(self, released: ForecastRelease) -> Climb:
        return replace(
            self,
            ladder=self.ladder.with_next(released.keys),
            masses=released.masses,
            masses_before=self.masses,
            left=self.left - sum(released.shares),
        )


def climb_start(
    ladder: Ladder,
    masses: Floats,
    left: float,
    levels: int,
    total_sigma: float,
    spurious: float,
    sigma_grid: int,
) -> Climb:
    """The state above level 1: the masses of the released words, in the order of their numbers."""
    of_all = np.array([masses.sum()])
    return Climb(ladder, masses, of_all, left, levels, total_sigma, spurious, sigma_grid)


def _thresholds_for_tails(tails: Floats, law: Bins) -> Integers:
    """For each tail probability, the least integer that the noise reaches with at most this
    probability, by the noise's exact distribution."""
    noise = law.noise
    distinct, where = np.unique(tails, return_inverse=True)
    never = noise.reach + 1
    found = [
        never if tail < 1e-60 else noise.smallest_with_tail_at_most(Fraction(tail))
        for tail in distinct.tolist()
    ]
    return np.array(found, dtype=np.int64)[where]
