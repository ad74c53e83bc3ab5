"""The forecast ladder's rounds as queries: step by step `sql/ngrams/forecast_*.sql`.

The SQL files explain the steps. Noise is drawn between them (`engines/polars/forecast.py`).
"""

from __future__ import annotations

import polars as pl

BY_ROW = ("class", "bin")
RELEASED_COLUMNS = ("key", "bin", "first", "second")


def classed(
    noised: pl.LazyFrame, forecasts: pl.LazyFrame, lifts: pl.LazyFrame, public_grams: pl.LazyFrame
) -> pl.LazyFrame:
    """Add to each (key, noisy) the gram's class, which follows from the forecasts of its two parts
    and, with a prior, from the public text."""
    pieces = noised.with_columns(
        first_piece=pl.col("key") // 2**32, last_piece=pl.col("key") % 2**32
    )
    of_first = forecasts.select("as_first", "expected_first", first_piece="gram")
    of_last = forecasts.select("as_last", "expected_last", last_piece="gram")
    foretold = pl.col("as_first") + pl.col("as_last") + pl.col("shift")
    return (
        pieces.join(of_first, on="first_piece")
        .join(of_last, on="last_piece")
        .with_columns(expected=pl.col("expected_first") + pl.col("expected_last"))
        .join(lifts, on="expected")
        .join(public_grams, on="key", how="left")
        .select("key", "noisy", **{"class": pl.coalesce("class", foretold)})
    )


def other_words(noised: pl.LazyFrame, start: int, threshold: int) -> pl.LazyFrame:
    """Level 1 with a list: the words that the list lacks, in two rows of class -1: those that round
    1 releases, and all others."""
    early = (pl.col("noisy") >= threshold).cast(pl.Int64)
    others = noised.filter(pl.col("key") >= start)
    return others.select("key", "noisy", **{"class": pl.lit(-1, pl.Int64), "bin": early})


def unlisted(round_1: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """How many valid grams of each class no user holds."""
    held = round_1.group_by("class").agg(held=pl.len().cast(pl.Int64))
    grams = pl.col("valid") - pl.col("held").fill_null(0)
    return classes.join(held, on="class", how="left").select("class", grams=grams).sort("class")


def rows(round_1: pl.LazyFrame, absent: pl.LazyFrame) -> pl.LazyFrame:
    """The output of round 1: how many valid grams, held or absent, each row (class and bin) has.
    Words that a list lacks are not counted, because only held ones have rows."""
    in_classes = round_1.filter(pl.col("class") >= 0)
    held = in_classes.group_by(BY_ROW).agg(grams=pl.len().cast(pl.Int64))
    return (
        pl.concat([held, absent.select(*BY_ROW, "grams")])
        .group_by(BY_ROW)
        .agg(pl.col("grams").sum())
    )


def weights(round_1: pl.LazyFrame, planned: pl.LazyFrame) -> pl.LazyFrame:
    """The weight g of every valid gram that some user holds: that of its row."""
    return round_1.join(planned, on=BY_ROW).select("key", "weight")


def sums(round_1: pl.LazyFrame, histogram: pl.LazyFrame) -> pl.LazyFrame:
    """The sum of users' round-2 weights for every gram of round 1; 0 if there are none."""
    return round_1.join(histogram, on="key", how="left").select(
        "key", "class", "bin", pl.col("weight").fill_null(0), first="noisy"
    )


def signs(round_2: pl.LazyFrame, absent_signs: pl.LazyFrame) -> pl.LazyFrame:
    """What round 2 outputs before its thresholds: how many grams of each row have a noised weight
    of 0 or less."""
    in_classes = round_2.filter(pl.col("class") >= 0)
    held = in_classes.filter(pl.col("second") <= 0).group_by(BY_ROW)
    held_negatives = held.agg(negatives=pl.len().cast(pl.Int64))
    absent = absent_signs.select(*BY_ROW, "negatives")
    return pl.concat([held_negatives, absent]).group_by(BY_ROW).agg(pl.col("negatives").sum())


def passed(round_2: pl.LazyFrame, thresholds: pl.LazyFrame, spurious: pl.LazyFrame) -> pl.LazyFrame:
    """Every valid gram whose noised weight reaches the threshold of its row, held or absent, sorted
    by key."""
    reaches = pl.col("second") >= pl.col("threshold")
    held = round_2.join(thresholds, on=BY_ROW).filter(reaches)
    held = held.select(*RELEASED_COLUMNS)
    return pl.concat([held, spurious.select(*RELEASED_COLUMNS)]).sort("key")
