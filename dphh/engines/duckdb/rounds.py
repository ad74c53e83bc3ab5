"""Dependent rounds of a set union in DuckDB: `sql/set_union/*_round.sql`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphh.engines.duckdb.items import Items
from dphh.engines.rounds import InRounds
from dphh.levels.set_union import SetUnionLevel
from dphh.privacy.following import Following


class Rounds(Items, InRounds):
    """The methods of a DuckDB session for dependent rounds."""

    def _start_rounds(self) -> None:
        self.execute("nothing_told")

    def _write_noised_round(
        self, level: SetUnionLevel, following: Following | None, purpose: str
    ) -> None:
        w = None if following is None else self._weights_of_words(following)
        bounds = self._bounds(level, purpose)
        with self.side_by_side():
            self.execute(
                "words_of_round",
                w=self.whole_users.look_up_in(w),
                released=self.whole_users.look_up_in(self.released_words),
                is_test=self.randomness.is_test,
                **bounds,
            )
        self.whole_users.looked_up.clear()

    def _released_of_round(self, threshold: int) -> Any:
        return self.fetch("released_of_round", threshold=threshold)

    def _add_to_earlier_rounds(self, parts: int) -> None:
        self.execute("told_so_far", parts=parts)
        self.rename("told_so_far", "told_before")
        self.drop("noised")

    def _drop_rounds(self) -> None:
        self.drop("noised")
        self.drop("told_before")

    def _weights_of_words(self, following: Following) -> Any:
        """The weights of the next round, as an array by word id."""
        found = self.fetch(
            "weights_of_round",
            parts=following.parts,
            deviation=following.deviation,
            threshold=following.threshold,
        )
        w = np.zeros(len(self.whole_users.vocabulary) + 1, dtype=np.int64)
        w[found.column("word_id").to_numpy()] = found.column("w").to_numpy()
        return w
