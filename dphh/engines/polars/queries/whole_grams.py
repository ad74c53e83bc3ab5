"""N-grams spelled out, without any pruning: for the paper's baselines and for exact counts."""

from __future__ import annotations

import polars as pl

from dphh.engines.polars.queries.ladder import words_of_texts

SEPARATOR = "\x1f"


def words_in_order(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Every word where it stands, spelled out and in order; at first each is its own gram.

    Longer grams join their words by the unit separator, so that is written otherwise inside one.
    """
    words = words_of_texts(texts)
    written = words.select(
        "position",
        "user_id",
        word=pl.col("key")
        .str.replace_all("\\", "\\\\", literal=True)
        .str.replace_all(SEPARATOR, "\\s", literal=True),
    )
    return written.with_columns(gram="word")


def longer_grams(grams: pl.LazyFrame, length: int) -> pl.LazyFrame:
    """Every gram, longer by the word that follows it in its text; NULL where the text has ended."""
    ahead = grams.with_columns(
        last_word=pl.col("word").shift(1 - length),
        last_position=pl.col("position").shift(1 - length),
    )
    return ahead.select(
        "position",
        "user_id",
        "word",
        gram=pl.when(pl.col("last_position") == pl.col("position") + (length - 1)).then(
            pl.col("gram") + SEPARATOR + pl.col("last_word")
        ),
    )


def held_whole_grams(grams: pl.LazyFrame) -> pl.LazyFrame:
    """The distinct grams of one length that each user holds, no matter what was released."""
    return grams.filter(pl.col("gram").is_not_null()).select("user_id", key="gram").unique()


def exact_counts(held: pl.LazyFrame, at_least: int) -> pl.LazyFrame:
    """How many users hold each key, exactly: for the owner's eyes, never for a release."""
    counts = held.group_by("key").agg(users=pl.len().cast(pl.Int64))
    return counts.filter(pl.col("users") >= at_least).sort("users", "key", descending=[True, False])
