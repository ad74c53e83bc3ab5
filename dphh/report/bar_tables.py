"""Tables of releases for a terminal, a page, a card and a plot: items, their numbers, their bars.

Numbers of users compare across lengths and have one scale. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table and a scale of its own.

What is shown was chosen by its counts, and the largest of a thousand noised counts are largest
because of their noise: an interval that holds by itself with probability 0.95 misses most of them.
Intervals that hold together, over all counts among which a list chose, hold for whatever it chose.
They follow from a release's table and manifest, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dphh.privacy.counts import Weighing, simultaneous_intervals
from dphh.report.counted import PEOPLE, Released, Tokens, by_of, counting_of, groups_of
from dphh.wording.lines import plural

#: The share of a part's users that makes a longer phrase say all that the part says.
NEARLY = 0.8


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


#: The title of what was counted, such as a group, and the bar of each item.
Column = tuple[str, dict[Tokens, Bar]]
EVERYBODY = "all"


@dataclass(frozen=True)
class Row:
    item: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Table:
    """The first of `count` rows, of which `opened` are shown at once."""

    title: str
    #: What the bars of a row are of, such as groups; empty if there is one, of all users.
    columns: tuple[str, ...]
    rows: Sequence[Row]
    opened: int
    count: int
    #: The value of a bar that is as long as its column.
    scale: float


@dataclass(frozen=True)
class Rows:
    """Which rows of a table: up to `most`, `top` of them at once, of `least` tokens or more."""

    top: int
    most: int
    least: int = 1


def tables_of(release: Released, asked: Rows) -> list[Table]:
    """Users, if they were counted; else scores."""
    return people_tables([release], asked) or score_tables(release, asked)


def people_tables(releases: Sequence[Released], asked: Rows) -> list[Table]:
    """Phrases, then single tokens, each with its numbers in every release that counted it.

    They go by where their intervals begin, the highest first. A part of a longer phrase comes last
    where nearly as many hold the longer one.
    """
    columns = [column for release in releases for column in counted_columns(release)]
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
    scale = _scale([bar.high or 0.0 for bars in counts.values() for bar in bars])
    titles = tuple(title for title, _ in columns)
    grouped = [each.manifest for each in releases if "group" in each.table.column_names]
    by = f", by {by_of(grouped[0])}" if grouped else ""
    tables = []
    for phrases, name in (
        (True, f"{name_of_length(releases[0], 2)} and more"),
        (False, name_of_length(releases[0], 1)),
    ):
        those = [of for of in order if (len(of) > 1) == phrases and len(of) >= asked.least]
        opened = min(asked.top, sum(of not in last for of in those))
        rows = [Row(texts[of], counts[of]) for of in those[: asked.most]]
        if rows:
            shown = titles if len(titles) > 1 else ()
            tables.append(Table(name + by, shown, rows, opened, len(those), scale))
    return tables


def counted_columns(release: Released) -> list[Column]:
    """The numbers of users of a release, of all users or of each group, with intervals that hold
    together over all that it counted; none if it counted no users."""
    manifest, table = release.manifest, release.table
    if not set(PEOPLE) <= set(table.column_names):
        return []
    names = [name for name in ("tokens", "group", *PEOPLE) if name in table.column_names]
    rows = [row for row in table.select(names).to_pylist() if row["users"] is not None]
    ends = [(row["low"], row["high"]) for row in rows]
    counting = counting_of(manifest)
    if rows and not counting["simultaneous"]:
        ends = _widened([row["users"] for row in rows], counting)
    columns: dict[str, dict[Tokens, Bar]] = {
        group: {} for group in groups_of(table, manifest) or (EVERYBODY,)
    }
    for row, (low, high) in zip(rows, ends, strict=True):
        bar = Bar(f"{row['users']:,.0f}", row["users"], low, high)
        columns[row.get("group", EVERYBODY)][tuple(row["tokens"])] = bar
    return [column for column in columns.items() if rows]


def _widened(users: list[int], counting: Mapping[str, Any]) -> list[tuple[int, int]]:
    weighing = Weighing(counting["keys"], counting["max_items"], counting["grid_bits"])
    found = simultaneous_intervals(
        np.array(users, np.int64),
        np.array(counting["lost_grid"], np.int64),
        weighing,
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
        for part in parts_of(longer) & counts.keys()
        if len(part) > 1 and _users(bars) >= NEARLY * _users(counts[part])
    }


def _begin(bars: tuple[Bar, ...]) -> float:
    """Where an item's intervals begin, summed over columns: a user in several adds to each."""
    return sum(bar.low or 0.0 for bar in bars)


def _users(bars: tuple[Bar, ...]) -> float:
    return sum(bar.value or 0.0 for bar in bars)


def parts_of(tokens: Tokens) -> set[Tokens]:
    """All shorter contiguous parts of a phrase."""
    length = len(tokens)
    return {
        tokens[start:stop]
        for start in range(length)
        for stop in range(start + 1, length + 1)
        if stop - start < length
    }


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
        opened = min(asked.top, int(those["ended"].sum()) or asked.top)
        rows = [
            Row(row["item"], (_bar_of_score(row),))
            for row in those.head(asked.most).iter_rows(named=True)
        ]
        title = "sequences" if length is None else name_of_length(release, length)
        if rows:
            scale = _scale(those["score"].drop_nulls().to_list())
            tables.append(Table(title, (), rows, opened, len(those), scale))
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
    return plural(length, what)


def _texts(release: Released) -> dict[Tokens, str]:
    rows = release.table.select(["tokens", "item"]).to_pylist()
    return {tuple(row["tokens"]): row["item"] for row in rows}


def _scale(values: Sequence[float]) -> float:
    return max(values, default=0.0) or 1.0


def _bar_of_score(row: dict[str, Any]) -> Bar:
    if row["score"] is None:
        return Bar("" if row["ended"] else "goes on")
    error = "" if row["error"] is None else f" ± {row['error']:,.1f}"
    return Bar(f"{row['score']:,.1f}{error}", row["score"])
