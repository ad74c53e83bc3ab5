"""The forecast ladder above level 1: two rounds a level; this module sees public numbers alone.

forecast classes -> round 1 -> distributions of masses -> shares, weights and thresholds ->
round 2 -> the rule of signs -> release -> masses, the next level's forecast. `docs/ngrams.md` has
the privacy statement; `dphh.privacy.forecast_rounds` the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.levels.ngrams import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.ngrams.forecast.masses import (
    MassDistributions,
    estimated_masses,
    mass_distributions,
    precision_weighted_mean,
    widened_posteriors,
)
from dphh.mechanisms.ngrams.forecast.plan_round import (
    RoundPlan,
    WeightScaling,
    plan_second_round,
    weight_scaling,
)
from dphh.mechanisms.ngrams.forecast.shares import BudgetLeft
from dphh.mechanisms.ngrams.forecast.signs import tails_by_signs
from dphh.mechanisms.ngrams.forecast.two_rounds import ReleasedGrams, TwoRounds
from dphh.mechanisms.ngrams.ladder.classes import Partition, ValidClasses, valid_classes
from dphh.mechanisms.ngrams.ladder.lift import LiftCounts
from dphh.mechanisms.ngrams.ladder.rungs import Ladder
from dphh.privacy.forecast_rounds import Bins, Floats, Integers, list_size_weight, norm_on_grid

#: Weights of round 2 are whole numbers; this one stands for a weight of 1.
PLAIN_WEIGHT = 64


@dataclass(frozen=True, eq=False)
class LevelToRun:
    """One level, before its rounds: everything in it follows from the plan and earlier releases."""

    planned_level: ForecastLevel | ListedWordsLevel
    #: How many grams the level below released.
    below: int
    valid: ValidClasses
    #: An upper bound on any gram's mass; the grid of possible masses ends here. Listed words do
    #: not use it: theirs follows from round 1.
    largest_mass: float
    budget: BudgetLeft

    def sigma_of_round(self, share: float) -> float:
        """The sigma of a round that has this share of the whole mu^2."""
        return float(self.planned_level.total_sigma / share**0.5)

    def run(self, rounds: TwoRounds) -> Any:
        """Runs both rounds, and returns the table that the journal stores of the release. Beyond
        what `rounds` returns, nothing that is private is seen."""
        sigma_grid = self.planned_level.sigma_grid
        noise_bins = Bins(sigma_grid)
        first_share = self.budget.first_round_share()
        first_norm = norm_on_grid(self.sigma_of_round(first_share), sigma_grid)
        row_sizes, list_sizes = rounds.run_first_round(self.valid, noise_bins, first_norm)

        # A noised number of users counts as 0 if noise alone could easily reach it.
        users = list_sizes / list_size_weight(first_norm)
        users_by_list_size = np.where(list_sizes > 2 * sigma_grid, users, 0.0)
        most_spurious = self.most_spurious(row_sizes, 0.0)
        scaled_weights = weight_scaling(users_by_list_size)
        first_sigma = sigma_grid / first_norm
        views = self._views_by_partition(row_sizes, users_by_list_size, first_sigma)
        sizes_by_noise = self.valid.sizes[:, None] * noise_bins.noise_probabilities[None, :]

        @cache
        def planned(view: PartitionView, most_spurious: float, share: float) -> RoundPlan:
            by_noise = view.partition.sums_of_parts(sizes_by_noise).ravel()
            posteriors = widened_posteriors(view.distributions.by_bin).reshape(by_noise.size, -1)
            rows = view.row_sizes.ravel(), by_noise, posteriors, view.distributions.masses
            return plan_second_round(
                *rows, self.sigma_of_round(share), most_spurious, scaled_weights
            )

        # Any rule may choose the view, because it sees only round 1's outputs and earlier releases.
        even = self.budget.even_second_share()
        view = max(views, key=lambda view: planned(view, most_spurious, even).finds)
        finds = planned(view, most_spurious, even).finds
        most_spurious = self.most_spurious(row_sizes, finds)
        second_share = even  # level 1, of a list's words, has an even share in all
        if self.planned_level.level > 1:
            at_twice = planned(view, most_spurious, 2 * even).finds
            second_share = self.budget.second_round_share(finds, at_twice, self.below)
        plan = planned(view, most_spurious, second_share)
        part_of_class, shape = view.partition.part_of_class, view.row_sizes.shape
        weights = np.maximum(1, np.rint(plan.weights * PLAIN_WEIGHT)).astype(np.int64)
        weights = weights.reshape(shape)[part_of_class]
        second_norm = norm_on_grid(self.sigma_of_round(second_share), sigma_grid)
        nonpositive = view.partition.sums_of_parts(rounds.run_second_round(weights, second_norm))
        tails = tails_by_signs(plan.tails, nonpositive.ravel(), most_spurious)
        thresholds = _thresholds_for_tails(tails, noise_bins).reshape(shape)[part_of_class]
        passed = rounds.passing_grams(thresholds)

        classes = self.valid.classes_of(passed.keys)
        norms = first_norm, second_norm
        masses_of_grams = estimated_masses(
            passed.first / first_norm,
            passed.second / second_norm,
            scaled_weights(weights[classes, passed.bins] / PLAIN_WEIGHT),
            (first_sigma, sigma_grid / second_norm),
            view.distributions,
            part_of_class[classes],
        )
        masses_of_words = self._masses_of_unlisted_words(passed, norms, scaled_weights)
        masses = np.concatenate([masses_of_grams, masses_of_words])
        shares = first_share, second_share
        return self.release_of(passed, masses, shares, most_spurious)

    def release_of(
        self,
        passed: ReleasedGrams,
        masses: Floats,
        shares: tuple[float, float],
        most_spurious: float,
    ) -> Any:
        """The table of the release, with the columns key and mass. The keys -1 and -2 stand for
        the shares of round 1 and round 2. `masses`: of the grams, and then of unlisted words."""
        return pa.table({"key": np.r_[-1, -2, passed.keys], "mass": np.r_[shares, masses]})

    def _views_by_partition(
        self, row_sizes: Integers, users_by_list_size: Floats, sigma: float
    ) -> list[PartitionView]:
        """What round 1, whose noise has `sigma`, shows of the classes by each partition."""
        forecasts, largest_mass = self.forecasts_and_largest_mass(users_by_list_size)
        partitions = self.valid.partitions or (Partition(np.arange(len(forecasts)), forecasts),)
        views = []
        for partition in partitions:
            sizes = partition.sums_of_parts(row_sizes.astype(np.float64))
            distributions = mass_distributions(sizes, partition.forecasts, sigma, largest_mass)
            views.append(PartitionView(partition, sizes, distributions))
        return views

    def forecasts_and_largest_mass(self, users_by_list_size: Floats) -> tuple[Floats, float]:
        """The forecast mass of each class, and an upper bound on the mass of every gram."""
        return self.valid.forecasts, self.largest_mass

    def most_spurious(self, row_sizes: Integers, finds: float) -> float:
        """The largest allowed expected number of spurious grams. `finds`: how many finds a plan of
        round 2 expects; 0 before there is one."""
        return self.planned_level.spurious * self.below

    def _masses_of_unlisted_words(
        self, passed: ReleasedGrams, norms: tuple[int, int], scaled_weights: WeightScaling
    ) -> Floats:
        """The masses of released unlisted words, by their noised weights alone, because these
        passed thresholds. `norms`: a user's norm in each round, in grid units."""
        words, rule = passed.unlisted_words, self.valid.rule_for_unlisted
        if words is None or rule is None:
            return np.empty(0)
        first, second = norms
        weight = scaled_weights(np.array([rule.weight / PLAIN_WEIGHT]))
        return precision_weighted_mean(
            words.first / first,
            words.second / second,
            np.where(words.early == 1, 0.0, weight),
            (self.planned_level.sigma_grid / first, self.planned_level.sigma_grid / second),
        )[0]


@dataclass(frozen=True, eq=False)
class PartitionView:
    """What round 1 shows of one partition of the classes: the number of grams in each bin, and the
    distributions of masses that follow from it."""

    partition: Partition
    row_sizes: Floats
    distributions: MassDistributions


@dataclass(frozen=True, eq=False)
class ForecastRelease:
    """The released keys, ascending, with masses; and the share of mu^2 that each round spent."""

    keys: Integers
    masses: Floats
    shares: tuple[float, float]

    @classmethod
    def from_table(cls, table: Any) -> ForecastRelease:
        """Reads the table that `LevelToRun.run` returned."""
        keys, masses = (table.column(name).to_numpy() for name in ("key", "mass"))
        order = np.argsort(keys)
        keys, masses = keys[order], masses[order]
        second, first = masses[:2].tolist()
        return cls(keys[2:], masses[2:], (first, second))


@dataclass(frozen=True, eq=False)
class LadderState:
    """The state of a run between levels: everything that determines the next level."""

    ladder: Ladder
    #: The masses of the top rung's grams, and of those of the rung below it: for words, the mass of
    #: all words.
    masses: Floats
    masses_before: Floats
    budget: BudgetLeft

    def next_level(self, planned: ForecastLevel, lift: LiftCounts | None = None) -> LevelToRun:
        """The level above the top rung. `lift`: the public text's lifts for it, with a prior."""
        top = self.ladder.top
        return LevelToRun(
            planned_level=planned,
            below=len(top),
            valid=valid_classes(top, self.masses, self.masses_before, lift),
            largest_mass=float(self.masses.sum()),
            budget=self.budget,
        )

    def after_level(self, released: ForecastRelease) -> LadderState:
        left = self.budget.left - sum(released.shares)
        budget = replace(self.budget, left=left, level=self.budget.level + 1)
        ladder = self.ladder.with_next(released.keys)
        return LadderState(ladder, released.masses, self.masses, budget)


def _thresholds_for_tails(tails: Floats, noise_bins: Bins) -> Integers:
    """For each tail probability, the least integer that the noise reaches with at most this
    probability, by the noise's exact distribution."""
    noise = noise_bins.noise
    distinct, where = np.unique(tails, return_inverse=True)
    never = noise.reach + 1
    found = [
        never if tail < 1e-60 else noise.smallest_with_tail_at_most(Fraction(tail))
        for tail in distinct.tolist()
    ]
    return np.array(found, dtype=np.int64)[where]
