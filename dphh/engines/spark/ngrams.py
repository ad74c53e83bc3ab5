"""The ladder of n-grams in Spark: where what is released stands, in blocks of whole users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.climbing import Climbing
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.items import Items
from dphh.engines.two_rounds import Rule
from dphh.ladder.rungs import Integers, Ladder, ValidGrams
from dphh.ladder.spurious import with_spurious
from dphh.levels import PrunedLevel, SetUnionLevel
from dphh.udfs.spark_ladder import (
    register_places_of_grams,
    register_places_of_words,
    register_sums_of_grams,
)


class Ngrams(Items, Climbing):
    def hold_texts(self) -> None:
        self.hold_items()

    def words_level(self, level: SetUnionLevel, purpose: str) -> Any:
        return self.items_level(level, purpose)

    def grams_level(
        self, level: PrunedLevel, ladder: Ladder, valid: ValidGrams, purpose: str
    ) -> Any:
        assert level.threshold_grid is not None
        self._place_all(ladder)
        rule = self._rule(level, purpose)
        self._noised(
            "contributions_of_grams",
            lambda: register_sums_of_grams(self.spark, ladder.ahead, rule),
            level,
            purpose,
        )
        passed = self.fetch("released", threshold=level.threshold_grid)
        supported = self.count("noised")
        released = with_spurious(
            passed, level, valid, supported, self._supported, self.randomness, purpose
        )
        self.drop("noised")
        return released

    def _sums(self, rule: Rule, ladder: Ladder) -> tuple[Integers, Integers]:
        with engine_errors("forecast_sums"):
            register_sums_of_grams(self.spark, ladder.ahead, rule)
        self.look("contributions_of_grams")
        sums = self.fetch("forecast_sums")
        return sums.column("key").to_numpy(), sums.column("weight").to_numpy()

    def _place(self, ladder: Ladder) -> None:
        if len(ladder.rungs) == 1 and self.texts_kept:
            self.rename("texts", "blocks")
        single = ladder.pruning == "single"
        step = "positions_of_words" if len(ladder.rungs) == 1 else "positions_of_grams"
        with engine_errors(step):
            if len(ladder.rungs) == 1:
                register_places_of_words(self.spark, ladder.vocabulary, single)
            else:
                ahead = ladder.up_to(len(ladder.rungs) - 1).ahead
                register_places_of_grams(self.spark, ladder.top.keys, ahead, single)
        self.execute(step)
        self.rename("next_positions", "positions")
        self.drop("blocks")
        self.placed = len(ladder.rungs)

    def _supported(self, keys: Integers) -> Any:
        """Which of these keys have a row in `noised`."""
        found = np.zeros(len(keys), dtype=np.bool_)
        numbers = np.arange(len(keys), dtype=np.int64)
        self.show("proposed", pa.table({"key": keys, "number": numbers}))
        found[self.fetch("supported").column("number").to_numpy()] = True
        self.drop("proposed")
        return found

    def hold_whole_grams(self, shortest: int, longest: int) -> None:
        self._gather((shortest, longest))

    def whole_grams_level(self, level: SetUnionLevel, purpose: str) -> Any:
        return self.items_level(level, purpose)
