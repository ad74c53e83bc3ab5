"""Tables of releases for a terminal, a page, a card and a plot: items, their numbers, their bars.

Numbers of users compare across lengths and have one scale. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table and a scale of its own.

What is shown was chosen by its counts, and the largest of a thousand noised counts are largest
because of their noise: an interval that holds by itself with probability 0.95 misses most of them.
Intervals that hold together, over all counts among which a list chose, hold for whatever it chose.
They follow from a release's table and manifest, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dphh.privacy.counts import Weighing, simultaneous_intervals
from dphh.report.sentences import Released, Tokens, counting_of, groups_of
from dphh.wording.lines import plural

#: The share of a part's users that makes a longer phrase say all that the part says.
NEARLY = 0.8
EVERYBODY = "all"


@dataclass(frozen=True)
class Bar:
    """A number of users with its interval, a score, or a word in their place."""

    said: str = ""
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
    """The first of `count` rows, of which the first `telling` are worth showing at once."""

    title: str
    #: What the bars of a row are of, such as groups; empty if there is one, of all users.
    columns: tuple[str, ...]
    rows: Sequence[Row]
    telling: int
    count: int
    #: The value of a bar that is as long as its column.
    scale: float


def tables_of(release: Released, most: int) -> list[Table]:
    """Users, if they were counted; else scores."""
    return people_tables([release], most) or score_tables(release, most)


def people_tables(releases: Sequence[Released], most: int, least: int = 1) -> list[Table]:
    """Phrases of `least` tokens and more, then single tokens, each with its numbers in every
    release that counted it.

    They go by where their intervals begin, the highest first. A part of a longer phrase comes last
    where nearly as many hold the longer one.
    """
    columns = [column for release in releases for column in counted_columns(release).items()]
    texts = {of: text for release in releases for of, text in _texts(release).items()}
    counts = {
        of: tuple(bars.get(of, Bar()) for _, bars in columns)
        for of in dict.fromkeys(of for _, bars in columns for of in bars)
    }
    last = _redundant(counts) if "ended" not in releases[0].table.column_names else set()
    order = sorted(
        counts,
        key=lambda of: (of in last, -_begin(counts[of]), -_users(counts[of]), -len(of), texts[of]),
    )
    scale = max((bar.high or 0.0 for bars in counts.values() for bar in bars), default=0.0) or 1.0
    titles = tuple(title for title, _ in columns)
    by = [each.manifest["parameters"]["by"] for each in releases if groups_of(each.manifest)]
    tables = []
    for length, more in ((2, " and more"), (1, "")):
        those = [of for of in order if min(len(of), 2) == length and len(of) >= least]
        if those:
            rows = [Row(texts[of], counts[of]) for of in those[:most]]
            title = name_of_length(releases[0], length) + more + (f", by {by[0]}" if by else "")
            shown = titles if len(titles) > 1 else ()
            telling = sum(of not in last for of in those)
            tables.append(Table(title, shown, rows, telling, len(those), scale))
    return tables


def counted_columns(release: Released) -> dict[str, dict[Tokens, Bar]]:
    """The numbers of users of a release, of all users or of each group, with intervals that hold
    together over all that it counted; none if it counted no users."""
    if "users" not in release.table.column_names:
        return {}
    rows = [row for row in release.table.to_pylist() if row["users"] is not None]
    ends = [(row["low"], row["high"]) for row in rows]
    counting = counting_of(release.manifest)
    if rows and not counting["simultaneous"]:
        ends = _widened([row["users"] for row in rows], counting)
    groups = groups_of(release.manifest) or (EVERYBODY,)
    columns: dict[str, dict[Tokens, Bar]] = {group: {} for group in groups if rows}
    for row, (low, high) in zip(rows, ends, strict=True):
        bar = Bar(f"{row['users']:,.0f}", row["users"], low, high)
        columns[row.get("group", EVERYBODY)][tuple(row["tokens"])] = bar
    return columns


def _widened(users: list[int], counting: Mapping[str, Any]) -> list[tuple[int, int]]:
    found = simultaneous_intervals(
        np.array(users, np.int64),
        np.array(counting["lost_grid"], np.int64),
        Weighing(counting["keys"], counting["max_items"], counting["grid_bits"]),
        counting["sigma_grid"],
        counting["confidence"],
    )
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))


def _redundant(counts: Mapping[Tokens, tuple[Bar, ...]]) -> set[Tokens]:
    """Phrases within longer ones that nearly as many hold: the longer one says it all."""
    return {
        part
        for longer, bars in counts.items()
        if any(bar.low for bar in bars)  # noise alone hides nothing
        for part in parts_of(longer)
        if len(part) > 1 and part in counts and _users(bars) >= NEARLY * _users(counts[part])
    }


def _begin(bars: tuple[Bar, ...]) -> float:
    """Where an item's intervals begin, summed over columns: a user in several adds to each."""
    return sum(bar.low or 0.0 for bar in bars)


def _users(bars: tuple[Bar, ...]) -> float:
    return sum(bar.value or 0.0 for bar in bars)


def parts_of(tokens: Tokens) -> Iterator[Tokens]:
    """All shorter contiguous parts of a phrase."""
    for length in range(1, len(tokens)):
        for start in range(len(tokens) - length + 1):
            yield tokens[start : start + length]


def score_tables(
    release: Released, most: int, least: int = 1, without: Collection[Tokens] = ()
) -> list[Table]:
    """The items of each length by score, the longest first. Of a trie the sequences that end come
    first, and without scores all lengths are in one table. `without`: what is shown elsewhere."""
    frame = release.to_polars()
    unsaid = {"score": None, "error": None, "ended": True}
    # A sequence that ends has a row as a beginning too; an item in groups, a row in each.
    frame = (
        frame.with_columns(
            *(pl.lit(value).alias(name) for name, value in unsaid.items() if name not in frame),
            length=pl.col("tokens").list.len(),
        )
        .filter(pl.col("length") >= least)
        .sort(~pl.col("ended"), "score", "item", descending=[False, True, False], nulls_last=True)
        .unique("tokens", keep="first", maintain_order=True)
    )
    if without:
        frame = frame.filter([tuple(tokens) not in without for tokens in frame["tokens"]])
    scored = frame["score"].count() > 0
    tables = []
    for length in frame["length"].unique().sort(descending=True) if scored else [None]:
        those = frame if length is None else frame.filter(pl.col("length") == length)
        if len(those):
            rows = [
                Row(row["item"], (_bar_of_score(row),))
                for row in those.head(most).iter_rows(named=True)
            ]
            title = "sequences" if length is None else name_of_length(release, length)
            telling = int(those["ended"].sum()) or len(those)
            scale = max(those["score"].drop_nulls(), default=0.0) or 1.0
            tables.append(Table(title, (), rows, telling, len(those), scale))
    return tables


def _bar_of_score(row: dict[str, Any]) -> Bar:
    if row["score"] is None:
        return Bar("" if row["ended"] else "goes on")
    error = "" if row["error"] is None else f" ± {row['error']:,.1f}"
    return Bar(f"{row['score']:,.1f}{error}", row["score"])


def name_of_length(release: Released, length: int) -> str:
    content = release.manifest.get("parameters", {}).get("content", {})
    verb, reading = release.manifest["verb"], content.get("reading")
    if verb == "items" and reading in (None, "whole"):
        return "items"
    what = "character" if content.get("unit") == 1 else "token"
    return plural(length, {"words": "word", "characters": "character"}.get(reading, what))


def _texts(release: Released) -> dict[Tokens, str]:
    rows = release.table.select(["tokens", "item"]).to_pylist()
    return {tuple(row["tokens"]): row["item"] for row in rows}
