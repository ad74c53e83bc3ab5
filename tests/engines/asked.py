"""What a run asks of its generator, draw by draw, and under which name each draw is stored.

Every function of `udfs/` that draws something that is priced is wrapped wherever it was imported,
and so are the words that it takes, the journal, and the two rounds of a level of the forecast
ladder. Draws are seen in this process alone: on DuckDB, through what is registered, and in Polars.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any
from unittest.mock import patch

from dphh.ledger import Ledger
from dphh.mechanisms.ngrams.forecast.climb import Step
from dphh.testing import SeededRandomness
from tests.engines.forecasts import Watched

#: By name; where they live is their own affair.
DRAWING = (
    "draw_rounded_gaussian",
    "draw_between",
    "draw_binomial",
    "draw_binomial_of_any_size",
    "draw_votes",
    "draw_subsets",
)


@dataclass(frozen=True)
class Draw:
    """One call of a function that draws: its name, and what it was asked for, by name."""

    name: str
    asked: dict[str, Any]

    @property
    def purpose(self) -> str:
        return str(self.asked["purpose"])


@dataclass
class Asked:
    draws: list[Draw] = field(default_factory=list)
    #: How many words were taken for each purpose.
    words: Counter[str] = field(default_factory=Counter)
    #: The names of the draws that were stored, in their order.
    steps: list[str] = field(default_factory=list)
    rounds: dict[int, Watched] = field(default_factory=dict)

    def of(self, step: str, name: str | None = None) -> list[Draw]:
        """The draws of a step: all of them, or those by one function."""
        return [
            draw for draw in self.draws if is_of(draw.purpose, step) and name in (None, draw.name)
        ]


def is_of(purpose: str, step: str) -> bool:
    return purpose == step or purpose.startswith(f"{step}/")


class Listening:
    """Words of a seed, and how many were taken. Unless they say that they are a test's, they hang
    on the order in which they are asked for, as the system's would."""

    def __init__(self, asked: Asked, seed: int, *, is_test: bool = False) -> None:
        self._asked, self._source = asked, SeededRandomness(seed)
        self.is_test = is_test
        self._lock = threading.Lock()

    def words(self, count: int, purpose: str, keys: Any = None) -> Any:
        with self._lock:
            self._asked.words[purpose] += count
        return self._source.words(count, purpose, keys)


@contextmanager
def recorded(engine: str) -> Iterator[Asked]:
    """Of all that runs within, on this engine."""
    import_module(f"dphh.engines.{engine}.host")
    asked, drawing = Asked(), threading.local()

    def listening(name: str, function: Any) -> Any:
        takes = signature(function)

        def listened(*given: Any, **named: Any) -> Any:
            if getattr(drawing, "inside", False):  # one draw may be made of others
                return function(*given, **named)
            drawing.inside = True
            try:
                drawn = function(*given, **named)
            finally:
                drawing.inside = False
            asked.draws.append(Draw(name, dict(takes.bind(*given, **named).arguments)))
            return drawn

        return listened

    run, keep_level = Step.run, Ledger.keep_level

    def watched(self: Step, rounds: Any) -> Any:
        assert self.level not in asked.rounds
        asked.rounds[self.level] = Watched(rounds)
        return run(self, asked.rounds[self.level])

    def keeping(self: Ledger, hold: Any, step: str, data: bytes) -> bytes:
        asked.steps.append(step)
        return keep_level(self, hold, step, data)

    patches = [patch.object(Step, "run", watched), patch.object(Ledger, "keep_level", keeping)]
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "dphh"]
    for name in DRAWING:
        (function,) = {vars(m)[name] for m in modules if name in vars(m)}
        patches += [
            patch.object(module, name, listening(name, function))
            for module in modules
            if vars(module).get(name) is function
        ]
    for each in patches:
        each.start()
    try:
        yield asked
    finally:
        for each in patches:
            each.stop()
