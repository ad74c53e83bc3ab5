"""DPNE's ladder: positions of valid grams, and one level of set union over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphh.engines.polars.queries.set_union import IDS, histogram, of_users
from dphh.session.ladder.word_list import WordList
from dphh.udfs.kernel.contributions import Weigh
from dphh.udfs.kernel.known_words import keys_by_list
from dphh.udfs.kernel.positions import Released
from dphh.udfs.kernel.whole_users import WholeUsers, numbers_of_grams, numbers_of_words, pairs

PAIRS = pl.Struct({"lengths": IDS, "keys": pl.List(pl.Int64)})


def positions_of_words(
    users: pl.LazyFrame, released: NDArray[np.int32], single: bool
) -> pl.LazyFrame:
    """The positions of valid grams of two words: at each position the key of the pair that begins
    there, or -1. A pair is valid if both words were released; they are adjacent in one text.
    Positions that can be in no pair are dropped. With pruning on a single side all positions stay,
    together with the released words, in which longer grams end."""
    grams = of_users(lambda ids: numbers_of_words(ids, released), IDS, "ids")
    positions = users.select("user_hashes", "lengths", grams=grams)
    words = pl.col("grams") if single else pl.lit([], IDS)
    return _candidates(positions.with_columns(words=words), 1)


def positions_of_listed(
    users: pl.LazyFrame, whole_users: WholeUsers, words: WordList, salt: int
) -> pl.LazyFrame:
    """Level 1 with a list: which words users count for, by their keys. All that the list has, and
    of others `max_items`, the first in an order that is the user's own. The same in both rounds."""

    word_list = keys_by_list(whole_users.vocabulary, words.words)

    def listed(user_hashes: Any, lengths: Any, ids: Any) -> Any:
        return whole_users.keys_of_words(
            user_hashes, lengths, ids, word_list, len(words.words), words.max_items, salt
        )

    keys = of_users(listed, IDS, "user_hashes", "lengths", "ids")
    return users.select("user_hashes", "lengths", keys=keys)


def positions_of_grams(positions: pl.LazyFrame, released: Released, ahead: int) -> pl.LazyFrame:
    """The positions of the next level's valid grams. A gram is valid if its pieces were released:
    its first k - 1 tokens, and either its last k - 1 (pruning on both sides: a released gram one
    position ahead) or its last one (on a single side: a released word k - 1 positions ahead)."""
    grams = of_users(lambda keys: numbers_of_grams(keys, released), IDS, "keys")
    return _candidates(positions.select("user_hashes", "lengths", "words", grams=grams), ahead)


def _candidates(positions: pl.LazyFrame, ahead: int) -> pl.LazyFrame:
    def pairs_ahead(lengths: Any, grams: Any, words: Any) -> Any:
        return pairs(lengths, grams, words, ahead)

    found = of_users(pairs_ahead, PAIRS, "lengths", "grams", "words")
    return positions.select("user_hashes", "words", pairs=found).unnest("pairs")


def grams_level(positions: pl.LazyFrame, rule: Weigh) -> pl.LazyFrame:
    """The histogram of a level above the first: the same set union, over the valid grams that
    users hold."""
    return histogram(positions, rule)


def released_grams(
    passed: pl.LazyFrame, noised: pl.LazyFrame, lifted: pl.LazyFrame
) -> pl.LazyFrame:
    """The release of a level of DPNE: every valid gram, held or absent, whose noised weight reaches
    rho_k, as in
    sql/ngrams/released_grams.sql. passed and noised (key, noisy); lifted (position, key,
    noisy)."""
    unheld = (
        lifted.join(noised, on="key", how="anti")
        .sort("position")
        .select("key", position=pl.int_range(pl.len()))
    )
    spurious = unheld.join(lifted.select("position", "noisy"), on="position").filter(
        pl.col("noisy").is_not_null()
    )
    released = pl.concat([passed.select("key", "noisy"), spurious.select("key", "noisy")])
    return released.sort("noisy", "key", descending=[True, False])
