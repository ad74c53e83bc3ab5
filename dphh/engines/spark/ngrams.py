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
    register_contributions_of_grams,
    register_pairs_of_grams,
    register_pairs_of_words,
)
from dphh.udfs.spark.listed_words import (
    register_keys_of_words,
    register_other_words_of_blocks,
)


class Ngrams(Rounds, Climbing):
    """The methods of a Spark session for the n-gram ladder."""

    def _write_noised_grams(self, level: PrunedLevel, purpose: str) -> None:
        self._write_noised(
            "contributions_of_grams", register_contributions_of_grams, level, purpose
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
        if len(ladder.rungs) == 1:
            with engine_errors("positions_of_words"):
                sent = self.look_up("blocks", ladder.vocabulary)
                register_pairs_of_words(self.spark, sent)
            self.execute("positions_of_words", single=ladder.pruning == "single")
        else:
            with engine_errors("positions_of_grams"):
                sent = self.look_up("positions", ladder.top.keys)
                register_pairs_of_grams(self.spark, sent)
            self.execute("positions_of_grams", ahead=ladder.ahead)
        self.drop_looked_up()
        self.rename("next_positions", "positions")
        self.drop("blocks")
        self.placed = len(ladder.rungs)

    def _find_listed_positions(self, words: WordList, purpose: str) -> None:
        salt = self._draw_salt(purpose)
        with engine_errors("positions_of_listed"):
            register_other_words_of_blocks(self.spark, words.words)
            register_keys_of_words(self.spark, words.words, salt)
        self.execute("numbered_blocks")
        self.execute("positions_of_listed", others=len(words.words), max_items=words.max_items)
        for table in ("lists_of_blocks", "words_of_blocks", "numbered_blocks", "keyed_blocks"):
            self.drop(table)
