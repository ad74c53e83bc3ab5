"""One level of the forecast ladder, from top to bottom: round 1, the plan, round 2, the release.

    forecast classes -> round 1 -> distributions of masses -> shares, weights and thresholds ->
    round 2 -> the rule of signs -> release -> masses, the next level's forecast

A cell is a class of forecast and a bin of round 1's noised weight: cell = class * bins + bin. Only
what `first_round`, `second_round` and `passing` return leaves the engine: the number of valid grams
of each cell, the noised numbers of users by list size, the signs, and the grams that passed.
`docs/ngrams.md` has the privacy statement; `dphh.udfs.rules.forecast` says what a user adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.host import Host, Lookup
from dphh.mechanisms.ngrams.forecast.masses import (
    MassDistributions,
    estimated_masses,
    mass_distributions,
    precision_weighted_mean,
    widened_posteriors,
)
from dphh.mechanisms.ngrams.forecast.plan_round import (
    RoundPlan,
    plan_second_round,
    tails_by_signs,
    weight_scaling,
)
from dphh.mechanisms.ngrams.forecast.shares import BudgetLeft
from dphh.mechanisms.ngrams.ladder.classes import Partition, ValidClasses
from dphh.mechanisms.ngrams.levels import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.running import Step, integer_columns, steps_of
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS, Bins
from dphh.udfs.rules.forecast import LIST_SIZE_BIN_STARTS, list_size_weight, norm_on_grid

#: Weights of round 2 are whole numbers; this one stands for a weight of 1.
PLAIN_WEIGHT = 64
#: The cells of unlisted words, which are in no class: of those that round 1 did not release, and of
#: those that it did.
LATE_UNLISTED, EARLY_UNLISTED = -1, -2
#: A threshold that every noised weight reaches.
REACHED_BY_ALL = -(2**62)
#: The tables of a level in the engine, which are dropped after it.
LEVEL_TABLES = (
    "forecasts", "lifts", "public_grams", "classes", "round_1_sums", "list_sizes", "noised",
    "round_1", "absent", "planned", "round_2", "absent_counts", "thresholds", "spurious",
    "unlisted_words",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TwoRoundLevel:
    """A level before its rounds: everything in it follows from the plan and earlier releases."""

    planned: ForecastLevel | ListedWordsLevel
    valid: ValidClasses
    budget: BudgetLeft
    #: How many grams the level below released.
    below: int
    #: From the noised number of users by list size: the forecast mass of each class, and an upper
    #: bound on the mass of every gram.
    forecasts_and_largest_mass: Callable[[Floats], tuple[Floats, float]]
    #: The largest allowed expected number of spurious grams, from the number of valid grams of each
    #: cell and from how many finds a plan of round 2 expects (0 before there is one).
    most_spurious: Callable[[Integers, float], float]

    def sigma_of_round(self, share: float) -> float:
        """The sigma of a round that has this share of the whole mu^2."""
        return float(self.planned.total_sigma / share**0.5)


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a level releases: (key, word, cell, first, second) of the grams that passed, listed ones
    first; the mass of each; the shares of mu^2 that the rounds spent; and the bound on the expected
    number of spurious grams."""

    passed: Any
    masses: Floats
    shares: tuple[float, float]
    most_spurious: float


@dataclass(frozen=True, eq=False)
class PartitionView:
    """What round 1 shows of one partition of the classes: the number of grams in each bin, and the
    distributions of masses that follow from it."""

    partition: Partition
    cell_sizes: Floats
    distributions: MassDistributions


def draw_two_rounds(host: Host, level: TwoRoundLevel, purpose: str) -> Drawn:
    """Draw both rounds of a level. Beyond what the three steps return, nothing that is private is
    seen here."""
    valid, sigma_grid = level.valid, level.planned.sigma_grid
    bins = Bins(sigma_grid)

    first_share = level.budget.first_round_share()
    first_norm = norm_on_grid(level.sigma_of_round(first_share), sigma_grid)
    cell_sizes, list_sizes = first_round(host, valid, bins, first_norm, purpose)
    # cell_sizes (class, bin): how many valid grams; list_sizes (bin): noised, how many users

    # A noised number of users counts as 0 if noise alone could easily reach it.
    users = list_sizes / list_size_weight(first_norm)
    users_by_list_size = np.where(list_sizes > 2 * sigma_grid, users, 0.0)
    scaled_weights = weight_scaling(users_by_list_size)
    first_sigma = sigma_grid / first_norm
    views = _views_by_partition(level, cell_sizes, users_by_list_size, first_sigma)
    sizes_by_noise = valid.sizes[:, None] * bins.noise_probabilities[None, :]

    @cache
    def planned(view: PartitionView, most_spurious: float, share: float) -> RoundPlan:
        by_noise = view.partition.sums_of_parts(sizes_by_noise).ravel()
        posteriors = widened_posteriors(view.distributions.by_bin).reshape(by_noise.size, -1)
        rows = view.cell_sizes.ravel(), by_noise, posteriors, view.distributions.masses
        return plan_second_round(*rows, level.sigma_of_round(share), most_spurious, scaled_weights)

    # Any rule may choose the view, because it sees only round 1's outputs and earlier releases.
    even, most_spurious = level.budget.even_second_share(), level.most_spurious(cell_sizes, 0.0)
    view = max(views, key=lambda view: planned(view, most_spurious, even).finds)
    finds = planned(view, most_spurious, even).finds
    most_spurious = level.most_spurious(cell_sizes, finds)
    second_share = even  # level 1, of a list's words, has an even share in all
    if level.planned.level > 1:
        at_twice = planned(view, most_spurious, 2 * even).finds
        second_share = level.budget.second_round_share(finds, at_twice, level.below)
    plan = planned(view, most_spurious, second_share)
    part_of_class, shape = view.partition.part_of_class, view.cell_sizes.shape
    weights = np.maximum(1, np.rint(plan.weights * PLAIN_WEIGHT)).astype(np.int64)
    weights = weights.reshape(shape)[part_of_class]
    # weights (class, bin)

    second_norm = norm_on_grid(level.sigma_of_round(second_share), sigma_grid)
    nonpositive = second_round(host, valid, bins, weights, second_norm, purpose)
    # nonpositive (class, bin): how many valid grams have a noised weight of 0 or less
    signs = view.partition.sums_of_parts(nonpositive).ravel()
    tails = tails_by_signs(plan.tails, signs, most_spurious)
    thresholds = _thresholds_for_tails(tails, bins).reshape(shape)[part_of_class]
    passed = passing(host, valid, bins, thresholds, purpose)
    # passed (key, word, cell, first, second): an unlisted word has no key, all others no word

    grams = passed.filter(pc.is_valid(passed.column("key")))
    keys, cells, first, second = integer_columns(grams, "key", "cell", "first", "second")
    classes = valid.classes_of(keys)
    masses = estimated_masses(
        first / first_norm,
        second / second_norm,
        scaled_weights(weights.ravel()[cells] / PLAIN_WEIGHT),
        (first_sigma, sigma_grid / second_norm),
        view.distributions,
        part_of_class[classes],
    )
    if (unlisted := valid.rule_for_unlisted) is not None:
        # Unlisted words passed thresholds, so their noised weights alone give their masses.
        words = passed.filter(pc.is_null(passed.column("key")))
        cells, first, second = integer_columns(words, "cell", "first", "second")
        weight = scaled_weights(np.array([unlisted.weight / PLAIN_WEIGHT]))
        of_words, _ = precision_weighted_mean(
            first / first_norm,
            second / second_norm,
            np.where(cells == EARLY_UNLISTED, 0.0, weight),
            (first_sigma, sigma_grid / second_norm),
        )
        passed, masses = pa.concat_tables([grams, words]), np.append(masses, of_words)
    host.drop(*LEVEL_TABLES)
    return Drawn(passed, masses, (first_share, second_share), most_spurious)


def first_round(
    host: Host, valid: ValidClasses, bins: Bins, norm: int, purpose: str
) -> tuple[Integers, Integers]:
    """Round 1, in which a user's norm is `norm` grid units. Returns how many valid grams each cell
    has, held and absent together, and the noised numbers of users by list size."""
    unlisted = valid.rule_for_unlisted
    for table, columns in _public_tables(valid).items():
        host.put(table, columns)
    if unlisted is None:
        no_words = {"word": pa.array([], pa.string()), "key": pa.array([], pa.int64())}
        host.put("unlisted_words", pa.table(no_words))
    host.run(
        "forecast_round_1",
        norm=norm,
        bins=len(bins.starts),
        list_size_bins=len(LIST_SIZE_BIN_STARTS),
        first_unlisted_key=-1 if unlisted is None else len(valid),
        unlisted_threshold=0 if unlisted is None else unlisted.first_threshold,
        **_noise_parameters(bins, purpose),
    )
    # round_1 (key, name, noisy, cell), of grams that a user holds; absent (cell, grams), of others
    sizes = host.take("forecast_cells")
    # (cell, grams), of held and absent grams together
    lists = host.take("list_sizes").sort_by("bin")
    # (bin, noisy), the noised numbers of users by list size
    return _by_class_and_bin(sizes, "grams", valid, bins), lists.column("noisy").to_numpy()


def second_round(
    host: Host, valid: ValidClasses, bins: Bins, weights: Integers, norm: int, purpose: str
) -> Integers:
    """Round 2, by the weights (class, bin). Returns how many valid grams of each cell have a noised
    weight of 0 or less."""
    unlisted = valid.rule_for_unlisted
    of_unlisted = None if unlisted is None else (unlisted.weight, 0)
    host.put("planned", _table_by_cell(weights, "weight", of_unlisted))
    host.bring("g", "forecast_weights", to="positions")
    # brought to users: the weight of each gram's cell
    host.run("forecast_round_2", norm=norm, **_noise_parameters(bins, purpose))
    # round_2 (key, cell, first, second); absent_counts (cell, grams, nonpositive)
    counts = host.take("forecast_nonpositive_counts")
    return _by_class_and_bin(counts, "nonpositive", valid, bins)


def passing(host: Host, valid: ValidClasses, bins: Bins, thresholds: Integers, purpose: str) -> Any:
    """The grams that reach the thresholds (class, bin) in round 2, spurious ones too: (key, word,
    cell, first, second), in ascending order. Only unlisted words have a word, and they have no key.
    """
    unlisted = valid.rule_for_unlisted
    of_unlisted = None if unlisted is None else (unlisted.second_threshold, REACHED_BY_ALL)
    host.put("thresholds", _table_by_cell(thresholds, "threshold", of_unlisted))
    parameters = _noise_parameters(bins, purpose)
    host.run("forecast_spurious", valid=Lookup(valid), bins=len(bins.starts), **parameters)
    # spurious (class, position, key, cell, first, second), of absent grams
    order = [("key", "ascending"), ("word", "ascending")]
    return host.take("forecast_released").sort_by(order)


def _noise_parameters(bins: Bins, purpose: str) -> dict[str, Any]:
    """The parameters of every query that draws noise."""
    return {"sigma": bins.noise.sigma, "purpose": purpose}


def _public_tables(valid: ValidClasses) -> dict[str, Any]:
    """The public tables that round 1 reads. forecasts: what each gram of the level below adds, as
    first and as last piece, to the class of a pair and to its expected public count. lifts: what
    that count adds to the class of a pair that the public text lacks. public_grams: the classes of
    pairs that the text has. classes: how many valid grams each class has."""
    public, sizes = valid.public, valid.sizes
    return {
        "forecasts": pa.table(
            {
                "gram": np.arange(len(valid.left)),
                "as_first": valid.left,
                "as_last": valid.right,
                "expected_first": public.left,
                "expected_last": public.right,
            }
        ),
        "lifts": pa.table({"expected": np.arange(len(public.shifts)), "shift": public.shifts}),
        "public_grams": pa.table({"key": public.keys, "class": public.classes}),
        "classes": pa.table({"class": np.arange(len(sizes)), "valid": sizes}),
    }


def _by_class_and_bin(cells: Any, column: str, valid: ValidClasses, bins: Bins) -> Integers:
    """The values of a table with the columns cell and `column`, as a matrix (class, bin)."""
    values = np.zeros((len(valid.sizes), len(bins.starts)), dtype=np.int64)
    values.ravel()[cells.column("cell").to_numpy()] = cells.column(column).to_numpy()
    return values


def _table_by_cell(matrix: Integers, name: str, of_unlisted: tuple[int, int] | None) -> Any:
    """The columns cell and `name` of a matrix (class, bin). `of_unlisted`: the values of the cells
    LATE_UNLISTED and EARLY_UNLISTED, if there are unlisted words."""
    cell, value = np.arange(matrix.size), matrix.ravel()
    if of_unlisted is not None:
        cell, value = (
            np.append(cell, [LATE_UNLISTED, EARLY_UNLISTED]),
            np.append(value, of_unlisted),
        )
    return pa.table({"cell": cell, name: value})


def _views_by_partition(
    level: TwoRoundLevel, cell_sizes: Integers, users_by_list_size: Floats, sigma: float
) -> list[PartitionView]:
    """What round 1, whose noise has `sigma`, shows of the classes by each partition."""
    forecasts, largest_mass = level.forecasts_and_largest_mass(users_by_list_size)
    partitions = level.valid.partitions or (Partition(np.arange(len(forecasts)), forecasts),)
    views = []
    for partition in partitions:
        sizes = partition.sums_of_parts(cell_sizes.astype(np.float64))
        distributions = mass_distributions(sizes, partition.forecasts, sigma, largest_mass)
        views.append(PartitionView(partition, sizes, distributions))
    return views


def _thresholds_for_tails(tails: Floats, bins: Bins) -> Integers:
    """For each tail probability, the least integer that the noise reaches with at most this
    probability, by the noise's exact distribution."""
    noise = bins.noise
    distinct, where = np.unique(tails, return_inverse=True)
    never = noise.reach + 1
    found = [
        never if tail < 1e-60 else noise.smallest_with_tail_at_most(Fraction(tail))
        for tail in distinct.tolist()
    ]
    return np.array(found, dtype=np.int64)[where]


def two_rounds_steps(level: ForecastLevel | ListedWordsLevel, purpose: str) -> list[Step]:
    """What `draw_two_rounds` asks."""
    bins = {"bins": len(BIN_STARTS_IN_SIGMAS), "list_size_bins": len(LIST_SIZE_BIN_STARTS)}
    first, second = {"first_unlisted_key": -1, "unlisted_threshold": 0}, {}
    if isinstance(level, ListedWordsLevel):
        first, second = {"norm": level.first_unit}, {"norm": level.second_unit}
    names = "forecast_round_1", "forecast_cells", "list_sizes"
    after = "forecast_weights", "forecast_round_2", "forecast_nonpositive_counts"
    passing = "forecast_spurious", "forecast_released"
    return [
        *steps_of(level, purpose, *names, **bins, **first),
        *steps_of(level, purpose, *after, *passing, **bins, **second),
    ]
