"""Runs of the forecast ladder as a test looks at them: its rounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from dphh import Plan
from dphh.mechanisms.counts import of_found
from dphh.mechanisms.ngrams import run
from dphh.mechanisms.ngrams.forecast import late_rounds, purses, two_rounds
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.mechanisms.ngrams.run import ngrams_levels
from dphh.udfs.rules.forecast import Spending
from tests.engines.levels import host_on, unstored


class Watched:
    """What the driver says and hears of one level's rounds."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.late: WatchedLate | None = None

    @property
    def passed_keys(self) -> Any:
        """The keys of what passed, without words that a list lacks, in the order that was told."""
        return self.passing.column("key").drop_null().to_numpy()

    def said(self) -> list[Any]:
        """All that the driver heard."""
        tables = (self.cell_sizes, self.users, self.nonpositive)
        late = [] if self.late is None else self.late.said()
        return [*(table.tolist() for table in tables), self.passing.to_pylist(), *late]

    def in_matrix(self, table: Any, column: str) -> Any:
        """Of the cells of round 1, as (class, bin)."""
        matrix = np.zeros_like(self.cell_sizes)
        cells, values = (table.column(name).to_numpy() for name in ("cell", column))
        matrix.ravel()[cells[cells >= 0]] = values[cells >= 0]
        return matrix


class WatchedLate:
    """The same of a level's late round: a cell is one of round 1 and a bin of round 2."""

    cells: Any
    sizes: Any
    most_spurious: float
    #: What users spend; and the weight of each cell, (cell, weight).
    spending: Spending
    weights: Any
    #: Of cells: how many grams are at 0 or below.
    nonpositive: Any
    passing: Any

    def said(self) -> list[Any]:
        tables = self.cells, self.sizes, np.sort(self.passing.column("key").to_numpy())
        ordered = self.nonpositive.sort_by("cell").to_pylist()
        return [*(table.tolist() for table in tables), ordered, self.passing.to_pylist()]


class Seen(list[Watched]):
    """The levels with two rounds, and what is asked and shown of purses before the late rounds."""

    counted: Spending | None = None
    late_counts: Any = None
    #: How finds are counted, which (their tokens), and the noised counts; None: they are not.
    counts: tuple[Any, Any, Any] | None = None


#: For so many finds of a user, in place of 40, `counted_for_few` plans.
FEW_FINDS = 10


@contextmanager
def counted_for_few(few: bool = True) -> Iterator[None]:
    """Plans of runs that count what they find keep for so few finds that, in corpora as small as
    those of tests, users hold more, and keep for more after round 1."""
    number = FEW_FINDS if few else purses.FINDS_OF_USER
    with (
        patch.object(purses, "FINDS_OF_USER", number),
        patch.object(of_found, "FINDS_OF_USER", number),
    ):
        yield


@contextmanager
def watched_counts(seen: Seen) -> Iterator[None]:
    find, count = run.find_items, run.noised_counts

    def find_items(host: Any, level: Any, items: Any) -> None:
        seen.counts = level, items, None
        find(host, level, items)

    def noised_counts(host: Any, level: Any) -> Any:
        drawn = count(host, level)
        assert seen.counts is not None
        seen.counts = *seen.counts[:2], drawn.sort_by("key").to_pydict()
        return drawn

    with patch.multiple(run, find_items=find_items, noised_counts=noised_counts):
        yield


@contextmanager
def watched_rounds(seen: Seen, low: bool = False) -> Iterator[None]:
    """Keeps what the driver says and hears of each level with two rounds. With `low`, whatever is
    above 0 passes round 2 in every other bin, and in the others what is above half a sigma, so that
    most sums are seen; and whatever is above 0 passes the late round."""
    first, later, passing = (
        two_rounds.first_round, two_rounds.draw_later_round, two_rounds.draw_passing
    )  # fmt: skip
    keep, counted, spend = run.keep_undecided, late_rounds.users_counted, late_rounds.Spending

    def first_round(host: Any, level: Any, spending: Spending, purpose: str) -> Any:
        seen.append(each := Watched(int(purpose.rsplit(maxsplit=1)[-1])))
        each.planned, each.first = level.planned, spending
        each.valid, each.law = level.valid, level.bins
        heard = first(host, level, spending, purpose)
        each.cell_sizes, each.users = heard
        each.list_sizes, each.purse_counts, *_ = purses.users_by_kind(each.users, spending)
        return heard

    def draw_later_round(
        host: Any, planned: Any, bins: Any, spending: Spending, purpose: str
    ) -> Any:
        heard = later(host, planned, bins, spending, purpose)
        if spending.late:
            late = late_of(spending.level)
            late.spending, late.weights, late.nonpositive = spending, planned, heard
        else:
            each = seen[-1]
            each.weights, each.second = each.in_matrix(planned, "weight"), spending
            each.nonpositive = each.in_matrix(heard, "nonpositive")
        return heard

    def draw_passing(host: Any, level: Any, asked: Any, is_late: bool, purpose: str) -> Any:
        if low:
            cells, thresholds = (asked.column(name).to_numpy() for name in ("cell", "threshold"))
            others = 1 if is_late else max(level.bins.noise.sigma // 2, 1)
            low_ones = np.where(cells % len(level.bins.starts) % 2, others, 1)
            thresholds = np.where(cells >= 0, low_ones, thresholds)
            asked = pa.table({"cell": cells, "threshold": thresholds})
        heard = passing(host, level, asked, is_late, purpose)
        if is_late:
            late_of(level.planned.level).passing = heard
        else:
            each = seen[-1]
            each.thresholds, each.passing = each.in_matrix(asked, "threshold"), heard
        return heard

    def keep_undecided(*asked: Any) -> Any:
        undecided = keep(*asked)
        seen[-1].late = late = WatchedLate()
        late.cells, late.sizes = undecided.cells, undecided.sizes
        late.most_spurious = undecided.most_spurious
        return undecided

    def users_counted(*asked: Any) -> Any:
        seen.late_counts = counted(*asked)
        return seen.late_counts

    def late_of(level: int) -> WatchedLate:
        (late,) = (each.late for each in seen if each.level == level)
        assert late is not None
        return late

    def spending(*given: Any, **named: Any) -> Spending:
        made = spend(*given, **named)
        if not made.late:
            seen.counted = made
        return made

    with (
        patch.multiple(
            two_rounds,
            first_round=first_round,
            draw_later_round=draw_later_round,
            draw_passing=draw_passing,
        ),
        patch.object(run, "keep_undecided", keep_undecided),
        watched_counts(seen),
        patch.multiple(late_rounds, users_counted=users_counted, Spending=spending),
    ):
        yield


def levels_of(engine: str, plan: Plan, randomness: Any, low: bool = False) -> Any:
    """The levels of a run, and those that have two rounds as they were watched."""
    seen = Seen()
    with watched_rounds(seen, low), host_on(engine, plan.corpus, randomness) as host:
        return [*ngrams_levels(plan.price, host, unstored)], seen


def on_grid(sigma_grid: int | None, plan: Plan) -> Plan:
    """The longer levels with so many steps of the grid to a sigma."""
    levels = tuple(
        replace(level, sigma_grid=sigma_grid or level.sigma_grid)
        if isinstance(level, ForecastLevel)
        else level
        for level in plan.price.levels
    )
    return replace(plan, price=replace(plan.price, levels=levels))
