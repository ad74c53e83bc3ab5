"""DPNE's ladder: where released grams stand, and the candidates among their neighbours."""

from __future__ import annotations

import polars as pl

#: A position is the text's row number times this, and the place in the text.
PLACES = 1 << 26
#: A pair of grams as one integer: left * 2^32 + right.
LEFT = 1 << 32


def texts(tokens_of_rows: pl.LazyFrame) -> pl.LazyFrame:
    """The corpus, tokenised once: one row a text. A text is cut after 2^26 - 1 tokens, so that a
    position fits its row's number and a place within the row."""
    # NULLs go too: no token is one.
    cleaned = tokens_of_rows.with_columns(
        pl.col("tokens").list.eval(pl.element().filter(pl.element() != "")).list.head(PLACES - 1)
    )
    return cleaned.filter(pl.col("tokens").list.len() > 0)


def held_words(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Level 1: the distinct words of all of a user's texts."""
    words = texts.select("user_id", key="tokens").explode("key")
    return words.unique()


def words_of_texts(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Every word and its position: two differ by one just where they are neighbours in a text."""
    numbered = texts.with_row_index("row").with_columns(
        first=pl.col("row").cast(pl.Int64) * PLACES + 1,
        words=pl.col("tokens").list.len().cast(pl.Int64),
    )
    return numbered.select(
        "user_id",
        position=pl.int_ranges("first", pl.col("first") + pl.col("words")),
        key="tokens",
    ).explode("position", "key")


def positions_of_words(texts: pl.LazyFrame, released: pl.LazyFrame) -> pl.LazyFrame:
    """Where the released words stand, in order. released: (key, gram)."""
    words = words_of_texts(texts)
    return words.join(released, on="key", maintain_order="left").select(
        "position", "user_id", "gram"
    )


def out_of_order(positions: pl.LazyFrame) -> pl.LazyFrame:
    """Neighbours are found by reading on, so whether positions are in order is looked at and not
    trusted. Says how often the order goes back."""
    steps = positions.select(goes_back=pl.col("position") <= pl.col("position").shift())
    return steps.select(out_of_order=pl.col("goes_back").sum())


def candidates_both(positions: pl.LazyFrame) -> pl.LazyFrame:
    """Pruning on both sides: a candidate is a gram whose first and whose last k - 1 tokens were
    released: two released grams at neighbouring positions."""
    neighbours = positions.select(
        "position",
        "user_id",
        left_gram=pl.col("gram").cast(pl.Int64),
        right_gram=pl.col("gram").shift(-1).cast(pl.Int64),
        next_position=pl.col("position").shift(-1),
    )
    return neighbours.filter(pl.col("next_position") == pl.col("position") + 1).select(
        "position", "user_id", key=pl.col("left_gram") * LEFT + pl.col("right_gram")
    )


def candidates_single(
    positions: pl.LazyFrame, word_positions: pl.LazyFrame, level: int
) -> pl.LazyFrame:
    """Pruning on a single side: a candidate is a gram whose first k - 1 tokens were released as a
    gram and whose last token was released as a word."""
    last_words = word_positions.select(
        position=pl.col("position") - (level - 1), last_word=pl.col("gram").cast(pl.Int64)
    )
    return positions.join(last_words, on="position", maintain_order="left").select(
        "position", "user_id", key=pl.col("gram").cast(pl.Int64) * LEFT + pl.col("last_word")
    )


def held_grams(candidates: pl.LazyFrame) -> pl.LazyFrame:
    """What each user holds at this level: the distinct candidates of all their texts."""
    return candidates.select("user_id", "key").unique()


def positions_of_grams(candidates: pl.LazyFrame, released: pl.LazyFrame) -> pl.LazyFrame:
    """Where this level's released grams stand: all that the next level needs to see."""
    return candidates.join(released, on="key", maintain_order="left").select(
        "position", "user_id", "gram"
    )
