"""Steps of the n-gram ladder that are the same on all engines; each engine positions the rungs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dphh.engines.answering import draws
from dphh.engines.forecast_rounds import ForecastRounds
from dphh.levels.ngrams import PrunedLevel
from dphh.session.ladder.forecast_rounds import ForecastOn
from dphh.session.ladder.rungs import GramsOn, Ladder, ValidGrams
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

    def _find_missing_positions(self, ladder: Ladder) -> None:
        """Place all missing rungs: a continued run does not ask for levels that it drew before."""
        for rungs in range(self.placed + 1, len(ladder.rungs) + 1):
            self._find_positions_of_top_rung(ladder.up_to(rungs))


@draws(Climbing, GramsOn)
def grams_level(session: Climbing, asked: GramsOn, purpose: str) -> Any:
    session._find_missing_positions(asked.ladder)
    session._write_noised_grams(asked.level, purpose)
    released = session._released_grams(asked.level, asked.valid, purpose)
    session.drop("noised")
    session.drop("lifted")
    return released


@draws(Climbing, ForecastOn)
def forecast_level(session: Climbing, asked: ForecastOn, purpose: str) -> Any:
    if isinstance(asked.ladder, WordList):
        session._find_listed_positions(asked.ladder, purpose)
    else:
        session._find_missing_positions(asked.ladder)
    rounds = session._two_rounds(purpose)
    released = asked.level.run(rounds).to_table()
    rounds.close()
    if isinstance(asked.ladder, WordList):
        session.drop("positions")
    return released
