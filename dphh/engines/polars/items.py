"""Set union in Polars, over tables of whole users and their words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa

from dphh.engines.answering import draws, holds
from dphh.engines.polars.gathering import Gathers
from dphh.engines.polars.queries import set_union
from dphh.levels.counts import CountsLevel
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.udfs.draws.noise import draw_rounded_gaussian
from dphh.udfs.kernel.contributions import EqualWeights, equal_weights
from dphh.udfs.kernel.gathering import words_of_texts
from dphh.udfs.kernel.known_words import ReleasedWords, with_released
from dphh.udfs.kernel.reading import Reading


class Items(Gathers):
    """The methods of a Polars session for set union."""

    #: The words that earlier rounds released.
    released_words: ReleasedWords = None

    def hold_words(self, reading: Reading) -> None:
        """Fill `users` with each user's words, as word ids."""
        self.gather("users", words_of_texts(self.whole_users.vocabulary, reading))
        self.released_words = None

    def union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        self.noise_words(level, purpose)
        passed = self.passed(level.threshold_grid)
        self.drop("noised")
        return set_union.released_words(passed, self.whole_users).to_arrow()

    def noise_words(self, level: SetUnionLevel, purpose: str) -> None:
        """Write all noised sums to `noised`, whatever the threshold."""
        rule = self._weighting_rule(level, purpose, self.whole_users.hashed_words)
        remaining = set_union.remaining(self.table("users"), self.released_words)
        histogram = self.fetch("words_level", set_union.words_level(remaining, rule))
        # Only a test's randomness depends on how a word is spelled.
        spelled = self.whole_users.spelled if self.randomness.is_test else None
        self._write_noised(histogram, level, purpose, spelled)

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        words, vocabulary = released.column("key"), self.whole_users.vocabulary
        self.released_words = with_released(self.released_words, vocabulary, words)

    def _weighting_rule(
        self, level: SetUnionLevel | PrunedLevel, purpose: str, hashed: Any
    ) -> EqualWeights:
        salt = int(self.randomness.words(1, f"{purpose}/salt")[0])
        return equal_weights(level.max_items, level.grid_bits, salt, hashed)

    def _write_noised(
        self,
        histogram: pl.DataFrame,
        level: SetUnionLevel | PrunedLevel | CountsLevel,
        purpose: str,
        spelled: Callable[[Any], Any] | None = None,
    ) -> None:
        """Draw the noise once and write the noised sums to `noised`."""
        noised = self.noised(histogram, level.sigma_grid, purpose, spelled)
        self.tables["noised"] = noised.select("key", "noisy")

    def noised(
        self,
        sums: pl.DataFrame,
        sigma: int,
        purpose: str,
        spelled: Callable[[Any], Any] | None = None,
    ) -> pl.DataFrame:
        """The rows (key, weight, ...) with `noisy` instead of `weight`: each row's own noise is
        drawn once, on a materialised frame. Only a test's randomness uses the names of keys."""
        names = None
        if self.randomness.is_test:
            keys = sums["key"]
            named = keys.cast(pl.String).to_arrow() if spelled is None else spelled(keys.to_arrow())
            names = named.cast(pa.large_string())
        noise = draw_rounded_gaussian(self.randomness, sigma, sums.height, purpose, names)
        noisy = sums["weight"] + pl.Series(noise, dtype=pl.Int64)
        return sums.with_columns(noisy=noisy).drop("weight")


holds(Items, Reading)(Items.hold_words)
draws(Items, SetUnionLevel)(Items.union_level)
