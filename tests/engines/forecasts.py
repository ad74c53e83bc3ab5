"""Runs of the forecast ladder as a test looks at them: its rounds, and noise that the test sets.

What a user adds to them is worked out in plain Python: it shares no code with what is tested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from math import isqrt
from typing import Any
from unittest.mock import patch

import numpy as np

from dphh import Plan
from dphh.levels.ngrams import ForecastLevel
from dphh.mechanisms.ngrams.forecast.climb import Step
from dphh.mechanisms.ngrams.levels import ngrams_levels
from dphh.udfs.draws import noise
from tests.engines.levels import host_on, unstored

#: What an engine draws for, and the name of the row.
Draw = tuple[str, str]
#: Where each engine's steps take their noise from.
DRAWN = {"duckdb": "dphh.udfs.draws.noise", "polars": "dphh.engines.polars.host"}


class Watched:
    """An engine's rounds; keeps what the driver says and hears. With `low`, whatever is above 0 in
    round 2 passes, so that most sums of it are seen."""

    def __init__(self, rounds: Any, low: bool = False) -> None:
        self.rounds, self.low = rounds, low

    def first_round(self, level: int, valid: Any, law: Any, unit: int) -> Any:
        self.level, self.valid, self.law, self.unit_1 = level, valid, law, unit
        self.first = self.rounds.first_round(level, valid, law, unit)
        return self.first

    def second_round(self, weights: Any, unit: int) -> Any:
        self.weights, self.unit_2 = weights, unit
        self.negatives = self.rounds.second_round(weights, unit)
        return self.negatives

    def passed(self, thresholds: Any) -> Any:
        self.thresholds = np.ones_like(thresholds) if self.low else thresholds
        self.passing = self.rounds.passed(self.thresholds)
        return self.passing

    @property
    def units(self) -> tuple[int, int]:
        """Of either round: a user's norm, in the units of this noise."""
        return self.unit_1, self.unit_2

    def said(self) -> list[Any]:
        """All that the driver heard."""
        tables = (self.first.counts, self.first.list_sizes, self.negatives)
        return [*(table.tolist() for table in tables), *_lists(vars(self.passing))]


def _lists(columns: Mapping[str, Any]) -> list[Any]:
    return [
        _lists(vars(column)) if hasattr(column, "__dict__") else column.tolist()
        for column in columns.values()
    ]


def levels_of(engine: str, plan: Plan, randomness: Any, low: bool = False) -> Any:
    """The levels of a run, and those that have two rounds as they were watched."""
    seen: list[Watched] = []
    shipped = Step.run

    def run(step: Step, rounds: Any) -> Any:
        seen.append(Watched(rounds, low))
        return shipped(step, seen[-1])

    with patch.object(Step, "run", run), host_on(engine, plan.corpus, randomness) as host:
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


@contextmanager
def drawing(engine: str, drawn: dict[Draw, int], less: Mapping[Draw, int]) -> Iterator[None]:
    """Writes down the noise of each row, which is then `less` by so much."""
    draw = noise.draw_rounded_gaussian

    def of(randomness: Any, sigma: int, count: int, purpose: str, keys: Any = None) -> Any:
        found = draw(randomness, sigma, count, purpose, keys)
        names = [] if keys is None else keys.to_pylist()
        drawn.update({(purpose, name): int(x) for name, x in zip(names, found, strict=True)})
        return found - np.array([less.get((purpose, name), 0) for name in names], dtype=np.int64)

    with patch(f"{DRAWN[engine]}.draw_rounded_gaussian", of):
        yield


def grams_held(ladder: Any, words: Sequence[str], texts: Sequence[str]) -> set[int]:
    """The valid grams of a user: side by side stand two grams that were released."""
    keys: set[int] = set()
    for text in texts:
        places = [words.index(word) if word in words else None for word in text.split()]
        for rung in [*ladder.rungs[1:], None]:
            pairs = [
                None if left is None or right is None else left << 32 | right
                for left, right in pairwise(places)
            ]
            if rung is None:
                keys |= {pair for pair in pairs if pair is not None}
            else:
                at = {key: place for place, key in enumerate(rung.keys.tolist())}
                places = [at.get(pair) for pair in pairs]  # type: ignore[arg-type]
    return keys


def in_round_1(unit: int, number: int) -> int:
    """What a user of so many grams adds to each of them."""
    return isqrt(unit * unit * 49 // (50 * number))


def to_lists(unit: int, number: int) -> tuple[int, int]:
    """To which list size such a user adds, and how much."""
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**power for power in range(5, 15)]
    return sum(size <= number for size in sizes) - 1, isqrt(unit * unit // 50)


def in_round_2(unit: int, g: Mapping[Any, int]) -> dict[Any, int]:
    """What a user adds to each of their grams, whose rows have these weights."""
    norm = isqrt(sum(x * x for x in g.values()) - 1) + 1
    return {gram: unit * x // norm for gram, x in g.items()}


def check_norms(purpose: str, rounds: Watched, adds: Mapping[Draw, int]) -> None:
    """Two tables a level, each moved by the unit at most."""
    for tables, unit in zip((("round 1", "list sizes"), ("round 2",)), rounds.units, strict=True):
        purposes: Collection[str] = [f"{purpose}/{table}" for table in tables]
        assert sum(x * x for (to, _), x in adds.items() if to in purposes) <= unit**2
