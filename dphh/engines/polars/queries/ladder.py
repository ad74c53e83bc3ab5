"""DPNE's ladder: where released grams stand, and the candidates among their neighbours."""

from __future__ import annotations

import polars as pl

from dphh.engines.polars.queries.set_union import CODES, KEYS, histogram, of_users
from dphh.udfs.contributions import Weigh
from dphh.udfs.whole_users import WholeUsers


def positions_of_words(users: pl.LazyFrame, whole_users: WholeUsers, single: bool) -> pl.LazyFrame:
    """Where the released words stand: the number of a word at its place, -1 where it was not
    released and after each text. A word with none released beside it goes, for it can be half of
    no pair; but where pruning is on a single side every place stays, to be what longer grams end
    in."""
    places = users.select("lot", grams=of_users(whole_users.places_of_words, CODES, "codes"))
    if single:
        return places.with_columns(words="grams")
    neighbours = places.with_columns(of_users(whole_users.beside_another, CODES, "grams"))
    return neighbours.filter(pl.col("grams").list.len() > 0)


def candidates(positions: pl.LazyFrame, whole_users: WholeUsers, ahead: int) -> pl.LazyFrame:
    """Valid grams: those whose pieces were released, their first k - 1 tokens, and their last k - 1
    (pruning on both sides: a released gram one place ahead) or their last one (on a single side: a
    released word k - 1 places ahead)."""
    ends = "words" if "words" in positions.collect_schema() else "grams"
    return positions.with_columns(
        keys=of_users(
            lambda grams, ends: whole_users.pairs(grams, ends, ahead), KEYS, "grams", ends
        )
    )


def grams_level(
    positions: pl.LazyFrame, whole_users: WholeUsers, ahead: int, rule: Weigh
) -> pl.LazyFrame:
    """The histogram of a level above the first: the same set union, over the valid grams that
    somebody holds."""
    return histogram(candidates(positions, whole_users, ahead), rule)


def positions_of_grams(
    positions: pl.LazyFrame, whole_users: WholeUsers, ahead: int
) -> pl.LazyFrame:
    """Where a level's released grams stand: all that the next level needs to see."""
    found = candidates(positions, whole_users, ahead)
    places = found.with_columns(grams=of_users(whole_users.places_of_grams, CODES, "keys"))
    if "words" in found.collect_schema():
        return places.select("lot", "grams", "words")
    neighbours = places.select("lot", of_users(whole_users.beside_another, CODES, "grams"))
    return neighbours.filter(pl.col("grams").list.len() > 0)
