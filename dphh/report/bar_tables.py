"""Tables of a release for a terminal, a page, a card and a plot: items, their numbers, their bars.

Numbers of users compare across lengths and have one scale. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table and a scale of its own.

Intervals are those of the release's table: an item has one interval, wherever it is shown.

Rows are whole phrases, those that no longer phrase contains: a phrase has one row, and its pieces
are inside it, never above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from dphh.columns import COLUMN_TYPES, OTHER_GROUP
from dphh.report.phrases import is_maximal
from dphh.report.sentences import (
    Manifest,
    Released,
    Tokens,
    are_periods,
    groups_of,
    meaning_of_counts,
    meaning_of_scores,
)
from dphh.wording.lines import with_noun


@dataclass(frozen=True)
class Bar:
    """A number of users with its interval, a score, or neither."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    error: float | None = None

    @property
    def number_text(self) -> str:
        if self.value is None:
            return ""
        if self.low is not None:
            return f"{self.value:,.0f}"
        return f"{self.value:,.1f}" + ("" if self.error is None else f" ± {self.error:,.1f}")

    @property
    def interval_text(self) -> str:
        return "" if self.low is None else f"{self.low:,.0f}–{self.high:,.0f}"


#: The most pieces of rows that a table has: those of its first rows.
MOST_PIECES = 2_000

#: An item, with its bars.
Row = tuple[str, tuple[Bar, ...]]


@dataclass(frozen=True)
class Table:
    """A table to show. It has `count` rows, of which `rows` are the first: items with bars."""

    title: str
    #: What its rows are, as a noun after their number.
    kind: str
    #: The groups whose users a row's bars show; empty if its one bar shows all users.
    groups: tuple[str, ...]
    rows: Sequence[Row]
    count: int
    #: The value at which a bar would fill its column.
    scale: float
    #: The tokens of each row.
    tokens: Sequence[Tokens]
    #: What was released of the pieces of each row, the longest first, and how many tokens it has.
    pieces: Sequence[Sequence[Row]]
    piece_lengths: Sequence[Sequence[int]]

    @property
    def has_pieces(self) -> bool:
        return any(self.pieces)

    def larger_piece(self, row: int) -> Row | None:
        """The longest piece, of two tokens or more, that more people hold than hold the row's
        phrase, as far as intervals show: it is said otherwise, too. None if there are groups."""
        (_, (bar, *others)), tokens = self.rows[row], self.tokens[row]
        if others or bar.high is None:
            return None
        larger = (
            (piece, its_bars)
            for (piece, its_bars), length in zip(
                self.pieces[row], self.piece_lengths[row], strict=True
            )
            if length > 1 and (its_bars[0].low or 0) > bar.high
        )
        return next(larger, None) if len(tokens) > 2 else None


def tables_of(release: Released, most_rows: int) -> list[Table]:
    """The tables of a release, that of the longest items first, of at most `most_rows` rows each.
    Rows are in the order of the lower ends of their intervals, or of scores. They are the items
    that `phrases` has; of a trie, with "…" after those that were cut off."""
    frame = release.to_polars()
    if is_trie := "ended" in frame:
        ends = pl.when("ended").then(pl.lit("")).otherwise(pl.lit("…"))
        frame = frame.filter(is_maximal(frame)).with_columns(pl.col("item") + ends)
    bars = _with_bar_columns(frame)
    is_whole = pl.lit(True) if is_trie else is_maximal(bars.select("tokens"))
    bars = bars.with_columns(is_whole=is_whole)
    people = bars["low"].count() > 0
    # Numbers of users have one table for all phrases (two tokens and more), scores have a table for
    # each length, and items without numbers have one table.
    longest = 2 if people else None if bars["value"].count() else 0
    items = (
        bars.group_by("tokens", maintain_order=True)
        .agg(
            pl.first("item", "is_whole"),
            begins=pl.col("low").sum(),
            total=pl.col("value").sum(),
            bars=pl.struct("group_name", "value", "low", "high", "error"),
            scale=pl.max_horizontal("value", "high").max(),
        )
        .with_columns(length=pl.col("tokens").list.len().clip(upper_bound=longest))
        .sort("begins", "total", "item", descending=[True, True, False])
    )
    groups = _groups_to_show(release.manifest, bars) if people else ()
    whole = items.filter("is_whole")
    tables = []
    for length in whole["length"].unique().sort(descending=True):
        those = whole.filter(length=length)
        shown = those.head(most_rows)
        scale: Any = (whole if people else those)["scale"].max()
        tables.append(
            Table(
                *_title_and_kind(release.manifest, length, people, len(those)),
                groups,
                _rows(shown, groups),
                len(those),
                scale or 1.0,
                [tuple(tokens) for tokens in shown["tokens"].to_list()],
                *_pieces(shown, items, groups, people),
            )
        )
    return tables


def _rows(items: pl.DataFrame, groups: Sequence[str]) -> list[Row]:
    in_order: Sequence[str | None] = groups or (None,)
    return [
        (item, _in_order_of_groups(in_order, bars))
        for item, bars in items.select("item", "bars").iter_rows()
    ]


def _pieces(
    shown: pl.DataFrame, items: pl.DataFrame, groups: Sequence[str], people: bool
) -> tuple[list[list[Row]], list[list[int]]]:
    """For each row that is shown, the items that are runs of its tokens, and their lengths. Scores
    compare within one length only, so a piece has its number of users, or none."""
    items = items.filter(~pl.col("is_whole"))
    parts = [
        (row, tokens[start : start + length])
        for row, tokens in enumerate(shown["tokens"].to_list())
        for length in range(len(tokens) - 1, 0, -1)
        for start in range(len(tokens) - length + 1)
    ]
    asked = pl.DataFrame(parts, {"row": pl.Int64, "tokens": pl.List(pl.String)}, orient="row")
    found = asked.unique(maintain_order=True).join(items, on="tokens", maintain_order="left")
    found = found.head(MOST_PIECES)
    pieces: list[list[Row]] = [[] for _ in range(len(shown))]
    lengths: list[list[int]] = [[] for _ in range(len(shown))]
    for row, tokens, (item, bars) in zip(
        found["row"].to_list(), found["tokens"].to_list(), _rows(found, groups), strict=True
    ):
        pieces[row].append((item, bars if people else (Bar(),)))
        lengths[row].append(len(tokens))
    return pieces, lengths


def _groups_to_show(manifest: Manifest, bars: pl.DataFrame) -> tuple[str, ...]:
    """The groups; without "other" if they are periods, or if none of its numbers stands out of the
    noise, as where all values of a column were declared: is more than two margins above 0."""
    groups = groups_of(manifest)
    stands_out = 2 * pl.col("low") > pl.col("value")
    others = bars.filter(pl.col("group_name") == OTHER_GROUP, stands_out)
    return groups if len(others) and not are_periods(manifest) else groups[:-1] or groups


def meaning_of_numbers(release: Released, tables: Sequence[Table]) -> str:
    """A sentence that says what the numbers in these tables are; empty if there are none."""
    bars = [bar for table in tables for _, bars_of_item in table.rows for bar in bars_of_item]
    if any(bar.low is not None for bar in bars):
        return meaning_of_counts(release.manifest)
    return meaning_of_scores(release.manifest) if any(bar.number_text for bar in bars) else ""


def _with_bar_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with a number of users as value; if users were not counted, all rows, with the score
    as value."""
    every_column = pl.DataFrame(pa.schema([*COLUMN_TYPES.items()]).empty_table())
    frame = pl.concat([frame, every_column], how="diagonal")
    if frame["users"].count() == 0:
        return frame.with_columns(value="score", group_name=None)
    return frame.drop_nulls("users").with_columns(value="users", error=None)


def _in_order_of_groups(
    groups: Sequence[str | None], bars: list[dict[str, Any]]
) -> tuple[Bar, ...]:
    """An item's bars in the order of the groups, with an empty bar for a group that has none."""
    of_group = {bar.pop("group_name"): Bar(**bar) for bar in bars}
    return tuple(of_group.get(group, Bar()) for group in groups)


def _title_and_kind(manifest: Manifest, length: int, people: bool, count: int) -> tuple[str, str]:
    """What is above a table of items of this length; and what its rows are, as a noun."""
    asked = manifest.get("parameters", {})
    content = asked.get("content", {})
    reading, unit = content.get("reading"), content.get("unit")
    if length == 0:
        title, kind = "sequences", "sequence"
    elif reading in (None, "whole") and unit is None:
        title, kind = "items", "item"
    elif people and reading == "words":
        kind = "phrase" if length > 1 else "single word"
        title = f"{kind}s"
    else:
        what = "character" if reading == "characters" or unit == 1 else "token"
        title = with_noun(length, "word" if reading == "words" else what)
        title += " and more" if people and length > 1 else ""
        kind = f"of {title}"
    if not kind.startswith("of ") and count != 1:
        kind += "s"
    return f"{title}, by {asked['by']}" if groups_of(manifest) else title, kind
