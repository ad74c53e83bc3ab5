"""Runs of the forecast ladder as a test looks at them: its rounds."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from dphh import Plan
from dphh.levels.ngrams import ForecastLevel
from dphh.mechanisms.ngrams.forecast.climb import LevelToRun
from dphh.mechanisms.ngrams.levels import ngrams_levels
from tests.engines.levels import host_on, unstored


class Watched:
    """An engine's rounds; keeps what the driver says and hears. With `low`, whatever is above 0 in
    round 2 passes, so that most sums of it are seen."""

    def __init__(self, rounds: Any, level: int, low: bool = False) -> None:
        self.rounds, self.level, self.low = rounds, level, low

    def run_first_round(self, valid: Any, law: Any, unit: int) -> Any:
        self.valid, self.law, self.unit_1 = valid, law, unit
        self.row_sizes, self.list_sizes = self.rounds.run_first_round(valid, law, unit)
        return self.row_sizes, self.list_sizes

    def run_second_round(self, weights: Any, unit: int) -> Any:
        self.weights, self.unit_2 = weights, unit
        self.nonpositive = self.rounds.run_second_round(weights, unit)
        return self.nonpositive

    def passing_grams(self, thresholds: Any) -> Any:
        self.thresholds = np.ones_like(thresholds) if self.low else thresholds
        self.passing = self.rounds.passing_grams(self.thresholds)
        return self.passing

    @property
    def units(self) -> tuple[int, int]:
        """Of either round: a user's norm, in the units of this noise."""
        return self.unit_1, self.unit_2

    def said(self) -> list[Any]:
        """All that the driver heard."""
        tables = (self.row_sizes, self.list_sizes, self.nonpositive)
        return [*(table.tolist() for table in tables), *_lists(vars(self.passing))]


def _lists(columns: Mapping[str, Any]) -> list[Any]:
    return [
        _lists(vars(column)) if hasattr(column, "__dict__") else column.tolist()
        for column in columns.values()
        if column is not None
    ]


def levels_of(engine: str, plan: Plan, randomness: Any, low: bool = False) -> Any:
    """The levels of a run, and those that have two rounds as they were watched."""
    seen: list[Watched] = []
    shipped = LevelToRun.run

    def run(step: LevelToRun, rounds: Any) -> Any:
        seen.append(Watched(rounds, step.planned_level.level, low))
        watched: Any = seen[-1]
        return shipped(step, watched)

    with patch.object(LevelToRun, "run", run), host_on(engine, plan.corpus, randomness) as host:
        return [*ngrams_levels(plan.price, host, unstored, " ")], seen


def on_grid(sigma_grid: int | None, plan: Plan) -> Plan:
    """The longer levels with so many steps of the grid to a sigma."""
    levels = tuple(
        replace(level, sigma_grid=sigma_grid or level.sigma_grid)
        if isinstance(level, ForecastLevel)
        else level
        for level in plan.price.levels
    )
    return replace(plan, price=replace(plan.price, levels=levels))
