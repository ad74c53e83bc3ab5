"""A release as a list to read, without parts of longer phrases and without filler.

Everything here is post-processing of a release: it costs nothing and changes no guarantee.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from dphh.errors import UsageError
from dphh.report.people import parts_of
from dphh.report.readable import readable
from dphh.report.released import Released

#: A token that is a number: digits, with punctuation and symbols.
NUMBER = r"^[\p{N}\p{P}\p{S}]*\p{N}[\p{N}\p{P}\p{S}]*$"


def phrases(
    release: Released,
    *,
    maximal: bool = True,
    stop_words: Collection[str] = (),
    numbers: bool = True,
) -> pl.DataFrame:
    """The released rows that are worth reading, longest first."""
    if isinstance(stop_words, str):
        raise UsageError(f"stop_words: found the text {stop_words!r}; give a list of words")
    filler = pl.element().str.to_lowercase().is_in([word.lower() for word in stop_words])
    if not numbers:
        filler = filler | pl.element().str.contains(NUMBER)
    frame = _with_score_column(release)
    if maximal:
        frame = frame.filter(_is_maximal(frame))
    return readable(
        frame.filter(~pl.col("tokens").list.eval(filler).list.all()).sort(
            pl.col("tokens").list.len(), "score", "item",
            descending=[True, True, False], nulls_last=True, maintain_order=True,
        )
    )  # fmt: skip


def _is_maximal(frame: pl.DataFrame) -> pl.Series:
    """Whether a row is part of no longer phrase; in a trie, if it ends or cannot be continued."""
    all_tokens = [tuple(tokens) for tokens in frame["tokens"].to_list()]
    inside: set[tuple[str, ...]] = set()
    of_trie = "ended" in frame.columns
    for tokens in set(all_tokens):
        beginnings = (tokens[:stop] for stop in range(1, len(tokens)))
        inside.update(beginnings if of_trie else parts_of(tokens))
    alone = pl.Series([tokens not in inside for tokens in all_tokens], dtype=pl.Boolean)
    return _drop_prefix_rows(frame, alone) if of_trie else alone


def _drop_prefix_rows(frame: pl.DataFrame, alone: pl.Series) -> pl.Series:
    """Drop the prefix row of a sequence that also has a row saying that it ends there."""
    ended = frame["ended"].fill_null(False)
    complete = frame.select(
        pl.col("tokens")
        .list.join("\0")
        .is_in(frame.filter(ended)["tokens"].list.join("\0").implode())
    ).to_series()
    return ended | (alone & ~complete)


def _with_score_column(release: Released) -> pl.DataFrame:
    """The table, with a score column of NULLs if it has none."""
    frame = release.to_polars()
    if "score" in frame.columns:
        return frame
    return frame.with_columns(score=pl.lit(None, pl.Float64))
