"""Set union in DuckDB, over tables of whole users and their words."""

from __future__ import annotations

from typing import Any

from dphh.engines.answering import draws, holds
from dphh.engines.duckdb.gathering import Gathers
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.udfs.kernel.gathering import words_of_texts
from dphh.udfs.kernel.known_words import ReleasedWords, with_released
from dphh.udfs.kernel.reading import Reading


class Items(Gathers):
    """The methods of a DuckDB session for set union."""

    #: The words that earlier rounds released.
    released_words: ReleasedWords = None

    def hold_words(self, reading: Reading) -> None:
        """Fill `users` with each user's words, as word ids."""
        self.gather("users", words_of_texts(self.whole_users.vocabulary, reading))
        self.released_words = None

    def union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        self.noise_words(level, purpose)
        released = self.fetch("released_words", threshold=level.threshold_grid)
        self.drop("noised")
        return released

    def noise_words(self, level: SetUnionLevel, purpose: str) -> None:
        """Write all noised sums to `noised`, whatever the threshold."""
        bounds = self._bounds(level, purpose)
        released = self.whole_users.look_up_in(self.released_words)
        with self.side_by_side():
            self.execute(
                "words_level", released=released, is_test=self.randomness.is_test, **bounds
            )
        self.whole_users.looked_up.clear()

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        words, vocabulary = released.column("key"), self.whole_users.vocabulary
        self.released_words = with_released(self.released_words, vocabulary, words)

    def _bounds(self, level: SetUnionLevel | PrunedLevel, purpose: str) -> dict[str, Any]:
        """The parameters of a query that bounds and weighs users and draws the noise once."""
        return {
            "max_items": level.max_items,
            "grid_bits": level.grid_bits,
            "salt": int(self.randomness.words(1, f"{purpose}/salt")[0]),
            "sigma": level.sigma_grid,
            "purpose": purpose,
        }


holds(Items, Reading)(Items.hold_words)
draws(Items, SetUnionLevel)(Items.union_level)
