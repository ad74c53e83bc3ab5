"""The n-gram ladder in Polars: positions of released grams in rows of whole users."""

from __future__ import annotations

from typing import Any

import polars as pl

from dphh.engines.climbing import Climbing
from dphh.engines.polars.forecast import PolarsRounds
from dphh.engines.polars.queries import ladder as queries
from dphh.engines.polars.rounds import Rounds
from dphh.ladder.rungs import Ladder
from dphh.levels import PrunedLevel
from dphh.udfs.text.hashes import of_numbers


class Ngrams(Rounds, Climbing):
    def _noised_grams(self, level: PrunedLevel, ladder: Ladder, purpose: str) -> tuple[Any, int]:
        rule = self._rule(level, purpose, of_numbers)
        histogram = queries.grams_level(self.table("positions"), rule)
        self._noised(self.fetch("grams_level", histogram), level, purpose)
        assert level.threshold_grid is not None
        return self.released(level.threshold_grid), self.tables["noised"].height

    def _rounds(self, purpose: str) -> PolarsRounds:
        return PolarsRounds(self, purpose)

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
            positions = self.table("positions")
            found = queries.positions_of_grams(positions, self.whole_users, ladder.ahead)
            self.make("positions", found, step="positions_of_grams")
        self.placed = len(ladder.rungs)

    def _supported(self, proposed: Any) -> Any:
        """The same as sql/ngrams/supported.sql."""
        supported = pl.DataFrame(proposed).join(self.tables["noised"], on="key", how="semi")
        return supported.to_arrow()
