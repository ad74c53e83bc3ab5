"""Tables of a release for a terminal, a page, a card and a plot: items, their numbers, their bars.

Numbers of users compare across lengths and have one scale. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table and a scale of its own.
If users were counted within groups, each item has one bar per group. The total over groups was not
counted and is never shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

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
    """The first rows, and the rest: a table of people has all of its rows in one or the other."""

    title: str
    groups: tuple[str, ...]
    first: Sequence[Row]
    rest: Sequence[Row]
    #: The value of a bar that is as long as its column.
    scale: float


def tables_of(
    release: Released, top: int, least: int = 1, without: Collection[Tokens] = ()
) -> list[Table]:
    """Users, if they were counted; else scores. The first `top` rows of each table are those to
    read first. Left out: items of fewer than `least` tokens, and, of scores, those in `without`."""
    return people_tables(release, top, least) or score_tables(release, top, least, without)


def people_tables(release: Released, top: int, least: int = 1) -> list[Table]:
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
        those = [of for of in order if (len(of) > 1) == several and len(of) >= least]
        first = [of for of in those if of not in parts]
        if len(first) > top:  # what is all shown was not chosen
            first = [of for of in first if people.stands_out(of)][:top]
        rows = {of: Row(texts[of], tuple(map(_bar_of_count, people.counts[of]))) for of in those}
        title = f"{name_of_length(release, 2)} and more" if several else name_of_length(release, 1)
        if those:
            best = [rows.pop(of) for of in first]
            rest = list(rows.values())
            tables.append(Table(title + by, people.groups or (), best, rest, scale))
    return tables


def group_tables(release: Released, top: int, least: int = 1) -> list[Table]:
    """What stands out of the noise in each group: phrases, or single tokens if nothing longer was
    counted. Empty if nothing was counted within groups."""
    people, texts = people_of(release), _texts(release)
    parts = _redundant(release, people)
    whole = [of for of in people.counts if of not in parts]
    long = [of for of in whole if len(of) > 1 and len(of) >= least] or whole
    scale = _scale(count.high for each in people.counts.values() for count in each)
    tables = []
    for place, group in enumerate(people.groups or ()):
        counts = [(people.counts[of][place], texts[of]) for of in long]
        clear = [(-count.low, -count.users, text, count) for count, text in counts if count.low > 0]
        rows = [Row(text, (_bar_of_count(count),)) for *_, text, count in sorted(clear)[:top]]
        tables.append(Table(f"{people.by}: {group}", (), rows, (), scale))
    return tables


def score_tables(
    release: Released, top: int, least: int = 1, without: Collection[Tokens] = ()
) -> list[Table]:
    """The items of each length by score, the longest first. Of a trie the sequences that end come
    first, and without scores all lengths are in one table."""
    there: dict[Tokens, dict[str, Any]] = {}
    for row in sorted(release.table.to_pylist(), key=_place_of_score):
        there.setdefault(tuple(row["tokens"]), row)  # a sequence that ends has a row as a beginning
    left = {of: row for of, row in there.items() if len(of) >= least and of not in without}
    scored = any(row.get("score") is not None for row in left.values())
    tables = []
    for length in sorted({len(of) if scored else 0 for of in left}, reverse=True):
        those = [row for of, row in left.items() if length in (0, len(of))]
        rows = [Row(row["item"], (_bar_of_score(row),)) for row in those]
        ends = sum(row.get("ended") is not False for row in those)
        first = min(top, ends or top)
        title = name_of_length(release, length) if scored else "sequences"
        scale = _scale(row.get("score") or 0.0 for row in those)
        tables.append(Table(title, (), rows[:first], rows[first:], scale))
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
        what = "byte" if content.get("characters") == "bytes" else "character"
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


def _place_of_score(row: dict[str, Any]) -> tuple[bool, float, str]:
    score = row.get("score")
    return row.get("ended") is False, float("inf") if score is None else -score, row["item"]


def _bar_of_count(count: Count) -> Bar:
    return Bar(f"{count.users:,.0f}", *count)


def _bar_of_score(row: dict[str, Any]) -> Bar:
    if row.get("score") is None:
        return Bar("goes on" if row.get("ended") is False else "")
    error = "" if row.get("error") is None else f" ± {row['error']:,.1f}"
    return Bar(f"{row['score']:,.1f}{error}", row["score"])
