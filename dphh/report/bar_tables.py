"""Tables of a release for a terminal, a page, a card and a plot: what was found, with its numbers.

Numbers of users can be compared across lengths, so one table shows all lengths. A score is a noised
weight: it orders items of one length and is no number of people, so each length has its own table.

Intervals are those of the release's table: an item has one interval, wherever it is shown. Only a
release by groups gets one number more: the sum over all groups.
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
from dphh.report.phrases import Findings, findings_of, is_maximal
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


#: The heading of the column of all groups together.
TOGETHER = "all together"
Bars = tuple[Bar, ...]


@dataclass(frozen=True)
class Row:
    """One thing that people say: its text, and a bar for each group, in their order."""

    wording: str
    #: The released item, a part of that text, whose numbers the bars show.
    tokens: Tokens
    bars: Bars
    #: Other released items that say nearly the same; they have no row of their own.
    variations: Sequence[str]
    #: The group that more than half of its people are in; "" if that is clear of no group.
    place: str
    #: Whether the text has words around that item.
    is_part: bool


@dataclass(frozen=True)
class Table:
    """A table to show: its first `rows`, of `count` in all."""

    title: str
    #: A noun for its rows, which follows their number.
    kind: str
    #: The group of each bar of a row; None is all people.
    groups: tuple[str | None, ...]
    rows: Sequence[Row]
    count: int
    #: The value at which a bar would fill its column.
    scale: float
    #: Whether it shows what an earlier table of the release leaves out.
    is_aside: bool
    #: The column that the groups are values of; "" if there is none, or if they are periods.
    by: str = ""

    @property
    def is_folded(self) -> bool:
        """Whether a page folds it: its rows are no phrases."""
        return self.is_aside and not self.kind.startswith("further")

    @property
    def names(self) -> tuple[str, ...]:
        names = (TOGETHER if group is None else group for group in self.groups)
        return tuple(groups_in_words(self.by, [name]) for name in names)

    def highest(self, place: int) -> Mapping[str, str]:
        """The highest numbers of people in one column, by wording, if they are clearly above 0. In
        the column of a group: the highest number, and all whose ranges overlap with its range."""
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
        """The smallest number of people in its rows that is clearly above 0; 0 if there is none."""
        if self.groups[0] is not None or self.count > len(self.rows):
            return 0
        bars = [row.bars[0] for row in self.rows]
        clear = (bar.value or 0 for bar in bars if bar.low and not is_weak(bar.low, bar.high))
        return int(min(clear, default=0))


def groups_in_words(by: str, groups: Sequence[str]) -> str:
    """Groups of a column, in words: after its name if they are numbers, as in "stars 1, 2"."""
    names = ", ".join(groups)
    return f"{by} {names}" if by and all(map(str.isdecimal, groups)) else names


def tables_of(
    release: Released, most_rows: int, findings: Findings | None = None,
    *, of_whole: bool = False, after: Sequence[Table] = (),
) -> list[Table]:  # fmt: skip
    """The tables of a release, of at most `most_rows` rows each. findings: the rows to show; else
    those of this release. of_whole: whether the page shows another release of all groups together,
    which has the sums, the variations, and all that is no phrase. after: tables, shown before
    these, of a release that counted some of what this one found."""
    findings, manifest = findings or findings_of(release), release.manifest
    people, join = findings.number == "users", joiner_of(manifest).join
    by = manifest["parameters"]["by"] if groups_of(manifest) else ""
    released, cut = _released_items(release)
    kinds = [
        (kind, [wording for wording in wordings if wording.counted in released])
        for kind, wordings in _kinds_of_rows(manifest, findings)
        if not (of_whole and wordings is not findings.phrases)
    ]
    needed = {wording.counted for _, wordings in kinds for wording in wordings[:most_rows]}
    numbers, groups, places = _numbers(release, needed, people)
    if of_whole and groups[0] is None:
        groups = groups[1:]

    def row(wording: Wording) -> Row:
        item = wording.counted
        return Row(
            wording.name(joiner_of(manifest)) + cut.get(item, ""), item,
            tuple(numbers.get((item, group), Bar()) for group in groups),
            [] if of_whole else [join(tokens) for tokens in wording.variations],
            groups_in_words(by, [places[item]]) if item in places else "",
            wording.tokens != item,
        )  # fmt: skip

    tables: list[Table] = []
    shown_by = "" if are_periods(manifest) else by
    for kind, wordings in kinds:
        if not wordings:
            continue
        rows = [row(wording) for wording in wordings[:most_rows]]
        in_groups = slice(len(groups) > 1 and groups[0] is None, None)
        ends = [bar.high or bar.value or 0 for row in rows for bar in row.bars[in_groups]]
        first, scale = [*after, *tables][:1], max(ends, default=0) or 1.0
        is_aside = people and bool(first)
        if is_aside:  # its bars have the scale of the table above, if they fit
            scale = max(scale, first[0].scale)
        noun = kind if len(wordings) != 1 else re.sub(r"s\b", "", kind, count=1)
        title = f"{kind}, by {by}" if by else kind
        tables.append(Table(title, noun, groups, rows, len(wordings), scale, is_aside, shown_by))
    return tables


def _kinds_of_rows(
    manifest: Manifest, findings: Findings
) -> Iterator[tuple[str, Sequence[Wording]]]:
    """A noun for each table that has rows, and these rows."""
    content = manifest.get("parameters", {}).get("content", {})
    reading, unit = content.get("reading"), content.get("unit")
    are_characters = reading == "characters" or unit == 1
    token = "word" if reading == "words" else "character" if are_characters else "token"
    phrases = "phrases" if token == "word" else "sequences"
    single = "items" if reading in (None, "whole") and unit is None else f"single {token}s"
    parts: Iterable[tuple[str, Sequence[Wording]]] = [(phrases, findings.phrases)]
    if findings.number == "score":
        parts = (
            (f"{phrases} of {with_noun(length, token)}", list(wordings))
            for length, wordings in groupby(findings.phrases, key=lambda row: len(row.counted))
        )
    aside = (
        (f"further {phrases}", findings.further),
        (single, findings.words),
        (f"other common {phrases}", findings.others),
    )
    return (part for part in (*parts, *aside) if part[1])


def _released_items(release: Released) -> tuple[set[Tokens], Mapping[Tokens, str]]:
    """The released items; and "…" for those at which a trie cut longer sequences."""
    frame = release.to_polars()
    every = [tuple(tokens) for tokens in frame["tokens"].to_list()]
    if "ended" not in frame:
        return {*every}, {}
    ends = zip(every, frame["ended"], is_maximal(frame), strict=True)
    return {*every}, {tokens: "…" for tokens, ended, is_last in ends if is_last and not ended}


def _numbers(
    release: Released, needed: Collection[Tokens], people: bool
) -> tuple[Mapping[tuple[Tokens, str | None], Bar], tuple[str | None, ...], Mapping[Tokens, str]]:
    """The bar of each of these items in each group; the groups to show; and for an item the group
    that most of its people are in, where that can be said."""
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
    """The groups; without "other" if they are periods, or if none of its numbers is more than two
    margins above 0, as where all values of the column were declared."""
    groups = groups_of(manifest)
    stands_out = 2 * pl.col("low") > pl.col("value")
    others = frame.filter(pl.col("group_name") == OTHER_GROUP, stands_out)
    return groups if len(others) and not are_periods(manifest) else groups[:-1] or groups


def _over_groups(
    manifest: Manifest, shown: pl.DataFrame
) -> tuple[Mapping[tuple[Tokens, str | None], Bar], Mapping[Tokens, str]]:
    """The sum of each item's numbers over the groups, and the group that has more than half of it.
    Neither can be said where `min_users` left some numbers out, for periods, or where all intervals
    are promised to hold at once."""
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
    return {(tokens, None): Bar(*map(int, bar)) for tokens, *bar in sums}, places


def meaning_of_numbers(release: Released, tables: Sequence[Table]) -> str:
    """A sentence that says what the numbers in these tables are; empty if there are none."""
    bars = [bar for table in tables for row in table.rows for bar in row.bars]
    if any(bar.low is not None for bar in bars):
        return meaning_of_counts(release.manifest)
    return meaning_of_scores(release.manifest) if any(bar.number_text for bar in bars) else ""
