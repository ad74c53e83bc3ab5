"""DPNE's ladder: where valid grams stand, and one level of set union over them."""

from __future__ import annotations

from typing import Any

import polars as pl

from dphh.engines.polars.queries.set_union import CODES, histogram, of_users
from dphh.udfs.kernel.contributions import Weigh
from dphh.udfs.kernel.whole_users import WholeUsers

PAIRS = pl.Struct({"lengths": CODES, "keys": pl.List(pl.Int64)})


def positions_of_words(users: pl.LazyFrame, whole_users: WholeUsers, single: bool) -> pl.LazyFrame:
    """Where valid grams of two words stand: at each place the key of the pair that begins there, -1
    for none. A pair is valid where both words were released; they stand side by side in one text.
    Places that can be part of none go; but where pruning is on a single side every place stays, and
    the released words beside, to be what longer grams end in."""
    places = users.select(
        "lots", "lengths", grams=of_users(whole_users.places_of_words, CODES, "codes")
    )
    words = pl.col("grams") if single else pl.lit([], CODES)
    return _candidates(places.with_columns(words=words), whole_users, 1)


def positions_of_grams(
    positions: pl.LazyFrame, whole_users: WholeUsers, ahead: int
) -> pl.LazyFrame:
    """Where the next level's valid grams stand: all that it needs to see. A gram is valid where its
    pieces were released: its first k - 1 tokens, and its last k - 1 (pruning on both sides: a
    released gram one place ahead) or its last one (on a single side: a released word k - 1 places
    ahead)."""
    grams = of_users(whole_users.places_of_grams, CODES, "keys")
    return _candidates(
        positions.select("lots", "lengths", "words", grams=grams), whole_users, ahead
    )


def _candidates(places: pl.LazyFrame, whole_users: WholeUsers, ahead: int) -> pl.LazyFrame:
    def pairs(lengths: Any, grams: Any, words: Any) -> Any:
        return whole_users.pairs(lengths, grams, words, ahead)

    found = of_users(pairs, PAIRS, "lengths", "grams", "words")
    return places.select("lots", "words", pairs=found).unnest("pairs")


def grams_level(positions: pl.LazyFrame, rule: Weigh) -> pl.LazyFrame:
    """The histogram of a level above the first: the same set union, over the valid grams that
    somebody holds."""
    return histogram(positions, rule)


def released_grams(
    passed: pl.LazyFrame, noised: pl.LazyFrame, lifted: pl.LazyFrame
) -> pl.LazyFrame:
    """What a level of DPNE releases: every valid gram whose noised weight reaches rho_k, held or
    not, as sql/ngrams/released_grams.sql. passed and noised (key, noisy); lifted (place, key,
    noisy)."""
    unheld = (
        lifted.join(noised, on="key", how="anti")
        .sort("place")
        .select("key", place=pl.int_range(pl.len()))
    )
    spurious = unheld.join(lifted.select("place", "noisy"), on="place").filter(
        pl.col("noisy").is_not_null()
    )
    released = pl.concat([passed.select("key", "noisy"), spurious.select("key", "noisy")])
    return released.sort("noisy", "key", descending=[True, False])
