"""The n-gram ladder in Spark: positions of released grams in blocks of whole users."""

from __future__ import annotations

from typing import Any

from dphh.engines.climbing import Climbing
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.forecast import SparkRounds
from dphh.engines.spark.forecast_functions import register_lifted
from dphh.engines.spark.rounds import Rounds
from dphh.levels.ngrams import PrunedLevel
from dphh.session.ladder.rungs import Ladder, ValidGrams
from dphh.session.ladder.word_list import WordList
from dphh.udfs.spark.ladder import (
    register_positions_of_grams,
    register_positions_of_words,
    register_sums_of_grams,
)
from dphh.udfs.spark.listed_words import (
    register_other_words_of_blocks,
    register_positions_of_listed,
)


class Ngrams(Rounds, Climbing):
    """The methods of a Spark session for the n-gram ladder."""

    def _write_noised_grams(self, level: PrunedLevel, purpose: str) -> None:
        rule = self._weighting_rule(level, purpose)
        self._write_noised(
            "contributions_of_grams",
            lambda: register_sums_of_grams(self.spark, rule),
            level,
            purpose,
        )

    def _released_grams(self, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
        reached = {"threshold": level.threshold_grid}
        with engine_errors("lifted"):
            register_lifted(self.spark, self.randomness, valid)
        self.execute("lifted", sigma=level.sigma_grid, purpose=purpose, **reached)
        return self.fetch("released_grams", **reached)

    def _two_rounds(self, purpose: str) -> SparkRounds:
        return SparkRounds(self, purpose)

    def _find_positions_of_top_rung(self, ladder: Ladder) -> None:
        if len(ladder.rungs) == 1 and self.texts_kept:
            self.rename("texts", "blocks")
        step = "positions_of_words" if len(ladder.rungs) == 1 else "positions_of_grams"
        with engine_errors(step):
            if len(ladder.rungs) == 1:
                sent = self.look_up("blocks", ladder.vocabulary)
                register_positions_of_words(self.spark, sent, ladder.pruning == "single")
            else:
                sent = self.look_up("positions", ladder.top.keys)
                register_positions_of_grams(self.spark, sent, ladder.ahead)
        self.execute(step)
        self.drop_looked_up()
        self.rename("next_positions", "positions")
        self.drop("blocks")
        self.placed = len(ladder.rungs)

    def _find_listed_positions(self, words: WordList, purpose: str) -> None:
        salt = self._draw_salt(purpose)
        with engine_errors("positions_of_listed"):
            register_other_words_of_blocks(self.spark, words.words)
            register_positions_of_listed(self.spark, words.words, words.max_items, salt)
        self.execute("numbered_blocks")
        self.execute("positions_of_listed", others=len(words.words))
        for table in ("lists_of_blocks", "words_of_blocks", "numbered_blocks", "keyed_blocks"):
            self.drop(table)
