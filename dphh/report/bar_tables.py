"""Tables of a release for a terminal, a page, a card and a plot: items, their numbers, their bars.

Numbers of users compare across lengths and have one scale. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table and a scale of its own.

Intervals are those of the release's table: an item has one interval, wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from dphh.columns import COLUMN_TYPES
from dphh.report.phrases import is_maximal
from dphh.report.sentences import (
    Manifest,
    Released,
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


@dataclass(frozen=True)
class Table:
    """A table to show. It has `count` rows, of which `rows` are the first: items with bars."""

    title: str
    #: The groups whose users a row's bars show; empty if its one bar shows all users.
    groups: tuple[str, ...]
    rows: Sequence[tuple[str, tuple[Bar, ...]]]
    count: int
    #: The value at which a bar would fill its column.
    scale: float


def tables_of(release: Released, most_rows: int) -> list[Table]:
    """The tables of a release, that of the longest items first, of at most `most_rows` rows each.
    Rows are in the order of the lower ends of their intervals, or of scores. Those of a trie are
    the sequences that `phrases` has, with "…" after those that were cut off."""
    frame = release.to_polars()
    if "ended" in frame:
        ends = pl.when("ended").then(pl.lit("")).otherwise(pl.lit("…"))
        frame = frame.filter(is_maximal(frame)).with_columns(pl.col("item") + ends)
    bars = _with_bar_columns(frame)
    people = bars["low"].count() > 0
    # Numbers of users have one table for all phrases (two tokens and more), scores have a table for
    # each length, and items without numbers have one table.
    longest = 2 if people else None if bars["value"].count() else 0
    items = (
        bars.group_by("tokens", maintain_order=True)
        .agg(
            pl.first("item"),
            begins=pl.col("low").sum(),
            total=pl.col("value").sum(),
            bars=pl.struct("group", "value", "low", "high", "error"),
            scale=pl.max_horizontal("value", "high").max(),
        )
        .with_columns(length=pl.col("tokens").list.len().clip(upper_bound=longest))
        .sort("begins", "total", "item", descending=[True, True, False])
    )
    groups = groups_of(release.manifest) if people else ()
    tables = []
    for length in items["length"].unique().sort(descending=True):
        those = items.filter(length=length)
        rows = those.head(most_rows).select("item", "bars").iter_rows()
        scale: Any = (items if people else those)["scale"].max()
        tables.append(
            Table(
                _title_of_table(release.manifest, length, longer_too=people and length > 1),
                groups,
                [(item, _in_order_of_groups(groups or (None,), bars)) for item, bars in rows],
                len(those),
                scale or 1.0,
            )
        )
    return tables


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
        return frame.with_columns(value="score", group=None)
    return frame.drop_nulls("users").with_columns(value="users", error=None)


def _in_order_of_groups(
    groups: Sequence[str | None], bars: list[dict[str, Any]]
) -> tuple[Bar, ...]:
    """An item's bars in the order of the groups, with an empty bar for a group that has none."""
    of_group = {bar.pop("group"): Bar(**bar) for bar in bars}
    return tuple(of_group.get(group, Bar()) for group in groups)


def _title_of_table(manifest: Manifest, length: int, *, longer_too: bool) -> str:
    asked = manifest.get("parameters", {})
    content = asked.get("content", {})
    reading, unit = content.get("reading"), content.get("unit")
    if length == 0:
        title = "sequences"
    elif reading in (None, "whole") and unit is None:
        title = "items"
    else:
        what = "character" if reading == "characters" or unit == 1 else "token"
        title = with_noun(length, "word" if reading == "words" else what)
    title += " and more" if longer_too else ""
    return f"{title}, by {asked['by']}" if groups_of(manifest) else title
