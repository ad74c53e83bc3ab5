"""The ladder's steps that are the same on every engine; how a rung is placed is the engine's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dphh.engines.forecast_rounds import ForecastRounds
from dphh.ladder.rounds import TwoRoundsOf
from dphh.ladder.rungs import Ladder, ValidGrams
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
    def _noised_grams(self, level: PrunedLevel, purpose: str) -> None:
        """To `noised`, the valid grams that somebody holds."""

    @abstractmethod
    def _released_grams(self, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
        """What passed of them, and of the valid grams that nobody holds: an Arrow table (key,
        noisy)."""

    @abstractmethod
    def _rounds(self, purpose: str) -> ForecastRounds:
        """The two rounds of a level over `positions`."""

    def grams_level(
        self, level: PrunedLevel, ladder: Ladder, valid: ValidGrams, purpose: str
    ) -> Any:
        self._place_all(ladder)
        self._noised_grams(level, purpose)
        released = self._released_grams(level, valid, purpose)
        self.drop("noised")
        self.drop("lifted")
        return released

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
