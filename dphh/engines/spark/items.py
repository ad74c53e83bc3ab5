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

from dphh.engines.answering import draws, holds
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.run import SparkRun
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.udfs.kernel.contributions import EqualWeights, equal_weights
from dphh.udfs.kernel.reading import Reading
from dphh.udfs.spark.blocks import register_blocks
from dphh.udfs.spark.functions import register_noise
from dphh.udfs.spark.ladder import (
    register_counts_of_words,
    register_keys_of_blocks,
    register_remaining,
    register_sums_of_words,
)
from dphh.udfs.text.hashes import of_numbers


class Items(SparkRun):
    """The methods of a Spark session for set union."""

    within_reach = False
    #: Whether `texts` has the original texts, and `blocks` what is left of them after rounds.
    texts_kept = False

    def hold_words(self, reading: Reading) -> None:
        """Fill `blocks` with the users' texts, or with their n-grams of the requested lengths."""
        self.reach()
        with engine_errors("blocks"):
            register_blocks(self.spark, *self.tokens, reading.lengths)
        self.look("texts_of_users")
        self.execute("blocks")

    def union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        self.noise_words(level, purpose)
        released = self.fetch("released", threshold=level.threshold_grid)
        self.drop("noised")
        return released

    def noise_words(self, level: SetUnionLevel, purpose: str) -> None:
        """Write all noised sums to `noised`, whatever the threshold."""
        rule = self._weighting_rule(level, purpose)
        self._write_noised(
            "contributions_of_words",
            lambda: register_sums_of_words(self.spark, rule),
            level,
            purpose,
        )

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        with engine_errors("forget_released"):
            sent = self.look_up("blocks", released.column("key"))
            register_remaining(self.spark, sent)
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
        register_keys_of_blocks(self.spark, words=table == "blocks")
        self.look("blocks_and_numbers")
        self.spark.table("blocks_and_numbers").createOrReplaceTempView("unplaced")
        return None

    def drop_looked_up(self) -> None:
        for view in ("unplaced", "rung", "blocks_and_numbers"):
            self.drop(view)

    def exact_counts(self, at_least: int) -> Any:
        with engine_errors("exact_counts"):
            register_counts_of_words(self.spark)
        self.look("contributions_of_words")
        return self.fetch("exact_counts", at_least=at_least)

    def reach(self) -> None:
        """Make the corpus's rows available to queries."""
        if not self.within_reach:
            self.load()
            self.within_reach = True

    def _weighting_rule(self, level: SetUnionLevel | PrunedLevel, purpose: str) -> EqualWeights:
        return equal_weights(level.max_items, level.grid_bits, self._draw_salt(purpose), of_numbers)

    def _draw_salt(self, purpose: str) -> int:
        return int(self.randomness.words(1, f"{purpose}/salt")[0])

    def _write_noised(
        self,
        step: str,
        register: Callable[[], None],
        level: SetUnionLevel | PrunedLevel,
        purpose: str,
    ) -> None:
        """Bound, weigh and sum; draw the noise once and write the noised sums to `noised`."""
        with engine_errors(step):
            register_noise(self.spark, self.randomness)
            register()
        self.look(step)
        self.execute("noised", sigma=level.sigma_grid, purpose=purpose)


holds(Items, Reading)(Items.hold_words)
draws(Items, SetUnionLevel)(Items.union_level)
