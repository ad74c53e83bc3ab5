"""Tables of a release for a terminal, a page, a card and a plot: what was found, with its numbers.

Numbers of users compare across lengths and have one table. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table of its own.

Intervals are those of the release's table: an item has one interval, wherever it is shown. Only
groups have one more number, of all of them together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, groupby

import polars as pl
import pyarrow as pa

from dphh.columns import COLUMN_TYPES, OTHER_GROUP
from dphh.privacy.changes import has_most, total
from dphh.report.counting import noised_counts
from dphh.report.phrases import Found, found_in, is_maximal
from dphh.report.sentences import (
    Manifest,
    Released,
    are_periods,
    counting_of,
    groups_of,
    is_weak,
    joiner_of,
    meaning_of_counts,
    meaning_of_scores,
    range_in_words,
)
from dphh.report.wordings import Tokens, Wording
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


#: What the column of all groups together is called.
TOGETHER = "all together"
Bars = tuple[Bar, ...]


@dataclass(frozen=True)
class Row:
    """What people say, with bars in the order of the groups."""

    wording: str
    #: The released item in it that the bars are of.
    tokens: Tokens
    bars: Bars
    #: Other released items that say nearly the same and have no row.
    variations: Sequence[str]
    #: The group that has more than half of its people; "" if none clearly has.
    place: str
    #: Whether its wording has words around that item.
    is_part: bool


@dataclass(frozen=True)
class Table:
    """A table to show. It has `count` rows, of which `rows` are the first."""

    title: str
    #: What its rows are, as a noun after their number.
    kind: str
    #: The groups whose users a row's bars show; None is all people.
    groups: tuple[str | None, ...]
    rows: Sequence[Row]
    count: int
    #: The value at which a bar would fill its column.
    scale: float
    #: Whether it has what the table before it leaves over.
    is_aside: bool
    #: The column of the groups; "" if there is none, or if they are periods.
    by: str = ""

    @property
    def is_folded(self) -> bool:
        """Whether a page folds it: what is no phrase."""
        return self.is_aside and not self.kind.startswith("further")

    @property
    def names(self) -> tuple[str, ...]:
        names = (TOGETHER if group is None else group for group in self.groups)
        return tuple(named(self.by, [name]) for name in names)

    def highest(self, place: int) -> Mapping[str, str]:
        """This column's highest numbers of people, if they are clearly above 0. Of a group: the
        highest, and all whose ranges overlap with its."""
        every = [(row.bars[place], row.wording) for row in self.rows]
        ranked = sorted(
            (is_weak(bar.low, bar.high), -(bar.value or 0), bar.low or 0, bar.high or 0, text)
            for bar, text in every if bar.low is not None
        )  # fmt: skip
        if not ranked or ranked[0][0]:  # none is clearly above 0
            return {}
        _, _, low_of_highest, *_ = ranked[0]
        return {
            text: range_in_words(low, high) if weak else f"{-number:,.0f}"
            for weak, number, low, high, text in ranked
            if (high >= low_of_highest if self.by else not weak)
        }

    @property
    def smallest(self) -> int:
        """The smallest number of people of its rows that is clearly above 0; else 0."""
        if self.groups[0] is not None or self.count > len(self.rows):
            return 0
        bars = [row.bars[0] for row in self.rows]
        clear = (bar.value or 0 for bar in bars if bar.low and not is_weak(bar.low, bar.high))
        return int(min(clear, default=0))


def named(by: str, groups: Sequence[str]) -> str:
    """These groups of a column, with its name before numbers: "stars 1, 2"."""
    said = ", ".join(groups)
    return f"{by} {said}" if by and all(map(str.isdecimal, groups)) else said


def tables_of(
    release: Released,
    most_rows: int,
    found: Found | None = None,
    *,
    of_whole: bool = False,
    after: Sequence[Table] = (),
) -> list[Table]:
    """The tables of a release, of at most `most_rows` rows each: what was found, as `phrases` has
    it. of_whole: whether the page has another release of all groups together, which has the sums,
    and what is in no phrase. after: tables of what the release found that another counted."""
    found, manifest = found or found_in(release), release.manifest
    people, join = found.number == "users", joiner_of(manifest).join
    by = manifest["parameters"]["by"] if groups_of(manifest) else ""
    released, cut = _released(release)
    kinds = [
        (kind, [of for of in every if of.counted in released])
        for kind, every in _kinds(manifest, found)
        if not (of_whole and every is not found.phrases)
    ]
    needed = {of.counted for _, every in kinds for of in every[:most_rows]}
    numbers, groups, places = _numbers(release, needed, people)
    if of_whole and groups[0] is None:
        groups = groups[1:]

    def row(of: Wording) -> Row:
        return Row(
            of.name(joiner_of(manifest)) + cut.get(of.counted, ""), of.counted,
            tuple(numbers.get((of.counted, group), Bar()) for group in groups),
            [] if of_whole else [join(each) for each in of.variations],
            named(by, [places[of.counted]]) if of.counted in places else "",
            of.tokens != of.counted,
        )  # fmt: skip

    tables: list[Table] = []
    for kind, every in kinds:
        if not every:
            continue
        rows = [row(of) for of in every[:most_rows]]
        of_groups = slice(len(groups) > 1 and groups[0] is None, None)
        ends = [bar.high or bar.value or 0 for each in rows for bar in each.bars[of_groups]]
        first, scale = [*after, *tables][:1], max(ends, default=0) or 1.0
        is_aside = people and bool(first)
        if is_aside:  # so that its bars compare with those above, if they fit
            scale = max(scale, first[0].scale)
        noun = kind if len(every) != 1 else re.sub(r"s\b", "", kind, count=1)
        title, of = f"{kind}, by {by}" if by else kind, "" if are_periods(manifest) else by
        tables.append(Table(title, noun, groups, rows, len(every), scale, is_aside, of))
    return tables


def _kinds(manifest: Manifest, found: Found) -> Iterator[tuple[str, Sequence[Wording]]]:
    """What there is to show, in a table each, with a noun for it."""
    content = manifest.get("parameters", {}).get("content", {})
    reading, unit = content.get("reading"), content.get("unit")
    are_characters = reading == "characters" or unit == 1
    token = "word" if reading == "words" else "character" if are_characters else "token"
    phrases = "phrases" if token == "word" else "sequences"
    single = "items" if reading in (None, "whole") and unit is None else f"single {token}s"
    parts: Iterable[tuple[str, Sequence[Wording]]] = [(phrases, found.phrases)]
    if found.number == "score":
        parts = (
            (f"{phrases} of {with_noun(length, token)}", list(those))
            for length, those in groupby(found.phrases, key=lambda of: len(of.counted))
        )
    aside = (
        (f"further {phrases}", found.further),
        (single, found.words),
        (f"other common {phrases}", found.others),
    )
    return (part for part in (*parts, *aside) if part[1])


def _released(release: Released) -> tuple[set[Tokens], Mapping[Tokens, str]]:
    """The released items, and "…" for those of a trie that were cut."""
    frame = release.to_polars()
    every = [tuple(tokens) for tokens in frame["tokens"].to_list()]
    if "ended" not in frame:
        return {*every}, {}
    last = zip(every, frame["ended"], is_maximal(frame), strict=True)
    return {*every}, {tokens: "…" for tokens, ended, is_last in last if is_last and not ended}


def _numbers(
    release: Released, needed: Collection[Tokens], people: bool
) -> tuple[Mapping[tuple[Tokens, str | None], Bar], tuple[str | None, ...], Mapping[Tokens, str]]:
    """Of these items: the bars by group, the groups to show, and where most of its people are."""
    every_column = pl.DataFrame(pa.schema([*COLUMN_TYPES.items()]).empty_table())
    frame = pl.concat([release.to_polars(), every_column], how="diagonal")
    if "ended" in release.table.column_names:
        frame = frame.filter(is_maximal(frame))
    if people:
        frame = frame.with_columns(value="users", error=None)
    else:
        frame = frame.with_columns(value="score", group_name=None)
    wanted = pl.DataFrame({"tokens": [*needed]}, {"tokens": pl.List(pl.String)})
    shown = frame.join(wanted, on="tokens", how="semi")
    numbers = {
        (tuple(tokens), group): Bar(*bar)
        for tokens, group, *bar in shown.select(
            "tokens", "group_name", "value", "low", "high", "error"
        ).iter_rows()
    }
    if not (people and groups_of(release.manifest)):
        return numbers, (None,), {}
    groups: tuple[str | None, ...] = _groups_to_show(release.manifest, frame)
    totals, places = _over_groups(release.manifest, shown)
    if totals:
        groups, numbers = (None, *groups), {**numbers, **totals}
    return numbers, groups, places


def _groups_to_show(manifest: Manifest, frame: pl.DataFrame) -> tuple[str, ...]:
    """The groups; without "other" if they are periods, or if none of its numbers stands out of the
    noise, as where all values of a column were declared: is more than two margins above 0."""
    groups = groups_of(manifest)
    stands_out = 2 * pl.col("low") > pl.col("value")
    others = frame.filter(pl.col("group_name") == OTHER_GROUP, stands_out)
    return groups if len(others) and not are_periods(manifest) else groups[:-1] or groups


def _over_groups(
    manifest: Manifest, shown: pl.DataFrame
) -> tuple[Mapping[tuple[Tokens, str | None], Bar], Mapping[Tokens, str]]:
    """The sum of each item's numbers, and the group that has more than half of it, if that can be
    said: not where `min_users` left some out, not over weeks, and not where all intervals are said
    to hold at once."""
    counting = counting_of(manifest)
    if counting.get("min_users") or counting["simultaneous"] or are_periods(manifest):
        return {}, {}
    keys = zip(map(tuple, shown["tokens"].to_list()), shown["group_name"], strict=True)
    numbers = dict(zip(keys, shown["estimate"], strict=True))
    groups = groups_of(manifest)
    whole = [
        tokens
        for tokens in dict.fromkeys(tokens for tokens, _ in numbers)
        if all((tokens, group) in numbers for group in groups)
    ]
    if not whole:
        return {}, {}
    rows = pl.DataFrame({"tokens": whole})
    counts = [
        noised_counts(
            manifest,
            rows.with_columns(estimate=pl.Series([numbers[tokens, group] for tokens in whole])),
            "estimate",
            group,
        )
        for group in groups
    ]
    confidence = counting["confidence"]
    sums = zip(whole, *total(counts, confidence), strict=True)
    most = zip(whole, has_most(counts, confidence).T, strict=True)
    places = {tokens: group for tokens, has in most for group in compress(groups, has)}
    return {(tokens, None): Bar(*map(int, ends)) for tokens, *ends in sums}, places


def meaning_of_numbers(release: Released, tables: Sequence[Table]) -> str:
    """A sentence that says what the numbers in these tables are; empty if there are none."""
    bars = [bar for table in tables for row in table.rows for bar in row.bars]
    if any(bar.low is not None for bar in bars):
        return meaning_of_counts(release.manifest)
    return meaning_of_scores(release.manifest) if any(bar.number_text for bar in bars) else ""
