"""The n-gram ladder in DuckDB: positions of released grams in rows of whole users."""

from __future__ import annotations

from typing import Any

from dphh.engines.climbing import Climbing
from dphh.engines.duckdb.forecast import DuckDBRounds
from dphh.engines.duckdb.rounds import Rounds
from dphh.levels.ngrams import PrunedLevel
from dphh.session.ladder.rungs import Ladder, ValidGrams
from dphh.session.ladder.word_list import WordList
from dphh.udfs.kernel.known_words import keys_by_list, numbers_of_released
from dphh.udfs.kernel.positions import Released


class Ngrams(Rounds, Climbing):
    """The methods of a DuckDB session for the n-gram ladder."""

    def _write_noised_grams(self, level: PrunedLevel, purpose: str) -> None:
        bounds = self._bounds(level, purpose)
        with self.side_by_side():
            self.execute("grams_level", is_test=self.randomness.is_test, **bounds)

    def _released_grams(self, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
        by_key = {"valid": self.whole_users.look_up_in(valid), "purpose": purpose}
        reached = {"threshold": level.threshold_grid}
        self.execute("lifted", sigma=level.sigma_grid, **reached, **by_key)
        self.whole_users.looked_up.clear()
        return self.fetch("released_grams", **reached)

    def _two_rounds(self, purpose: str) -> DuckDBRounds:
        return DuckDBRounds(self, purpose)

    def _find_positions_of_top_rung(self, ladder: Ladder) -> None:
        if len(ladder.rungs) == 1:
            numbers = numbers_of_released(self.whole_users.vocabulary, ladder.vocabulary)
            released = self.whole_users.look_up_in(numbers)
            single = ladder.pruning == "single"
            with self.side_by_side():
                self.execute("positions_of_words", released=released, single=single)
            self.drop("users")
        else:
            released = self.whole_users.look_up_in(Released(ladder.top.keys))
            with self.side_by_side():
                self.execute("positions_of_grams", released=released, ahead=ladder.ahead)
            self.rename("next_positions", "positions")
        self.whole_users.looked_up.clear()
        self.placed = len(ladder.rungs)

    def _find_listed_positions(self, words: WordList, purpose: str) -> None:
        keys = keys_by_list(self.whole_users.vocabulary, words.words)
        with self.side_by_side():
            self.execute(
                "positions_of_listed",
                word_list=self.whole_users.look_up_in(keys),
                others=len(words.words),
                max_items=words.max_items,
                salt=int(self.randomness.words(1, f"{purpose}/salt")[0]),
            )
        self.whole_users.looked_up.clear()
