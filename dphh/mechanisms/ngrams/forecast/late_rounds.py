"""After all levels: a late round for each, in which users spend what they have left.

What a user keeps for longer grams is often not spent, because the user holds none. So each level
gets one more round over the grams that its two rounds left undecided. A cell is then a class and
the bins of both noised weights; weights, thresholds and the rule of signs are those of round 2
(`two_rounds.py`). What a late round finds is released, and is no part of longer grams: no number of
a released gram changes, and no new gram becomes valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dphh.engines.host import Host, Lookup
from dphh.mechanisms.ngrams.forecast.plan_round import RoundPlan, Rows, corrected_masses, plan_round
from dphh.mechanisms.ngrams.forecast.purses import (
    SPURIOUS_PART_OF_TWO_ROUNDS,
    PursesSeen,
    parts_by_climb,
)
from dphh.mechanisms.ngrams.forecast.two_rounds import (
    PLAIN_WEIGHT,
    ROUND_TABLES,
    SATURATION,
    Drawn,
    TwoRoundLevel,
    draw_planned_round,
    noise_parameters,
    users_counted,
    whole_weights,
)
from dphh.mechanisms.running import integer_columns
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS, Bins
from dphh.udfs.rules.forecast import ONE_PART, PURSE_PARTS, Reserve, Spending

#: Which part of what a user may spend in a late round is spent, as far as plans know.
USUALLY_SPENT = 0.8
#: Rows of a plan: undecided grams of one class whose noised weights together have about the same
#: precision and are about as many standard deviations above 0. The steps of both.
_PRECISION_STEPS, _DEVIATION_STEPS = 2.0, 2.0
_LEAST_DEVIATION, _MOST_DEVIATION = -3, 16
#: The tables of a level that its late round goes on with.
KEPT_TABLES = ("positions", "undecided", "absent")
#: The cell of grams that are released already; and a threshold that no noised weight reaches.
RELEASED, REACHED_BY_NONE = -1, 2**62


@dataclass(frozen=True, eq=False)
class Undecided:
    """A level's grams that its two rounds left undecided: how many each cell has, and what both
    rounds tell of them. `most_spurious`: how many spurious grams the late round may release."""

    level: TwoRoundLevel
    drawn: Drawn
    cells: Integers
    sizes: Integers
    most_spurious: float

    @cached_property
    def estimates(self) -> RowEstimates:
        return rows_of_cells(self.drawn, self.cells, self.sizes)

    def plan_within(self, squared_norm: float) -> RoundPlan:
        """The plan of a round in which users spend this much."""
        rows, masses = self.estimates.rows, self.drawn.view.distributions.masses
        sigma = self.level.planned.sigma_grid / squared_norm**0.5
        return plan_round(rows, masses, sigma, self.most_spurious, self.drawn.scaled_weights)

    def worth(self, purse: float) -> float:
        """How many more grams would be found if users spent a whole purse, not half of it."""
        half, whole = (self.plan_within(part).finds for part in (purse / 2, purse))
        return max(whole - half, 1.0)


@dataclass(frozen=True, eq=False)
class RowEstimates:
    """The rows of cells; and of each row, the mean sum of weighted noised weights and precision of
    its cells, and the part of the classes that they are in."""

    rows: Rows
    weighted: Floats
    precisions: Floats
    parts: Integers


def rows_of_cells(drawn: Drawn, cells: Integers, sizes: Integers) -> RowEstimates:
    """Puts cells into rows. A row is a function of its cell alone, and so the same for held and for
    absent grams: from exact noised weights of held ones, rows would tell which are held."""
    bins = len(BIN_STARTS_IN_SIGMAS)
    inner = BIN_STARTS_IN_SIGMAS[1:]
    middles = np.append(inner - 0.25, inner[-1] + 0.25)
    of_round_1, second_bin = np.divmod(cells, bins)
    class_number, first_bin = np.divmod(of_round_1, bins)
    scale_2 = drawn.scales_2[of_round_1]
    weighted = drawn.scale_1 * middles[first_bin] + scale_2 * middles[second_bin]
    precision = drawn.scale_1**2 + scale_2**2
    part = drawn.view.part_of_class[class_number]
    deviation = np.floor(weighted / np.sqrt(precision) * _DEVIATION_STEPS)
    columns = np.stack(
        [
            part,
            np.round(np.log(precision) * _PRECISION_STEPS).astype(np.int64),
            np.clip(deviation, _LEAST_DEVIATION, _MOST_DEVIATION).astype(np.int64),
        ]
    )
    distinct, of_cell = np.unique(columns, axis=1, return_inverse=True)
    of_cell = of_cell.ravel()

    def sums(values: Any) -> Floats:
        return np.bincount(of_cell, values, minlength=distinct.shape[1]).astype(np.float64)

    grams = sums(sizes)
    weighted, precision = (sums(sizes * each) / grams for each in (weighted, precision))
    distributions = drawn.view.distributions
    logs = np.log(distributions.by_class[distinct[0]] + 1e-300)
    masses = distributions.masses[None, :]
    logs += masses * weighted[:, None] - masses**2 * precision[:, None] / 2
    posteriors = np.exp(logs - logs.max(1, keepdims=True))
    posteriors /= posteriors.sum(1, keepdims=True)
    rows = Rows(of_cell, grams, grams * posteriors[:, 0], posteriors)
    return RowEstimates(rows, weighted, precision, distinct[0])


def keep_undecided(host: Host, level: TwoRoundLevel, drawn: Drawn, purpose: str) -> Undecided:
    """What the two rounds of a level leave to its late round. Its tables are kept under names of
    their own."""
    bins = level.bins
    host.put("released", drawn.passed.select(["key"]))
    host.drop("undecided", "absent")
    host.run("forecast_undecided", bins=len(bins.starts), **noise_parameters(bins, purpose))
    # undecided (key, name, first, cell); absent (cell, grams)
    (cells, sizes) = integer_columns(host.take("forecast_cells"), "cell", "grams")
    # how many grams each cell has, held and absent together
    for table in ("undecided", "absent"):
        host.rename_replacing(table, f"{table}_{level.planned.level}")
    host.drop("released", *ROUND_TABLES)
    order = np.argsort(cells)
    left = level.most_spurious(sizes) * (1 / SPURIOUS_PART_OF_TWO_ROUNDS - 1)
    return Undecided(level, drawn, cells[order], sizes[order], left)


def draw_late_rounds(
    host: Host,
    undecided: Sequence[Undecided],
    full_purse: int,
    counted_for: int,
    reserve: Reserve | None,
) -> list[tuple[Integers, Floats]]:
    """The late round of each level, in order: the keys that it releases and their masses. Users
    spend `counted_for` of their purses on being counted first."""
    first = undecided[0].level.planned
    top = undecided[-1].level.planned.level
    bins = Bins(first.sigma_grid)
    spending = Spending(full_purse, counted_for, reserve=reserve)
    host.run("late_purses", spending=Lookup(spending))
    host.rename_replacing("next_purses", "purses")
    # purses (block, purse)
    weight, purpose = int(counted_for**0.5), "ngrams/forecast, late purses"
    counts = users_counted(host, bins, PURSE_PARTS * (top - 1), weight, purpose)
    # counts (top level, part of a purse): noised, how many users
    host.drop("users_of_round", "user_counts", "round_1_sums")
    purses = PursesSeen(counts, full_purse, full_purse / 3)
    worths = [each.worth(purses.mean(least_climb=place)) for place, each in enumerate(undecided)]
    found = []
    for place, each in enumerate(undecided):
        parts = tuple(int(part * ONE_PART) for part in parts_by_climb(worths[place:]))
        from_here = (0,) * place + parts
        squared_norm = purses.mean_spent(from_here, least_climb=place)
        purses.after_spending(from_here, USUALLY_SPENT)
        level = each.level.planned.level
        spending = Spending(full_purse, 0, parts, SATURATION, level, True, reserve)
        found.append(_draw_late_round(host, each, spending, squared_norm))
    return found


def _draw_late_round(
    host: Host, each: Undecided, spending: Spending, squared_norm: float
) -> tuple[Integers, Floats]:
    level, rows, plan = each.level.planned, each.estimates.rows, each.plan_within(squared_norm)
    for table in KEPT_TABLES:
        host.rename_replacing(f"{table}_{level.level}", table)
    passed = draw_planned_round(
        host,
        each.level,
        rows,
        each.cells,
        plan,
        each.most_spurious,
        spending,
        f"ngrams/forecast, level {level.level}, late",
        [(RELEASED, 0, REACHED_BY_NONE)],
    )
    # passed (key, word, cell, first, second)
    host.drop("positions", *ROUND_TABLES)
    keys, cells, noisy = integer_columns(passed, "key", "cell", "second")
    row = rows.of_cell[np.searchsorted(each.cells, cells)]
    scale = each.drawn.scaled_weights(whole_weights(plan) / PLAIN_WEIGHT)[row]
    scale *= squared_norm**0.5 / level.sigma_grid
    return keys, _late_masses(each, row, noisy / level.sigma_grid, scale)


def _late_masses(each: Undecided, row: Integers, noisy: Floats, scale: Floats) -> Floats:
    """The mass of each gram that a late round found, from its row and its noised weight there, both
    in standard deviations of the noise."""
    of_rows = each.estimates
    precision = of_rows.precisions[row] + scale**2
    mean = (of_rows.weighted[row] + scale * noisy) / precision
    parts = of_rows.parts[row]
    return corrected_masses(mean, precision**-0.5, each.drawn.view.distributions, parts)
