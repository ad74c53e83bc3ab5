"""A release as a list to read, and its first k items.

Everything here is post-processing of a release: it costs nothing and changes no guarantee.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from dphh.errors import CONTROL_CHARACTERS, UsageError, escaped
from dphh.report.sentences import Released
from dphh.wording.options import check_whole

#: The characters that control a terminal, each with what is shown in its place.
_ESCAPES = {
    character: escaped(character)
    for character in map(chr, range(0x2070))
    if CONTROL_CHARACTERS.match(character)
}


def phrases(release: Released, *, only_maximal: bool) -> pl.DataFrame:
    """The released rows, longest first; with `only_maximal`, those that `is_maximal` keeps."""
    frame = release.to_polars()
    if only_maximal:
        frame = frame.filter(is_maximal(frame))
    # The rows of one item, of several groups, stay together.
    numbers = [
        pl.col(name).sum().over("tokens") for name in ("users", "score") if name in frame.columns
    ]
    frame = frame.sort(
        pl.col("tokens").list.len(), *numbers, "item",
        descending=[True, *(True for _ in numbers), False], nulls_last=True, maintain_order=True,
    )  # fmt: skip
    return with_visible_controls(frame)


def with_visible_controls(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with characters that control a terminal escaped: Polars prints texts as they
    are."""
    return frame.with_columns(
        pl.col(pl.String).str.replace_many(_ESCAPES),
        pl.col("tokens").list.eval(pl.element().str.replace_many(_ESCAPES)),
    )


def is_maximal(frame: pl.DataFrame) -> pl.Series:
    """For each row, whether no longer phrase of the frame contains it. For a trie: whether it is a
    complete sequence, or a prefix that no row of the frame extends or ends."""
    is_trie = "ended" in frame.columns
    phrases, length = frame.select("tokens"), pl.col("tokens").list.len()
    inside = parts = phrases.clear()
    for tokens in range(phrases.select(length.max()).item() or 0, 1, -1):
        # The parts of one length have all parts of the next, so each part is cut only once.
        longer = pl.concat([phrases.filter(length == tokens), parts]).unique()
        parts = pl.concat(
            longer.select(pl.col("tokens").list.slice(start, tokens - 1))
            for start in ([0] if is_trie else [0, 1])
        )
        inside = pl.concat([inside, parts])
    ended = frame["ended"].fill_null(False) if is_trie else pl.repeat(False, len(frame), eager=True)
    inside = pl.concat([inside, phrases.filter(ended)]).unique().with_columns(inside=True)
    found = phrases.join(inside, on="tokens", how="left", maintain_order="left")
    return ended | found["inside"].is_null()


def top_of(release: Released, k: int) -> Any:
    """The rows of k items: the first of each level, the second of each, and so on. A level's items
    are sorted by their numbers of users, added up over groups, or else by their scores."""
    check_whole("k", k)
    frame = release.to_polars().with_row_index("row")
    by = next(
        (name for name in ("users", "score") if name in frame and frame[name].count() > 0), None
    )
    if by is None:
        if len(frame):
            raise UsageError(
                "top: this release has neither scores nor counts to sort by; run it with counts=, "
                "or run `counts` of it, and take the top of that"
            )
        return release.table
    best = (
        frame.drop_nulls(by)
        .group_by("level", "tokens")
        .agg(pl.first("item"), pl.col(by).sum(), "row")
        .sort("level", by, "item", "tokens", descending=[False, True, False, False])
        .with_columns(turn=pl.int_range(pl.len()).over("level"))
        .sort("turn", "level", maintain_order=True)
        .head(k)
        .sort("level", "turn")
    )
    return release.table.take(best.explode("row")["row"].to_arrow())
