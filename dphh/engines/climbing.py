"""The ladder's steps that are the same on every engine; how a rung is placed is the engine's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.engines.forecast_rounds import ForecastRounds
from dphh.ladder.rounds import TwoRoundsOf
from dphh.ladder.rungs import Integers, Ladder, ValidGrams
from dphh.ladder.spurious import with_spurious
from dphh.levels import PrunedLevel
from dphh.udfs.draws.randomness import Randomness


class Climbing(ABC):
    randomness: Randomness
    #: How many rungs of the ladder stand in `positions`.
    placed = 0

    @abstractmethod
    def drop(self, table: str) -> None: ...

    @abstractmethod
    def _place(self, ladder: Ladder) -> None:
        """Where the grams of the ladder's top stand."""

    @abstractmethod
    def _noised_grams(self, level: PrunedLevel, ladder: Ladder, purpose: str) -> tuple[Any, int]:
        """To `noised`, the valid grams that somebody holds; what passed of them, an Arrow table
        (key, noisy), and how many they are."""

    @abstractmethod
    def _supported(self, proposed: Any) -> Any:
        """Of an Arrow table (key, number) the rows whose key has one in `noised`."""

    @abstractmethod
    def _rounds(self, purpose: str) -> ForecastRounds:
        """The two rounds of a level over `positions`."""

    def grams_level(
        self, level: PrunedLevel, ladder: Ladder, valid: ValidGrams, purpose: str
    ) -> Any:
        self._place_all(ladder)
        passed, supported = self._noised_grams(level, ladder, purpose)
        released = with_spurious(
            passed, level, valid, supported, self._held, self.randomness, purpose
        )
        self.drop("noised")
        return released

    def _held(self, keys: Integers) -> NDArray[np.bool_]:
        """Which of these keys somebody holds: private."""
        held = np.zeros(len(keys), dtype=np.bool_)
        numbers = np.arange(len(keys), dtype=np.int64)
        supported = self._supported(pa.table({"key": keys, "number": numbers}))
        held[supported.column("number").to_numpy()] = True
        return held

    def forecast_level(self, level: TwoRoundsOf, ladder: Ladder, purpose: str) -> Any:
        self._place_all(ladder)
        rounds = self._rounds(purpose)
        released = level.run(rounds).to_table()
        rounds.close()
        return released

    def _place_all(self, ladder: Ladder) -> None:
        """A run that goes on was not asked for the levels that it drew before."""
        for rungs in range(self.placed + 1, len(ladder.rungs) + 1):
            self._place(ladder.up_to(rungs))
