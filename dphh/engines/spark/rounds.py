"""Rounds of a set union in Spark that follow one another; noised weights stay on the executors."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from dphh.engines.rounds import InRounds
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.items import Items
from dphh.levels.set_union import SetUnionLevel
from dphh.privacy.following import Following
from dphh.udfs.spark.functions import register_noise, register_weight
from dphh.udfs.spark.ladder import register_keys_of_blocks, register_sums_of_words
from dphh.udfs.spark.rounds import register_given_to_words

#: What a round's queries read of tables.
_VIEWS = ("told_so_far", "told_before", "named_blocks", "lists_of_blocks", "blocks_and_weights")


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
        rule = replace(self._weighting_rule(level, purpose), keeps_zeros=True)
        with engine_errors("noised_of_round"):
            register_noise(self.spark, self.randomness)
        if following is None:
            with engine_errors("contributions_of_words"):
                register_sums_of_words(self.spark, rule)
            self.look("contributions_of_words")
        else:
            with engine_errors("blocks_and_weights"):
                register_weight(self.spark)
                register_keys_of_blocks(self.spark, words=True)
                register_given_to_words(self.spark, 2**level.grid_bits, level.max_items, rule.salt)
            self.look("blocks_and_weights", **asdict(following))
            self.look("given_to_words")
        self.execute("noised_of_round", sigma=level.sigma_grid, purpose=purpose)

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
