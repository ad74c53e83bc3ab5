"""Steps of the n-gram ladder that are the same on all engines; each engine places the rungs."""

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
    #: How many rungs of the ladder are already in `positions`.
    placed = 0

    @abstractmethod
    def drop(self, table: str) -> None: ...

    @abstractmethod
    def _place(self, ladder: Ladder) -> None:
        """Find the positions of the grams of the ladder's top rung."""

    @abstractmethod
    def _noised_grams(self, level: PrunedLevel, ladder: Ladder, purpose: str) -> tuple[Any, int]:
        """Write the noised sums of the valid grams that some user holds to `noised`. Returns those
        that passed, as an Arrow table (key, noisy), and how many valid grams are held."""

    @abstractmethod
    def _supported(self, proposed: Any) -> Any:
        """The rows of an Arrow table (key, number) whose key is in `noised`."""

    @abstractmethod
    def _rounds(self, purpose: str) -> ForecastRounds:
        """The two rounds of a forecast level, over `positions`."""

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
        """Which of these keys some user holds. This is private."""
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
        """Place all missing rungs: a continued run does not ask for levels that it drew before."""
        for rungs in range(self.placed + 1, len(ladder.rungs) + 1):
            self._place(ladder.up_to(rungs))
