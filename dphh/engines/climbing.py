"""Steps of the n-gram ladder that are the same on all engines; each engine positions the rungs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dphh.engines.forecast_rounds import ForecastRounds
from dphh.levels.ngrams import PrunedLevel
from dphh.session.ladder.rounds import TwoRoundsOf
from dphh.session.ladder.rungs import Ladder, ValidGrams
from dphh.session.ladder.word_list import WordList
from dphh.udfs.draws.randomness import Randomness


class Climbing(ABC):
    """The methods of a session for the n-gram ladder, with hooks for an engine's queries."""

    randomness: Randomness
    #: How many rungs of the ladder are already in `positions`.
    placed = 0

    @abstractmethod
    def drop(self, table: str) -> None: ...

    @abstractmethod
    def _find_positions_of_top_rung(self, ladder: Ladder) -> None:
        """Find the positions of the grams of the ladder's top rung."""

    @abstractmethod
    def _find_listed_positions(self, words: WordList, purpose: str) -> None:
        """Write to `positions` the words for which users count: listed words by their numbers in
        the list, and words that it lacks."""

    @abstractmethod
    def _write_noised_grams(self, level: PrunedLevel, purpose: str) -> None:
        """Write the noised sums of the valid grams that some user holds to `noised`."""

    @abstractmethod
    def _released_grams(self, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
        """The valid grams that passed, held or not: an Arrow table (key, noisy)."""

    @abstractmethod
    def _two_rounds(self, purpose: str) -> ForecastRounds:
        """The two rounds of a forecast level, over `positions`."""

    def grams_level(
        self, level: PrunedLevel, ladder: Ladder, valid: ValidGrams, purpose: str
    ) -> Any:
        self._find_missing_positions(ladder)
        self._write_noised_grams(level, purpose)
        released = self._released_grams(level, valid, purpose)
        self.drop("noised")
        self.drop("lifted")
        return released

    def forecast_level(self, level: TwoRoundsOf, ladder: Ladder | WordList, purpose: str) -> Any:
        if isinstance(ladder, WordList):
            self._find_listed_positions(ladder, purpose)
        else:
            self._find_missing_positions(ladder)
        rounds = self._two_rounds(purpose)
        released = level.run(rounds).to_table()
        rounds.close()
        if isinstance(ladder, WordList):
            self.drop("positions")
        return released

    def _find_missing_positions(self, ladder: Ladder) -> None:
        """Place all missing rungs: a continued run does not ask for levels that it drew before."""
        for rungs in range(self.placed + 1, len(ladder.rungs) + 1):
            self._find_positions_of_top_rung(ladder.up_to(rungs))
