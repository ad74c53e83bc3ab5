"""Set union in Spark: whole users in blocks, and the words that they hold.

To group rows by user would shuffle every row at every level. So the positions of a few thousand
users are stored as one row (a block), which is never divided. Users are bounded within their block,
and only the sums of blocks are shuffled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dphh.engines.answering import draws, holds
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.run import SparkRun
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.udfs.kernel.reading import Reading
from dphh.udfs.spark.blocks import register_blocks
from dphh.udfs.spark.functions import register_noise
from dphh.udfs.spark.ladder import (
    register_contributions_of_words,
    register_grams_of_blocks,
    register_unreleased,
    register_words_of_blocks,
)


class Items(SparkRun):
    """The methods of a Spark session for set union."""

    within_reach = False
    #: Whether `texts` has the original texts, and `blocks` what is left of them after rounds.
    texts_kept = False

    def hold_words(self, reading: Reading) -> None:
        """Fill `blocks` with the users' texts."""
        self.reach()
        with engine_errors("blocks"):
            register_blocks(self.spark, *self.tokens)
        self.look("texts_of_users")
        self.execute("blocks")

    def union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        self.noise_words(level, purpose)
        released = self.fetch("released_words", threshold=level.threshold_grid)
        self.drop("noised")
        return released

    def noise_words(self, level: SetUnionLevel, purpose: str) -> None:
        """Write all noised sums to `noised`, whatever the threshold."""
        self._write_noised(
            "contributions_of_words", register_contributions_of_words, level, purpose
        )

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        with engine_errors("forget_released"):
            sent = self.look_up("blocks", released.column("key"))
            register_unreleased(self.spark, sent)
        self.execute("forget_released")
        self.drop_looked_up()
        if keep_texts and not self.texts_kept:
            self.rename("blocks", "texts")
            self.texts_kept = True
        self.rename("still_held", "blocks")

    def look_up(self, table: str, released: Any) -> Any | None:
        """Write to `unplaced` the blocks whose keys are to be looked up among the released keys.

        Returns the released keys for the workers; None if these are too many to be sent whole, and
        then `unplaced` has the numbers of each block's keys, by a join."""
        self.spark.table(table).createOrReplaceTempView("unplaced")
        if self.is_sent_whole(released):
            return released
        numbers = np.arange(len(released), dtype=np.int64)
        self.show("rung", pa.table({"key": released, "number": numbers}))
        if table == "blocks":
            register_words_of_blocks(self.spark)
            self.look("words_to_look_up")
        else:
            register_grams_of_blocks(self.spark)
            self.look("grams_to_look_up")
        self.look("blocks_and_numbers")
        self.spark.table("blocks_and_numbers").createOrReplaceTempView("unplaced")
        return None

    def drop_looked_up(self) -> None:
        for view in (
            "unplaced", "rung", "named_words", "named_grams", "keys_to_look_up",
            "blocks_and_numbers",
        ):  # fmt: skip
            self.drop(view)

    def reach(self) -> None:
        """Make the corpus's rows available to queries."""
        if not self.within_reach:
            self.load()
            self.within_reach = True

    def _draw_salt(self, purpose: str) -> int:
        return int(self.randomness.words(1, f"{purpose}/salt")[0])

    def _write_noised(
        self,
        step: str,
        register: Callable[[SparkSession, int], None],
        level: SetUnionLevel | PrunedLevel,
        purpose: str,
    ) -> None:
        """Bound, weigh and sum; draw the noise once and write the noised sums to `noised`.
        `register` takes the salt by which users choose what counts."""
        with engine_errors(step):
            register_noise(self.spark, self.randomness)
            register(self.spark, self._draw_salt(purpose))
        self.look(step, max_items=level.max_items, grid_bits=level.grid_bits)
        self.execute(
            "noised", sigma=level.sigma_grid, purpose=purpose, is_test=self.randomness.is_test
        )


holds(Items, Reading)(Items.hold_words)
draws(Items, SetUnionLevel)(Items.union_level)
