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


class Rounds(Items, InRounds):
    """The methods of a Spark session for dependent rounds."""

    def _start_rounds(self) -> None:
        self.execute("nothing_told")

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
        self.execute("told_so_far", parts=parts)
        self.rename("told_so_far", "told_before")
        self.drop("noised")

    def _drop_rounds(self) -> None:
        for table in ("noised", "told_before", "named_blocks", "blocks_and_weights"):
            self.drop(table)
