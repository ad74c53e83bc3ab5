"""One level of the forecast ladder, from top to bottom: round 1, the plan, round 2, the release.

    forecast classes -> round 1 -> distributions of masses -> parts of purses, weights and
    thresholds -> round 2 -> the rule of signs -> release -> masses, the next level's forecast

A cell is a class of forecast and a bin of round 1's noised weight: cell = class * bins + bin. Only
what `first_round`, `later_round` and `passing` return leaves the engine: the number of valid grams
of each cell, the noised numbers of users by list size and by purse, the signs, and the grams that
passed. Grams that did not pass wait for the level's late round (`late_rounds.py`).
`docs/ngrams.md` has the privacy statement; `dphh.udfs.rules.forecast` says what a user adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.host import Host, Lookup
from dphh.level import FoundCounts
from dphh.mechanisms.ngrams.forecast.masses import (
    ROUND_1_SCALE,
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
    tails_by_signs,
    weight_scaling,
)
from dphh.mechanisms.ngrams.forecast.purses import (
    PursesSeen,
    finds_in_full,
    mean_freed,
    reserve_for_counts,
    users_by_kind,
    weights_of_bins,
)
from dphh.mechanisms.ngrams.forecast.shares import parts_of_round_2
from dphh.mechanisms.ngrams.ladder.classes import Partition, ValidClasses
from dphh.mechanisms.ngrams.levels import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.running import Step, integer_columns, steps_of
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS, Bins
from dphh.udfs.rules.forecast import (
    COUNTS_DIVISOR,
    ONE_PART,
    Spending,
)

#: Weights of round 2 are whole numbers; this one stands for a weight of 1.
PLAIN_WEIGHT = 64
#: The cells of unlisted words, which are in no class: of those that round 1 did not release, and of
#: those that it did.
LATE_UNLISTED, EARLY_UNLISTED = -1, -2
#: A threshold that every noised weight reaches.
REACHED_BY_ALL = -(2**62)
#: A user whose weights g have squares that sum to less than this spends that much less.
SATURATION = 2 * PLAIN_WEIGHT**2
#: The tables of a round in the engine, which are dropped after it.
ROUND_TABLES = (
    "forecasts", "lifts", "public_grams", "classes", "round_1_sums", "user_counts", "noised",
    "undecided", "absent", "planned", "later_round", "absent_counts",
    "thresholds", "spurious", "unlisted_words",
)  # fmt: skip
#: The steps of a round after the first.
LATER_ROUND = (
    "forecast_weights", "forecast_later_round", "ALTER TABLE next_purses RENAME TO purses;",
    "forecast_nonpositive_counts", "forecast_spurious", "forecast_released",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TwoRoundLevel:
    """A level before its rounds: everything in it follows from the plan and earlier releases."""

    planned: ForecastLevel | ListedWordsLevel
    valid: ValidClasses
    #: How many grams the level below released.
    below: int
    #: Squared norms in grid units: what a purse has at most, and what round 1 takes of it.
    full_purse: int
    first: int
    #: From the noised number of users by list size: the forecast mass of each class, and an upper
    #: bound on the mass of every gram.
    forecasts_and_largest_mass: Callable[[Floats], tuple[Floats, float]]
    #: The largest allowed expected number of spurious grams, from the number of valid grams of each
    #: cell and from how many finds a plan of round 2 expects (0 before there is one).
    most_spurious: Callable[[Integers, float], float]
    #: The purse that users are taken to have if the noised numbers of users tell nothing; if it is
    #: full, all have that.
    likely_purse: float
    #: How many levels follow.
    levels_after: int = 0
    #: How a plan counts what is found, for which users keep a reserve; None: it does not. And for
    #: how many finds a whole mu^2 counts a user in full.
    counting: FoundCounts | None = None
    in_full: int = 0

    @property
    def spending(self) -> Spending:
        """What users spend in round 1, and could in round 2 if its parts were even."""
        reserve = None
        if self.counting is not None:
            reserve = reserve_for_counts(self.planned, self.full_purse, self.counting, self.in_full)
        parts, number = (ONE_PART,) * (self.levels_after + 1), self.planned.level
        saturation = SATURATION if number > 1 else 0  # of a list's words all spend alike
        return Spending(self.full_purse, self.first, parts, saturation, number, reserve=reserve)


@dataclass(frozen=True, eq=False)
class Drawn:
    """What the two rounds of a level release: (key, word, cell, first, second) of the grams that
    passed, listed ones first; the mass of each; the bound on the expected number of spurious grams;
    the mean purse by round 1; what the late round goes on with; and for how many finds a whole
    mu^2 counts a user in full from round 2 on."""

    passed: Any
    masses: Floats
    most_spurious: float
    mean_purse: float
    seen: RoundsSeen
    in_full: int


@dataclass(frozen=True, eq=False)
class RoundsSeen:
    """What both rounds of a level tell about the grams that they did not release."""

    view: PartitionView
    scaled_weights: WeightScaling
    #: What a mass of 1 adds to the mean of a noised weight, in standard deviations of the noise: in
    #: round 1, and in round 2 by (class, bin).
    scale_1: float
    scales_2: Floats


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
    bins, spending = Bins(sigma_grid), level.spending
    cell_sizes, users = first_round(host, valid, bins, spending, purpose)
    # cell_sizes (class, bin): how many valid grams
    list_sizes, purse_counts, *finds_counts = users_by_kind(users, spending)
    # list_sizes (bin), purse_counts (climb, part) and finds_counts (bin): noised, how many users
    spending, in_full, spent_in_round_1 = _with_later_reserve(level, spending, *finds_counts)

    scaled_weights = weight_scaling(list_sizes, spending.saturation / PLAIN_WEIGHT**2)
    purses = PursesSeen(purse_counts, level.full_purse, level.likely_purse)
    # In users who have no other gram.
    first_norm = (level.first * spending.parts_for_grams / (COUNTS_DIVISOR - 2)) ** 0.5
    first_sigma = sigma_grid / first_norm
    views = _views_by_partition(level, cell_sizes, list_sizes, first_sigma)
    sizes_by_noise = valid.sizes[:, None] * bins.noise_probabilities[None, :]

    @cache
    def planned(view: PartitionView, most_spurious: float, squared_norm: float) -> RoundPlan:
        by_noise = view.partition.sums_of_parts(sizes_by_noise).ravel()
        posteriors = widened_posteriors(view.distributions.by_bin).reshape(by_noise.size, -1)
        rows = view.cell_sizes.ravel(), by_noise, posteriors, view.distributions.masses
        sigma = sigma_grid / squared_norm**0.5
        return plan_second_round(*rows, sigma, most_spurious, scaled_weights)

    # Any rule may choose the view, because it sees only round 1's outputs and earlier releases.
    even = purses.mean(less=spent_in_round_1) / (level.levels_after + 1)
    most_spurious = level.most_spurious(cell_sizes, 0.0)
    view = max(views, key=lambda view: planned(view, most_spurious, even).finds)
    finds = planned(view, most_spurious, even).finds
    most_spurious = level.most_spurious(cell_sizes, finds)
    if level.planned.level > 1:
        at_twice = planned(view, most_spurious, 2 * even).finds
        last = level.planned.level + level.levels_after
        parts = parts_of_round_2(level.planned.level, last, finds, at_twice, level.below)
        spending = replace(spending, parts=tuple(int(part * ONE_PART) for part in parts))
    squared_norm = purses.mean_spent(spending.parts, less=spent_in_round_1)
    plan = planned(view, most_spurious, squared_norm)
    part_of_class, shape = view.partition.part_of_class, view.cell_sizes.shape
    weights = whole_weights(plan.weights).reshape(shape)[part_of_class]
    # weights (class, bin)

    nonpositive = later_round(host, valid, bins, weights, spending, purpose)
    # nonpositive (class, bin): how many valid grams have a noised weight of 0 or less
    signs = view.partition.sums_of_parts(nonpositive).ravel()
    tails = tails_by_signs(plan.tails, signs, most_spurious)
    thresholds = thresholds_for_tails(tails, bins).reshape(shape)[part_of_class]
    passed = passing(host, valid, bins, thresholds, purpose)
    # passed (key, word, cell, first, second): an unlisted word has no key, all others no word

    grams = passed.filter(pc.is_valid(passed.column("key")))
    keys, cells, first, second = integer_columns(grams, "key", "cell", "first", "second")
    classes = valid.classes_of(keys)
    second_norm = squared_norm**0.5
    sigmas = first_sigma, sigma_grid / second_norm
    scales = scaled_weights(weights.ravel() / PLAIN_WEIGHT)
    masses = estimated_masses(
        first / first_norm,
        second / second_norm,
        scales[cells],
        sigmas,
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
            sigmas,
        )
        passed, masses = pa.concat_tables([grams, words]), np.append(masses, of_words)
    seen = RoundsSeen(
        view,
        scaled_weights,
        ROUND_1_SCALE / first_sigma,
        scales.reshape(weights.shape) / sigmas[1],
    )
    return Drawn(passed, masses, most_spurious, purses.mean(), seen, in_full)


def _with_later_reserve(
    level: TwoRoundLevel, spending: Spending, finds_counts: Floats | None = None
) -> tuple[Spending, int, float]:
    """What users keep from round 2 on, now that round 1 lets expect how many finds they hold; for
    how many finds that counts a user in full; and what round 1 took, less what that sets free."""
    if level.counting is None or spending.reserve is None or finds_counts is None:
        return spending, level.in_full, level.first
    planned_for = level.counting.within_purses
    held = finds_counts, level.planned, level.full_purse
    in_full = finds_in_full(planned_for, level.in_full, *held)
    later = reserve_for_counts(level.planned, level.full_purse, level.counting, in_full)
    freed = mean_freed(finds_counts, spending.reserve, later)
    return replace(spending, later_reserve=later), in_full, level.first - freed


def first_round(
    host: Host, valid: ValidClasses, bins: Bins, spending: Spending, purpose: str
) -> tuple[Integers, Floats]:
    """Round 1. Returns how many valid grams each cell has, held and absent together; and, without
    what noise alone could easily show, the noised numbers of users (`users_by_kind`)."""
    unlisted = valid.rule_for_unlisted
    for table, columns in _public_tables(valid).items():
        host.put(table, columns)
    if unlisted is None:
        put_no_unlisted_words(host)
    host.run(
        "forecast_round_1",
        spending=Lookup(spending),
        bins=len(bins.starts),
        first_unlisted_key=-1 if unlisted is None else len(valid),
        unlisted_threshold=0 if unlisted is None else unlisted.first_threshold,
        **noise_parameters(bins, purpose),
    )
    # undecided (key, name, first, cell), of grams that a user holds; absent (cell, grams);
    # round_1_sums (key, weight), also of bins of users
    sizes = host.take("forecast_cells")
    # (cell, grams), of held and absent grams together
    weights = weights_of_bins(spending)
    users = users_counted(host, bins, len(weights), weights, purpose)
    return _by_class_and_bin(sizes, "grams", valid, bins), users


def put_no_unlisted_words(host: Host) -> None:
    """The table of words that a list lacks, where there is no list."""
    nothing = {"word": pa.array([], pa.string()), "key": pa.array([], pa.int64())}
    host.put("unlisted_words", pa.table(nothing))


def users_counted(
    host: Host, bins: Bins, user_bins: int, weight: int | Integers, purpose: str
) -> Floats:
    """The noised number of users of each bin, of whom each added `weight` in round_1_sums; 0 where
    noise alone could easily reach it."""
    host.run("forecast_users", user_bins=user_bins, **noise_parameters(bins, purpose))
    noisy = host.take("user_counts").sort_by("bin").column("noisy").to_numpy()
    return np.where(noisy > 2 * bins.sigma_grid, noisy / np.maximum(weight, 1), 0.0)


def later_round(
    host: Host,
    valid: ValidClasses,
    bins: Bins,
    weights: Integers,
    spending: Spending,
    purpose: str,
) -> Integers:
    """Round 2, by the weights (class, bin). Returns how many valid grams of each cell have a noised
    weight of 0 or less."""
    unlisted = valid.rule_for_unlisted
    of_unlisted = None if unlisted is None else (unlisted.weight, 0)
    planned = _table_by_cell(weights, "weight", of_unlisted)
    counts = draw_later_round(host, planned, bins, spending, purpose)
    return _by_class_and_bin(counts, "nonpositive", valid, bins)


def draw_later_round(host: Host, planned: Any, bins: Bins, spending: Spending, purpose: str) -> Any:
    """A round after the first, by the weights of `planned` (cell, weight). Returns (cell,
    nonpositive), how many valid grams of each cell have a noised weight of 0 or less."""
    host.put("planned", planned)
    host.bring("g", "forecast_weights", to="positions")
    # brought to users: the weight of each gram's cell
    host.run("forecast_later_round", spending=Lookup(spending), **noise_parameters(bins, purpose))
    # later_round (key, name, cell, first, second); absent_counts (cell, grams, nonpositive)
    host.rename_replacing("next_purses", "purses")
    # purses (block, purses, tops, finds), after the round
    return host.take("forecast_nonpositive_counts")


def passing(host: Host, valid: ValidClasses, bins: Bins, thresholds: Integers, purpose: str) -> Any:
    """The grams that reach the thresholds (class, bin) in round 2, spurious ones too: (key, word,
    cell, first, second), in ascending order. Only unlisted words have a word, and they have no key.
    """
    unlisted = valid.rule_for_unlisted
    of_unlisted = None if unlisted is None else (unlisted.second_threshold, REACHED_BY_ALL)
    host.put("thresholds", _table_by_cell(thresholds, "threshold", of_unlisted))
    return draw_passing(host, valid, len(bins.starts), bins, purpose)


def draw_passing(
    host: Host, valid: ValidClasses, cells_of_class: int, bins: Bins, purpose: str
) -> Any:
    """`passing`, by the table thresholds (cell, threshold)."""
    parameters = noise_parameters(bins, purpose)
    host.run("forecast_spurious", valid=Lookup(valid), bins=cells_of_class, **parameters)
    # spurious (class, position, key, cell, first, second), of absent grams
    order = [("key", "ascending"), ("word", "ascending")]
    return host.take("forecast_released").sort_by(order)


def whole_weights(weights: Floats) -> Integers:
    """Planned weights as whole numbers, above 0."""
    return np.maximum(1, np.rint(weights * PLAIN_WEIGHT)).astype(np.int64)


def noise_parameters(bins: Bins, purpose: str) -> dict[str, Any]:
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


def thresholds_for_tails(tails: Floats, bins: Bins) -> Integers:
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
    known = {"bins": len(BIN_STARTS_IN_SIGMAS)}
    if isinstance(level, ForecastLevel):  # no list
        known |= {"first_unlisted_key": -1, "unlisted_threshold": 0}
    names = "forecast_round_1", "forecast_cells", "forecast_users", "user_counts"
    return steps_of(level, purpose, *names, *LATER_ROUND, **known)
