"""The ladder of n-grams in Polars: where what is released stands, in rows of whole users."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dphh.engines.climbing import Climbing
from dphh.engines.polars.items import Items
from dphh.engines.polars.queries import ladder as queries
from dphh.engines.polars.queries import set_union
from dphh.engines.two_rounds import Rule
from dphh.ladder.rungs import Integers, Ladder, ValidGrams
from dphh.ladder.spurious import with_spurious
from dphh.levels import PrunedLevel, SetUnionLevel
from dphh.udfs.hashes import of_numbers


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
        rule = self._rule(level, purpose, of_numbers)
        positions = self.table("positions")
        histogram = queries.grams_level(positions, self.whole_users, ladder.ahead, rule)
        self._noised(self.fetch("grams_level", histogram), level, purpose)
        passed = self.released(level.threshold_grid)
        supported = self.tables["noised"].height
        released = with_spurious(
            passed, level, valid, supported, self._supported, self.randomness, purpose
        )
        self.drop("noised")
        return released

    def _sums(self, rule: Rule, ladder: Ladder) -> tuple[Integers, Integers]:
        positions = self.table("positions")
        histogram = queries.grams_level(positions, self.whole_users, ladder.ahead, rule)
        sums = self.fetch("forecast_sums", histogram)
        return sums["key"].to_numpy(), sums["weight"].to_numpy()

    def _place(self, ladder: Ladder) -> None:
        if len(ladder.rungs) == 1:
            self.whole_users.release_words(ladder.vocabulary)
            self.tables["users"] = self.tables.pop("texts", self.tables["users"])
            single = ladder.pruning == "single"
            found = queries.positions_of_words(self.table("users"), self.whole_users, single)
            self.make("positions", found, step="positions_of_words")
            self.drop("users")
        else:
            self.whole_users.release_grams(ladder.top.keys)
            ahead = ladder.up_to(len(ladder.rungs) - 1).ahead
            found = queries.positions_of_grams(self.table("positions"), self.whole_users, ahead)
            self.make("positions", found, step="positions_of_grams")
        self.placed = len(ladder.rungs)

    def _supported(self, keys: Integers) -> Any:
        """Which of these keys have a row in `noised` (sql/supported.sql)."""
        proposed = pl.DataFrame({"key": keys, "number": np.arange(len(keys), dtype=np.int64)})
        supported = proposed.join(self.tables["noised"], on="key", how="semi")
        found = np.zeros(len(keys), dtype=np.bool_)
        found[supported["number"].to_numpy()] = True
        return found

    def hold_whole_grams(self, shortest: int, longest: int) -> None:
        rows = set_union.users_grams(self.load(), self.whole_users, shortest, longest)
        self._gather("users_grams", rows)

    def whole_grams_level(self, level: SetUnionLevel, purpose: str) -> Any:
        return self.items_level(level, purpose)
