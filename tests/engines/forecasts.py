"""Runs of the forecast ladder as a test looks at them: its rounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from dphh import Plan
from dphh.mechanisms.ngrams.forecast import two_rounds
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.mechanisms.ngrams.run import ngrams_levels
from tests.engines.levels import host_on, unstored


class Watched:
    """What the driver says and hears of one level's rounds."""

    def __init__(self, level: int) -> None:
        self.level = level

    @property
    def units(self) -> tuple[int, int]:
        """Of either round: a user's norm, in the units of this noise."""
        return self.unit_1, self.unit_2

    @property
    def passed_keys(self) -> Any:
        """The keys of what passed, without words that a list lacks, in the order that was told."""
        return self.passing.column("key").drop_null().to_numpy()

    def said(self) -> list[Any]:
        """All that the driver heard."""
        tables = (self.cell_sizes, self.list_sizes, self.nonpositive)
        return [*(table.tolist() for table in tables), self.passing.to_pylist()]


@contextmanager
def watched_rounds(seen: list[Watched], low: bool = False) -> Iterator[None]:
    """Keeps what the driver says and hears of each level with two rounds. With `low`, whatever is
    above 0 in round 2 passes, so that most sums of it are seen."""
    first, second, passing = two_rounds.first_round, two_rounds.second_round, two_rounds.passing

    def first_round(host: Any, valid: Any, bins: Any, norm: int, purpose: str) -> Any:
        seen.append(each := Watched(int(purpose.rsplit(maxsplit=1)[-1])))
        each.valid, each.law, each.unit_1 = valid, bins, norm
        each.cell_sizes, each.list_sizes = first(host, valid, bins, norm, purpose)
        return each.cell_sizes, each.list_sizes

    def second_round(
        host: Any, valid: Any, bins: Any, weights: Any, norm: int, purpose: str
    ) -> Any:
        each = seen[-1]
        each.weights, each.unit_2 = weights, norm
        each.nonpositive = second(host, valid, bins, weights, norm, purpose)
        return each.nonpositive

    def passed(host: Any, valid: Any, bins: Any, thresholds: Any, purpose: str) -> Any:
        each = seen[-1]
        each.thresholds = np.ones_like(thresholds) if low else thresholds
        each.passing = passing(host, valid, bins, each.thresholds, purpose)
        return each.passing

    with patch.multiple(
        two_rounds, first_round=first_round, second_round=second_round, passing=passed
    ):
        yield


def levels_of(engine: str, plan: Plan, randomness: Any, low: bool = False) -> Any:
    """The levels of a run, and those that have two rounds as they were watched."""
    seen: list[Watched] = []
    with watched_rounds(seen, low), host_on(engine, plan.corpus, randomness) as host:
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
