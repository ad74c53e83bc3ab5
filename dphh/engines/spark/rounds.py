"""Rounds of a set union in Spark that follow one another; noised weights stay on the executors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dphh.engines.rounds import InRounds
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.items import Items
from dphh.levels.set_union import SetUnionLevel
from dphh.privacy.following import Following
from dphh.udfs.spark.functions import register_noise, register_weight
from dphh.udfs.spark.ladder import register_equally_given_to_words, register_words_of_blocks
from dphh.udfs.spark.rounds import register_given_to_words

#: What a round's queries read of tables.
_VIEWS = (
    "told_so_far", "told_before", "blocks_of_round", "lists_of_round", "blocks_and_weights",
)  # fmt: skip


class Rounds(Items, InRounds):
    """The methods of a Spark session for dependent rounds."""

    #: Tables with the noised weights of earlier rounds.
    _noised_before: tuple[str, ...] = ()

    def _start_rounds(self) -> None:
        self._noised_before = ()
        self.look("nothing_told")

    def _write_noised_round(
        self, level: SetUnionLevel, following: Following | None, purpose: str
    ) -> None:
        salt = self._draw_salt(purpose)
        bound = {"max_items": level.max_items, "grid_bits": level.grid_bits}
        with engine_errors("noised_of_round"):
            register_noise(self.spark, self.randomness)
        if following is None:
            with engine_errors("equally_given_to_words"):
                register_equally_given_to_words(self.spark, salt)
            self.look("equally_given_to_words", **bound)
        else:
            with engine_errors("blocks_and_weights"):
                register_weight(self.spark)
                register_words_of_blocks(self.spark)
                register_given_to_words(self.spark, salt)
            self.look("blocks_and_weights", **asdict(following))
            self.look("given_to_words", **bound)
        self.execute(
            "noised_of_round",
            sigma=level.sigma_grid,
            purpose=purpose,
            is_test=self.randomness.is_test,
        )

    def _released_of_round(self, threshold: int) -> Any:
        return self.fetch("released_of_round", threshold=threshold)

    def _add_to_earlier_rounds(self, parts: int) -> None:
        self.look("told_so_far", parts=parts)
        with engine_errors("told_so_far"):
            self.spark.table("told_so_far").createOrReplaceTempView("told_before")
        kept = f"noised_{len(self._noised_before) + 1}"
        self.rename("noised", kept)
        self._noised_before += (kept,)

    def _drop_rounds(self) -> None:
        for table in ("noised", *self._noised_before, *_VIEWS):
            self.drop(table)
