"""The ladder of n-grams in DuckDB: where what is released stands, in rows of whole users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.climbing import Climbing
from dphh.engines.duckdb.items import Items
from dphh.engines.two_rounds import Rule
from dphh.ladder.rungs import Integers, Ladder, ValidGrams
from dphh.ladder.spurious import with_spurious
from dphh.levels import PrunedLevel, SetUnionLevel


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
        self._noised("grams_level", level, purpose, ahead=ladder.ahead)
        passed = self.fetch("released", threshold=level.threshold_grid)
        ((supported,),) = self.con.execute("SELECT count(*) FROM noised").fetchall()
        released = with_spurious(
            passed, level, valid, supported, self._supported, self.randomness, purpose
        )
        self.drop("noised")
        return released

    def _sums(self, rule: Rule, ladder: Ladder) -> tuple[Integers, Integers]:
        self.whole_users.round_rule = rule
        with self.side_by_side():
            sums = self.fetch("forecast_sums", ahead=ladder.ahead)
        return sums.column("key").to_numpy(), sums.column("weight").to_numpy()

    def _place(self, ladder: Ladder) -> None:
        if len(ladder.rungs) == 1:
            self.whole_users.release_words(ladder.vocabulary)
            if self.texts_kept:
                self.rename("texts", "users")
            with self.side_by_side():
                self.execute("positions_of_words", single=ladder.pruning == "single")
            self.drop("users")
        else:
            self.whole_users.release_grams(ladder.top.keys)
            ahead = ladder.up_to(len(ladder.rungs) - 1).ahead
            with self.side_by_side():
                self.execute("positions_of_grams", ahead=ahead)
            self.rename("next_positions", "positions")
        self.placed = len(ladder.rungs)

    def _supported(self, keys: Integers) -> Any:
        """Which of these keys have a row in `noised`."""
        found = np.zeros(len(keys), dtype=np.bool_)
        numbers = np.arange(len(keys), dtype=np.int64)
        self.con.register("proposed", pa.table({"key": keys, "number": numbers}))
        found[self.fetch("supported").column("number").to_numpy()] = True
        self.con.unregister("proposed")
        return found

    def hold_whole_grams(self, shortest: int, longest: int) -> None:
        self.hold_rows()
        self._gather("users_grams", shortest=shortest, longest=longest)

    def whole_grams_level(self, level: SetUnionLevel, purpose: str) -> Any:
        return self.items_level(level, purpose)
