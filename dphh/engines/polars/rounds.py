"""Rounds of a set union in Polars whose weights depend on earlier rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dphh.engines.polars.items import Items
from dphh.engines.polars.queries import rounds, set_union
from dphh.engines.rounds import InRounds
from dphh.levels.set_union import SetUnionLevel
from dphh.privacy.following import Following


class Rounds(Items, InRounds):
    """The methods of a Polars session for dependent rounds."""

    def _start_rounds(self) -> None:
        self.drop("told_before")

    def _write_noised_round(
        self, level: SetUnionLevel, following: Following | None, purpose: str
    ) -> None:
        w = None if following is None else self._weights_of_words(following)
        salt = int(self.randomness.words(1, f"{purpose}/salt")[0])
        rule = self.whole_users.given(level.max_items, level.grid_bits, salt, w)
        remaining = set_union.remaining(self.table("users"), self.released_words)
        histogram = self.fetch("words_of_round", set_union.words_level(remaining, rule))
        given = histogram.with_columns(given=pl.col("weight") > 0)
        spelled = self.whole_users.spelled if self.randomness.is_test else None
        self.tables["noised"] = self.noised(given, level.sigma_grid, purpose, spelled)

    def _released_of_round(self, threshold: int) -> Any:
        passed = self.tables["noised"].filter("given", pl.col("noisy") >= threshold)
        return set_union.released_words(passed, self.whole_users).to_arrow()

    def _add_to_earlier_rounds(self, parts: int) -> None:
        noised = self.table("noised")
        before = self.table("told_before") if "told_before" in self.tables else None
        self.make("told_before", rounds.told_so_far(noised, before, parts), "told_so_far")
        self.drop("noised")

    def _drop_rounds(self) -> None:
        self.drop("noised")
        self.drop("told_before")

    def _weights_of_words(self, following: Following) -> Any:
        """The weights of the next round, as an array by word id."""
        told = self.tables["told_before"]
        w = np.zeros(len(self.whole_users.vocabulary) + 1, dtype=np.int64)
        w[told["key"].to_numpy()] = following.weights(told["told"].to_numpy())
        return w
