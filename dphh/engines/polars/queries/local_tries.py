"""LDP TrieHH: the words on devices, and what the devices of one level report."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def ldp_local_words(tokens_of_rows: pl.LazyFrame, characters: Sequence[str]) -> pl.LazyFrame:
    """Every user's distinct words, with the number of the user's rows that hold each. A word has
    one code point per character; a word with a character outside the set becomes NULL."""
    codes = [chr(number + 1) for number in range(len(characters))]
    spelled = tokens_of_rows.select(
        "user_id",
        codes=pl.col("tokens").list.eval(
            pl.element()
            .filter(pl.element() != "")
            .replace_strict(list(characters), codes, default=None, return_dtype=pl.String)
        ),
    )
    words = spelled.select(
        "user_id",
        word=pl.when(pl.col("codes").list.len() > 0).then(
            pl.col("codes").list.join("", ignore_nulls=False)
        ),
    )
    return words.group_by("user_id", "word").agg(times=pl.len().cast(pl.Int64))


def ldp_words_in_seats(local_words: pl.LazyFrame, seats: pl.LazyFrame) -> pl.LazyFrame:
    """The words of users who have a seat, by seat; from here on the seat replaces the user id."""
    return local_words.drop_nulls("word").join(seats, on="user_id").select("seat", "word", "times")


def next_prefixes(
    words_in_seats: pl.LazyFrame,
    prefixes: pl.LazyFrame,
    known: pl.LazyFrame,
    seats: tuple[int, int],
    level: int,
    characters: int,
) -> pl.LazyFrame:
    """The next prefixes that each of the level's users holds, and how many rows hold them."""
    first, last = seats
    words = words_in_seats.filter(pl.col("seat") > first, pl.col("seat") <= last).join(
        known, on="word", how="anti"
    )
    codes = [chr(number + 1) for number in range(characters)]
    following = pl.col("word").str.slice(level, 1)
    number = following.replace_strict(["", *codes], [characters, *range(characters)])
    return (
        words.with_columns(prefix=pl.col("word").str.slice(0, level), number=number)
        .join(prefixes, on="prefix")
        .group_by("seat", value=pl.col("value") + pl.col("number"))
        .agg(pl.col("times").sum())
    )


def ldp_choice(draws: pl.LazyFrame, contributions: int, greedy: bool) -> pl.LazyFrame:
    """At most `contributions` of the next prefixes that a user holds, in random order of `draw`."""
    rank = -pl.col("times") if greedy else pl.lit(0)
    return (
        draws.sort("seat", rank, "draw", "value")
        .with_columns(report=pl.int_range(1, pl.len() + 1).over("seat"))
        .filter(pl.col("report") <= contributions)
        .select("seat", "report", "value")
    )


def ldp_kept(reports: pl.LazyFrame, values: int, keep: int) -> pl.LazyFrame:
    """The values that the most reports contain, which grow on the trie; of those that tie, the
    first (the paper keeps all of them)."""
    of_prefixes = reports.filter(pl.col("value") < values, pl.col("reports") > 0)
    return of_prefixes.sort("reports", "value", descending=[True, False]).head(keep)
