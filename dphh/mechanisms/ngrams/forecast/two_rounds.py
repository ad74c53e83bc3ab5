"""One level of the forecast ladder, from top to bottom: round 1, the plan, round 2, the release.

    forecast classes -> round 1 -> distributions of masses -> parts of purses, weights and
    thresholds -> round 2 -> the rule of signs -> release -> masses, the next level's forecast

A cell is a class of forecast and a bin of round 1's noised weight: cell = class * bins + bin. Only
what `first_round`, `draw_later_round` and `draw_passing` return leaves the engine: the number of
valid grams of each cell, the noised numbers of users by list size and by purse, the signs, and the
grams that passed. Grams that did not pass wait for the level's late round (`late_rounds.py`).
`docs/ngrams.md` has the privacy statement; `dphh.udfs.rules.forecast` says what a user adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.counting import FoundCounts
from dphh.engines.host import Host, Lookup
from dphh.mechanisms.ngrams.forecast.plan_round import (
    ROUND_1_SCALE,
    MassDistributions,
    RoundPlan,
    Rows,
    WeightScaling,
    corrected_masses,
    mass_distributions,
    plan_round,
    precision_weighted_mean,
    tails_by_signs,
    weight_scaling,
)
from dphh.mechanisms.ngrams.forecast.purses import (
    SPURIOUS_PART_OF_TWO_ROUNDS,
    PursesSeen,
    finds_in_full,
    mean_freed,
    parts_of_round_2,
    reserve_for_counts,
    users_by_kind,
    weights_of_bins,
)
from dphh.mechanisms.ngrams.ladder.classes import Partition, ValidClasses
from dphh.mechanisms.ngrams.levels import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.running import integer_columns, renamed
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS, Bins
from dphh.udfs.rules.forecast import COUNTS_DIVISOR, LIST_SIZE_BIN_STARTS, ONE_PART, Spending

#: Weights of later rounds are whole numbers; this one stands for a weight of 1.
PLAIN_WEIGHT = 64
#: The cells of unlisted words, which are in no class: of those that round 1 did not release, and of
#: those that it did. The former have this weight in round 2.
LATE_UNLISTED, EARLY_UNLISTED = -1, -2
UNLISTED_WEIGHT = PLAIN_WEIGHT // 2
#: A threshold that every noised weight reaches.
REACHED_BY_ALL = -(2**62)
#: A user whose weights g have squares that sum to less than this spends that much less.
SATURATION = 2 * PLAIN_WEIGHT**2
#: A listed word is taken as held if its noised weight in round 1 is at least this many standard
#: deviations of the noise.
HELD_DEVIATIONS = 6.0
#: No forecast of a listed word is less, since its logarithm is taken.
_LEAST_FORECAST = 1e-9
#: The tables of round 1, which only round 1 reads, and those of both rounds: dropped after them.
ROUND_1_TABLES = "forecasts", "lifts", "public_grams", "round_1_sums", "user_counts", "noised"
ROUND_TABLES = (
    "classes", "undecided", "absent", "planned", "later_round", "absent_counts", "thresholds",
    "spurious",
)  # fmt: skip
#: The steps of round 1, and of a round after it.
ROUND_1 = "forecast_round_1", "forecast_cells", "forecast_users", "user_counts"
LATER_ROUND = (
    "forecast_weights", "forecast_later_round", renamed("next_purses", "purses"),
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
    #: The purse that users are taken to have if the noised numbers of users tell nothing; if it is
    #: full, all have that.
    likely_purse: float
    #: An upper bound on the mass of every gram. None: of a list's words, whose forecasts are shares
    #: of the mass of all words.
    largest_mass: float | None = None
    #: How many levels follow.
    levels_after: int = 0
    #: How a plan counts what is found, for which users keep a reserve; None: it does not. And for
    #: how many finds a whole mu^2 counts a user in full.
    counting: FoundCounts | None = None
    in_full: int = 0

    @cached_property
    def bins(self) -> Bins:
        return Bins(self.planned.sigma_grid)

    @property
    def spending(self) -> Spending:
        """What users spend in round 1, and could in round 2 if its parts were even."""
        reserve = None
        if self.counting is not None:
            reserve = reserve_for_counts(self.planned, self.full_purse, self.counting, self.in_full)
        parts, number = (ONE_PART,) * (self.levels_after + 1), self.planned.level
        saturation = SATURATION if number > 1 else 0  # of a list's words all spend alike
        return Spending(self.full_purse, self.first, parts, saturation, number, reserve=reserve)

    def most_spurious(self, cell_sizes: Integers, finds: float = 0.0) -> float:
        """The largest allowed expected number of spurious grams in both rounds. Of a list's words
        it follows from how many round 1 shows as held, by `cell_sizes` (class, bin), and from how
        many finds a plan of round 2 expects, 0 before there is one."""
        if isinstance(self.planned, ForecastLevel):
            return SPURIOUS_PART_OF_TWO_ROUNDS * self.planned.spurious * self.below
        surely_held = cell_sizes[:, BIN_STARTS_IN_SIGMAS >= HELD_DEVIATIONS].sum()
        return max(1.0, self.planned.spurious * float(surely_held), self.planned.spurious * finds)


@dataclass(frozen=True, eq=False)
class Drawn:
    """What the two rounds of a level release: (key, word, cell, first, second) of the grams that
    passed, listed ones first; the mass of each; the bound on the expected number of spurious grams;
    the mean purse by round 1; for how many finds a whole mu^2 counts a user in full from round 2
    on; and what the late round goes on with."""

    passed: Any
    masses: Floats
    most_spurious: float
    mean_purse: float
    in_full: int
    #: What both rounds tell of the grams that they did not release.
    view: PartitionView
    scaled_weights: WeightScaling
    #: What a mass of 1 adds to the mean of a noised weight, in standard deviations of the noise: in
    #: round 1, and in round 2 by cell.
    scale_1: float
    scales_2: Floats


@dataclass(frozen=True, eq=False)
class PartitionView:
    """What round 1 shows of one partition of the classes: the distributions of masses, and the rows
    by which round 2 is planned. A row is a part of the classes and a bin."""

    part_of_class: Integers
    distributions: MassDistributions
    rows: Rows


def draw_two_rounds(host: Host, level: TwoRoundLevel, purpose: str) -> Drawn:
    """Draw both rounds of a level. Beyond what the three steps return, nothing that is private is
    seen here."""
    sigma_grid, spending = level.planned.sigma_grid, level.spending
    cell_sizes, users = first_round(host, level, spending, purpose)
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

    @cache
    def plan_by(view: PartitionView, most_spurious: float, squared_norm: float) -> RoundPlan:
        sigma = sigma_grid / squared_norm**0.5
        masses = view.distributions.masses
        return plan_round(view.rows, masses, sigma, most_spurious, scaled_weights)

    # Any rule may choose the view, because it sees only round 1's outputs and earlier releases.
    even = purses.mean(less=spent_in_round_1) / (level.levels_after + 1)
    most_spurious = level.most_spurious(cell_sizes)
    view = max(views, key=lambda view: plan_by(view, most_spurious, even).finds)
    finds = plan_by(view, most_spurious, even).finds
    most_spurious = level.most_spurious(cell_sizes, finds)
    if level.planned.level > 1:
        at_twice = plan_by(view, most_spurious, 2 * even).finds
        last = level.planned.level + level.levels_after
        parts = parts_of_round_2(level.planned.level, last, finds, at_twice, level.below)
        spending = replace(spending, parts=tuple(int(part * ONE_PART) for part in parts))
    squared_norm = purses.mean_spent(spending.parts, less=spent_in_round_1)
    plan = plan_by(view, most_spurious, squared_norm)

    cells = np.arange(cell_sizes.size)
    others: list[tuple[int, int, int]] = []
    if isinstance(level.planned, ListedWordsLevel):
        others = [
            (LATE_UNLISTED, UNLISTED_WEIGHT, level.planned.second_threshold_grid),
            (EARLY_UNLISTED, 0, REACHED_BY_ALL),
        ]
    passed = draw_planned_round(
        host, level, view.rows, cells, plan, most_spurious, spending, purpose, others
    )
    # passed (key, word, cell, first, second): an unlisted word has no key, all others no word
    grams = passed.filter(pc.is_valid(passed.column("key")))
    keys, cells, first, second = integer_columns(grams, "key", "cell", "first", "second")
    second_norm = squared_norm**0.5
    sigmas = first_sigma, sigma_grid / second_norm
    scales = scaled_weights(whole_weights(plan) / PLAIN_WEIGHT)[view.rows.of_cell]
    mean, deviation = precision_weighted_mean(
        first / first_norm, second / second_norm, scales[cells], sigmas
    )
    classes = view.part_of_class[level.valid.classes_of(keys)]
    masses = corrected_masses(mean, deviation, view.distributions, classes)
    if isinstance(level.planned, ListedWordsLevel):
        # Unlisted words passed thresholds, so their noised weights alone give their masses.
        words = passed.filter(pc.is_null(passed.column("key")))
        cells, first, second = integer_columns(words, "cell", "first", "second")
        weight = scaled_weights(np.array([UNLISTED_WEIGHT / PLAIN_WEIGHT]))
        of_words, _ = precision_weighted_mean(
            first / first_norm,
            second / second_norm,
            np.where(cells == EARLY_UNLISTED, 0.0, weight),
            sigmas,
        )
        passed, masses = pa.concat_tables([grams, words]), np.append(masses, of_words)
    seen = view, scaled_weights, ROUND_1_SCALE / first_sigma, scales / sigmas[1]
    return Drawn(passed, masses, most_spurious, purses.mean(), in_full, *seen)


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
    host: Host, level: TwoRoundLevel, spending: Spending, purpose: str
) -> tuple[Integers, Floats]:
    """Round 1. Returns how many valid grams each cell has, held and absent together; and, without
    what noise alone could easily show, the noised numbers of users (`users_by_kind`)."""
    valid, bins = level.valid, level.bins
    listed = level.planned if isinstance(level.planned, ListedWordsLevel) else None
    for table, columns in _public_tables(valid).items():
        host.put(table, columns)
    if listed is None:
        nothing = {"word": pa.array([], pa.string()), "key": pa.array([], pa.int64())}
        host.put("unlisted_words", pa.table(nothing))
    host.run(
        "forecast_round_1",
        spending=Lookup(spending),
        bins=len(bins.starts),
        first_unlisted_key=-1 if listed is None else len(valid),
        unlisted_threshold=0 if listed is None else listed.first_threshold_grid,
        **noise_parameters(bins, purpose),
    )
    # undecided (key, name, first, cell), of grams that a user holds; absent (cell, grams);
    # round_1_sums (key, weight), also of bins of users
    cells, grams = integer_columns(host.take("forecast_cells"), "cell", "grams")
    # of held and absent grams together
    sizes = np.zeros((len(valid.sizes), len(bins.starts)), dtype=np.int64)
    sizes.ravel()[cells] = grams
    weights = weights_of_bins(spending)
    users = users_counted(host, bins, len(weights), weights, purpose)
    host.drop(*ROUND_1_TABLES)
    return sizes, users


def users_counted(
    host: Host, bins: Bins, user_bins: int, weight: int | Integers, purpose: str
) -> Floats:
    """The noised number of users of each bin, of whom each added `weight` in round_1_sums; 0 where
    noise alone could easily reach it."""
    host.run("forecast_users", user_bins=user_bins, **noise_parameters(bins, purpose))
    noisy = host.take("user_counts").sort_by("bin").column("noisy").to_numpy()
    return np.where(noisy > 2 * bins.sigma_grid, noisy / np.maximum(weight, 1), 0.0)


def draw_planned_round(
    host: Host,
    level: TwoRoundLevel,
    rows: Rows,
    cells: Integers,
    plan: RoundPlan,
    most_spurious: float,
    spending: Spending,
    purpose: str,
    others: Sequence[tuple[int, int, int]],
) -> Any:
    """A round after the first: weights by the plan, thresholds by the rule of signs. `cells`, which
    ascend, are in `rows`; `others` are the cells in no row, each with its weight and threshold.

    Returns the grams that pass, spurious ones too: (key, word, cell, first, second), in ascending
    order. Only unlisted words have a word, and they have no key.
    """
    other_cells, other_weights, other_thresholds = np.array(others, np.int64).reshape(-1, 3).T

    def by_cell(name: str, of_rows: Integers, of_others: Integers) -> Any:
        values = np.append(of_rows[rows.of_cell], of_others)
        return pa.table({"cell": np.append(cells, other_cells), name: values})

    weights = by_cell("weight", whole_weights(plan), other_weights)
    counts = draw_later_round(host, weights, level.bins, spending, purpose)
    # counts (cell, nonpositive)
    shown, nonpositive = integer_columns(counts, "cell", "nonpositive")
    row = rows.of_cell[np.searchsorted(cells, shown)]
    signs = np.bincount(row, nonpositive, minlength=len(rows.sizes))
    tails = tails_by_signs(plan.tails, signs, most_spurious)
    of_rows = thresholds_for_tails(tails, level.bins)
    thresholds = by_cell("threshold", of_rows, other_thresholds)
    return draw_passing(host, level, thresholds, spending.late, purpose)


def whole_weights(plan: RoundPlan) -> Integers:
    """Planned weights as whole numbers, above 0."""
    return np.maximum(1, np.rint(plan.weights * PLAIN_WEIGHT)).astype(np.int64)


def draw_later_round(host: Host, planned: Any, bins: Bins, spending: Spending, purpose: str) -> Any:
    """A round after the first, by the weights of `planned` (cell, weight). Returns (cell,
    nonpositive), how many valid grams of each cell have a noised weight of 0 or less."""
    host.put("planned", planned)
    host.bring("g", "forecast_weights", to="positions")
    # brought to users: the weight of each gram's cell
    host.run("forecast_later_round", spending=Lookup(spending), **noise_parameters(bins, purpose))
    # later_round (key, name, cell, first, second); absent_counts (cell, grams, nonpositive)
    host.drop("users_of_round")
    host.rename_replacing("next_purses", "purses")
    # purses (block, purse), after the round
    return host.take("forecast_nonpositive_counts")


def draw_passing(
    host: Host, level: TwoRoundLevel, thresholds: Any, is_late: bool, purpose: str
) -> Any:
    """The grams that reach `thresholds` (cell, threshold). A late round's cells have two bins."""
    host.put("thresholds", thresholds)
    cells_of_class = len(level.bins.starts) ** (2 if is_late else 1)
    noise = noise_parameters(level.bins, purpose)
    host.run("forecast_spurious", valid=Lookup(level.valid), bins=cells_of_class, **noise)
    # spurious (class, position, key, cell, first, second), of absent grams
    order = [("key", "ascending"), ("word", "ascending")]
    return host.take("forecast_released").sort_by(order)


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


def _views_by_partition(
    level: TwoRoundLevel, cell_sizes: Integers, users_by_list_size: Floats, sigma: float
) -> list[PartitionView]:
    """What round 1, whose noise has `sigma`, shows of the classes by each partition."""
    valid, bins = level.valid, level.bins
    forecasts, largest_mass = valid.forecasts, level.largest_mass
    if largest_mass is None:
        # The mass of all words follows from the list sizes, because no number of users is known.
        largest_mass = float((users_by_list_size * LIST_SIZE_BIN_STARTS**0.5).sum())
        forecasts = np.maximum(forecasts * largest_mass, _LEAST_FORECAST)
    sizes_by_noise = valid.sizes[:, None] * bins.noise_probabilities[None, :]
    views = []
    for partition in valid.partitions or (Partition(np.arange(len(forecasts)), forecasts),):
        sizes = partition.sums_of_parts(cell_sizes.astype(np.float64))
        distributions = mass_distributions(sizes, partition.forecasts, sigma, largest_mass)
        by_noise = partition.sums_of_parts(sizes_by_noise).ravel()
        posteriors = distributions.by_bin.reshape(by_noise.size, -1)
        row = partition.part_of_class[:, None] * len(bins.starts) + np.arange(len(bins.starts))
        rows = Rows(row.ravel(), sizes.ravel(), by_noise, posteriors)
        views.append(PartitionView(partition.part_of_class, distributions, rows))
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
