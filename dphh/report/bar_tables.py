"""Tables of a release for a terminal, a page, a card and a plot: items, their numbers, their bars.

Numbers of users compare across lengths and have one scale. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table and a scale of its own.
If users were counted within groups, each item has one bar per group. The total over groups was not
counted and is never shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dphh.report.people import Count, People, Released, Tokens, people_of


@dataclass(frozen=True)
class Bar:
    """A number of users with its interval, a score, or a word in their place."""

    said: str
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> str:
        return "" if self.low is None else f"{self.low:,.0f}–{self.high:,.0f}"


@dataclass(frozen=True)
class Row:
    item: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Table:
    """The first rows; how many more there are, and as many of these as were asked for."""

    title: str
    groups: tuple[str, ...]
    first: Sequence[Row]
    rest: Sequence[Row]
    more: int
    #: The value of a bar that is as long as its column.
    scale: float

    def cut(self, top: int) -> Table:
        more = self.more + max(0, len(self.first) - top)
        return replace(self, first=self.first[:top], rest=(), more=more)


@dataclass(frozen=True)
class Rows:
    """Which rows of a table: the first `top`, up to `rest` more, of `least` tokens or more each."""

    top: int
    rest: int = 0
    least: int = 1


def tables_of(release: Released, asked: Rows) -> list[Table]:
    """Users, if they were counted; else scores."""
    return people_tables(release, asked) or score_tables(release, asked)


def people_tables(release: Released, asked: Rows) -> list[Table]:
    """Phrases, then single tokens, by where their intervals begin, the highest first.

    Of more than `top` only those come first that stand out of the noise: an interval begins above
    0. A part of a longer phrase is among the rest where nearly as many hold the longer one.
    """
    people, texts = people_of(release), _texts(release)
    parts = _redundant(release, people)
    scale = _scale(count.high for each in people.counts.values() for count in each)
    by = "" if people.groups is None else f", by {people.by}"
    order = sorted(people.counts, key=lambda of: (*people.rank(of), -len(of), texts[of]))
    tables = []
    for several in (True, False):
        those = [of for of in order if (len(of) > 1) == several and len(of) >= asked.least]
        first = [of for of in those if of not in parts]
        if len(first) > asked.top:  # what is all shown was not chosen
            first = [of for of in first if people.stands_out(of)][: asked.top]
        opened = set(first)
        rest = [of for of in those if of not in opened]
        title = f"{name_of_length(release, 2)} and more" if several else name_of_length(release, 1)
        best, others = (
            [Row(texts[of], tuple(map(_bar_of_count, people.counts[of]))) for of in each]
            for each in (first, rest[: asked.rest])
        )
        if those:
            groups = people.groups or ()
            tables.append(Table(title + by, groups, best, others, len(rest), scale))
    return tables


def group_tables(release: Released, asked: Rows) -> list[Table]:
    """What stands out of the noise in each group: phrases, or single tokens if nothing longer was
    counted. Empty if nothing was counted within groups."""
    people, texts = people_of(release), _texts(release)
    if people.groups is None:
        return []
    parts = _redundant(release, people)
    whole = [of for of in people.counts if of not in parts]
    long = [of for of in whole if len(of) > 1 and len(of) >= asked.least] or whole
    scale = _scale(count.high for each in people.counts.values() for count in each)
    tables = []
    for place, group in enumerate(people.groups):
        counts = [(people.counts[of][place], texts[of]) for of in long]
        clear = [(-count.low, -count.users, text, count) for count, text in counts if count.low > 0]
        rows = [
            Row(text, (_bar_of_count(count),)) for *_, text, count in sorted(clear)[: asked.top]
        ]
        tables.append(Table(f"{people.by}: {group}", (), rows, (), 0, scale))
    return tables


def score_tables(release: Released, asked: Rows, without: Collection[Tokens] = ()) -> list[Table]:
    """The items of each length by score, the longest first. Of a trie the sequences that end come
    first, and without scores all lengths are in one table. `without`: what is shown elsewhere."""
    names = [name for name in ("score", "error", "ended") if name in release.table.column_names]
    found = pl.from_arrow(release.table.select(["item", "tokens", *names]))
    assert isinstance(found, pl.DataFrame)
    new = [pl.lit(None, pl.Float64).alias(name) for name in ("score", "error") if name not in names]
    new += [pl.lit(True).alias("ended")] if "ended" not in names else []
    # A sequence that ends has a row as a beginning too; an item in groups, a row in each.
    frame = (
        found.with_columns(*new, length=pl.col("tokens").list.len())
        .filter(pl.col("length") >= asked.least)
        .sort(~pl.col("ended"), "score", "item", descending=[False, True, False], nulls_last=True)
        .unique("tokens", keep="first", maintain_order=True)
    )
    if without:
        keep = [tuple(tokens) not in without for tokens in frame["tokens"].to_list()]
        frame = frame.filter(pl.Series(keep, dtype=pl.Boolean))
    scored = frame["score"].null_count() < len(frame)
    tables = []
    for length in frame["length"].unique().sort(descending=True) if scored else [None]:
        those = frame if length is None else frame.filter(pl.col("length") == length)
        first = min(asked.top, int(those["ended"].sum()) or asked.top)
        rows = [
            Row(row["item"], (_bar_of_score(row),))
            for row in those.head(first + asked.rest).iter_rows(named=True)
        ]
        title = "sequences" if length is None else name_of_length(release, length)
        more, scale = len(those) - len(rows[:first]), _scale(those["score"].drop_nulls())
        if rows:
            tables.append(Table(title, (), rows[:first], rows[first:], more, scale))
    return tables


def name_of_length(release: Released, length: int) -> str:
    content = release.manifest.get("parameters", {}).get("content", {})
    verb, reading = release.manifest["verb"], content.get("reading")
    if verb == "items" and reading in (None, "whole"):
        return "items"
    what = "token"
    if reading == "words":
        what = "word"
    elif reading == "characters" or content.get("unit") == 1:
        what = "character"
    return f"{length:,} {what}{'' if length == 1 else 's'}"


def _texts(release: Released) -> dict[Tokens, str]:
    rows = release.table.select(["tokens", "item"]).to_pylist()
    return {tuple(row["tokens"]): row["item"] for row in rows}


def _redundant(release: Released, people: People) -> set[Tokens]:
    """Phrases that a longer one makes redundant. In a trie, no sequence is part of another."""
    if "ended" in release.table.column_names:
        return set()
    return {part for part in people.redundant_parts() if len(part) > 1}


def _scale(values: Any) -> float:
    return max(values, default=0.0) or 1.0


def _bar_of_count(count: Count) -> Bar:
    return Bar(f"{count.users:,.0f}", *count)


def _bar_of_score(row: dict[str, Any]) -> Bar:
    if row["score"] is None:
        return Bar("" if row["ended"] else "goes on")
    error = "" if row["error"] is None else f" ± {row['error']:,.1f}"
    return Bar(f"{row['score']:,.1f}{error}", row["score"])
