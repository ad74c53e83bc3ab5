"""The n-gram ladder in Polars: positions of released grams in rows of whole users."""

from __future__ import annotations

from typing import Any

import polars as pl

from dphh.engines.climbing import Climbing
from dphh.engines.polars.forecast import PolarsRounds
from dphh.engines.polars.queries import ladder as queries
from dphh.engines.polars.rounds import Rounds
from dphh.levels.ngrams import PrunedLevel
from dphh.session.ladder.rungs import Ladder, ValidGrams
from dphh.session.ladder.spurious import lifted_grams
from dphh.session.ladder.word_list import WordList
from dphh.udfs.kernel.known_words import numbers_of_released
from dphh.udfs.kernel.positions import Released
from dphh.udfs.text.hashes import of_numbers


class Ngrams(Rounds, Climbing):
    """The methods of a Polars session for the n-gram ladder."""

    def _write_noised_grams(self, level: PrunedLevel, purpose: str) -> None:
        rule = self._weighting_rule(level, purpose, of_numbers)
        histogram = queries.grams_level(self.table("positions"), rule)
        self._write_noised(self.fetch("grams_level", histogram), level, purpose)

    def _released_grams(self, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
        noised, threshold = self.tables["noised"], level.threshold_grid
        assert threshold is not None
        lifted = lifted_grams(
            valid, noised.height, level.sigma_grid, threshold, self.randomness, purpose
        )
        by_place = pl.DataFrame(lifted.to_table()).lazy()
        passed = self.passed(threshold).lazy()
        found = queries.released_grams(passed, noised.lazy(), by_place)
        return self.fetch("released_grams", found).to_arrow()

    def _two_rounds(self, purpose: str) -> PolarsRounds:
        return PolarsRounds(self, purpose)

    def _find_positions_of_top_rung(self, ladder: Ladder) -> None:
        if len(ladder.rungs) == 1:
            numbers = numbers_of_released(self.whole_users.vocabulary, ladder.vocabulary)
            single = ladder.pruning == "single"
            found = queries.positions_of_words(self.table("users"), numbers, single)
            self.make("positions", found, step="positions_of_words")
            self.drop("users")
        else:
            positions, released = self.table("positions"), Released(ladder.top.keys)
            found = queries.positions_of_grams(positions, released, ladder.ahead)
            self.make("positions", found, step="positions_of_grams")
        self.placed = len(ladder.rungs)

    def _find_listed_positions(self, words: WordList, purpose: str) -> None:
        salt = int(self.randomness.words(1, f"{purpose}/salt")[0])
        found = queries.positions_of_listed(self.table("users"), self.whole_users, words, salt)
        self.make("positions", found, step="positions_of_listed")
