"""Tables of a release for a terminal, a page, a card and a plot: what was found, with its numbers.

Numbers of users compare across lengths and have one table. A score is a noised weight: it orders
items of one length and is no number of people, so each length has a table of its own.

Intervals are those of the release's table: an item has one interval, wherever it is shown. Only
groups have one more number, of all of them together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl
import pyarrow as pa

from dphh.columns import COLUMN_TYPES, OTHER_GROUP
from dphh.privacy.changes import total
from dphh.report.counting import noised_counts
from dphh.report.phrases import Found, found_in, is_maximal
from dphh.report.sentences import (
    BORDER,
    Manifest,
    Released,
    are_periods,
    counting_of,
    groups_of,
    joiner_of,
    meaning_of_counts,
    meaning_of_scores,
)
from dphh.report.wordings import Tokens, Wording, runs
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


#: The most items that are folded into the rows of a table: into those of its first rows.
MOST_FOLDED = 1_000
#: What the column of all groups together is called.
TOGETHER = "all together"

Bars = tuple[Bar, ...]


@dataclass(frozen=True)
class Row:
    """A wording, of which the middle part is the released item that the bars are of, those in the
    order of the groups; and the items that are folded into it, with theirs."""

    before: str
    item: str
    after: str
    tokens: Tokens
    bars: Bars
    folded: Sequence[tuple[str, Bars]]
    #: The one group where it surely is, while in each other there may be nobody.
    only: str | None
    #: In which group it surely is, or is most, in words; "" if that is unclear.
    where: str

    @property
    def wording(self) -> str:
        return self.before + self.item + self.after

    @property
    def text(self) -> str:
        """The wording on a line, with what is joined to the item in square brackets."""
        before = f"[{self.before.rstrip()}] " if self.before else ""
        return before + self.item + (f" [{self.after.lstrip()}]" if self.after else "")


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

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(TOGETHER if group is None else group for group in self.groups)

    @property
    def is_joined(self) -> bool:
        return any(row.before or row.after for row in self.rows)


def tables_of(
    release: Released,
    most_rows: int,
    found: Found | None = None,
    known: Container[Tokens] | None = None,
    *,
    with_sums: bool = True,
) -> list[Table]:
    """The tables of a release, of at most `most_rows` rows each: what was found, as `phrases` has
    it. known: the items of another release; rows have the numbers of such items, if they can.
    with_sums: whether groups have their sum beside them, if there is one."""
    found, manifest = found or found_in(release), release.manifest
    people, join = found.number == "users", joiner_of(manifest).join
    left, parts = MOST_FOLDED, []
    for kind, every in _kinds(manifest, found):
        first = []
        for of in every[:most_rows]:
            counted = of.counted if known is None else found.counted(of, known)
            folded = [] if every is found.others else _folded(of, counted, found)[:left]
            left -= len(folded)
            first.append((Wording(of.tokens, counted), folded))
        parts.append((kind, len(every), first))
    needed = {each for *_, first in parts for of, folded in first for each in (of.counted, *folded)}
    items, numbers, groups = _numbers(release, needed, people, with_sums)

    def bars(tokens: Tokens) -> Bars:
        return tuple(numbers.get((tokens, group), Bar()) for group in groups)

    def row(of: Wording, folded: Sequence[Tokens]) -> Row:
        before, counted, after = of.split()
        own, space = bars(counted), join(("", ""))
        return Row(
            join(before) + space if before else "", items[counted],
            space + join(after) if after else "", counted, own,
            # Scores compare within one length only.
            [(items[each], bars(each) if people else (Bar(),)) for each in folded],
            only := _only(groups, own)
            if len(groups) > 1 and len(of.tokens) > 1 and not are_periods(manifest) else None,
            _where(groups, own) if only is None else f"only {only}",
        )  # fmt: skip

    tables: list[Table] = []
    for kind, count, first in parts:
        rows = [row(*each) for each in first]
        of_groups = slice(len(groups) > 1 and groups[0] is None, None)
        ends = [bar.high or bar.value or 0 for each in rows for bar in each.bars[of_groups]]
        is_aside, scale = people and bool(tables), max(ends, default=0) or 1.0
        if is_aside:  # so that its bars compare with those above, if they fit
            scale = max(scale, tables[0].scale)
        by = f", by {manifest['parameters']['by']}" if groups_of(manifest) else ""
        noun = kind if count != 1 else re.sub(r"s\b", "", kind, count=1)
        tables.append(Table(kind + by, noun, groups, rows, count, scale, is_aside))
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
    every = (*parts, (single, found.words), (f"other common {phrases}", found.others))
    return (part for part in every if part[1])


def _folded(of: Wording, counted: Tokens, found: Found) -> list[Tokens]:
    """What is inside a row: what varies it, and what was released of its pieces."""
    inside = [
        run
        for run in runs(of.tokens, range(len(of.tokens), 0, -1))
        if run in found.grams.users and run != counted
    ]
    every = dict.fromkeys((*of.variations, *inside))
    return [gram for gram in every if found.numbers[gram] > 0 or found.number != "users"]


def _numbers(
    release: Released, needed: Collection[Tokens], people: bool, with_sums: bool
) -> tuple[Mapping[Tokens, str], Mapping[tuple[Tokens, str | None], Bar], tuple[str | None, ...]]:
    """The text of each item, its bars by group, and the groups to show."""
    every_column = pl.DataFrame(pa.schema([*COLUMN_TYPES.items()]).empty_table())
    frame = pl.concat([release.to_polars(), every_column], how="diagonal")
    if joiner_of(release.manifest) == BORDER:
        frame = frame.with_columns(item=pl.col("tokens").list.join(BORDER))
    if "ended" in release.table.column_names:
        ends = pl.when("ended").then(pl.lit("")).otherwise(pl.lit("…"))
        frame = frame.filter(is_maximal(frame)).with_columns(pl.col("item") + ends)
    if people:
        frame = frame.with_columns(value="users", error=None)
    else:
        frame = frame.with_columns(value="score", group_name=None)
    wanted = pl.DataFrame({"tokens": [*needed]}, {"tokens": pl.List(pl.String)})
    shown = frame.join(wanted, on="tokens", how="semi")
    texts = dict(zip(map(tuple, shown["tokens"].to_list()), shown["item"], strict=True))
    numbers = {
        (tuple(tokens), group): Bar(*bar)
        for tokens, group, *bar in shown.select(
            "tokens", "group_name", "value", "low", "high", "error"
        ).iter_rows()
    }
    groups: tuple[str | None, ...] = (None,)
    if people and groups_of(release.manifest):
        groups = _groups_to_show(release.manifest, frame)
        if with_sums and (totals := _totals(release.manifest, shown)):
            groups, numbers = (None, *groups), {**numbers, **totals}
    return texts, numbers, groups


def _groups_to_show(manifest: Manifest, frame: pl.DataFrame) -> tuple[str, ...]:
    """The groups; without "other" if they are periods, or if none of its numbers stands out of the
    noise, as where all values of a column were declared: is more than two margins above 0."""
    groups = groups_of(manifest)
    stands_out = 2 * pl.col("low") > pl.col("value")
    others = frame.filter(pl.col("group_name") == OTHER_GROUP, stands_out)
    return groups if len(others) and not are_periods(manifest) else groups[:-1] or groups


def _totals(manifest: Manifest, shown: pl.DataFrame) -> Mapping[tuple[Tokens, str | None], Bar]:
    """The sum of each item's numbers, if there is one: not where `min_users` left some out, not
    over weeks, and not where all intervals are said to hold at once."""
    counting = counting_of(manifest)
    if counting.get("min_users") or counting["simultaneous"] or are_periods(manifest):
        return {}
    keys = zip(map(tuple, shown["tokens"].to_list()), shown["group_name"], strict=True)
    numbers = dict(zip(keys, shown["estimate"], strict=True))
    groups = groups_of(manifest)
    whole = [
        tokens
        for tokens in dict.fromkeys(tokens for tokens, _ in numbers)
        if all((tokens, group) in numbers for group in groups)
    ]
    if not whole:
        return {}
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
    sums = zip(*total(counts, counting["confidence"]), strict=True)
    return {(tokens, None): Bar(*map(int, ends)) for tokens, ends in zip(whole, sums, strict=True)}


def _only(groups: Sequence[str | None], bars: Bars) -> str | None:
    """The one group whose interval is above 0, where those of all others reach 0, and their upper
    ends together are at most half of its lower end."""
    of_groups = [(bar, group) for bar, group in zip(bars, groups, strict=True) if group]
    sure = [(bar.low, group) for bar, group in of_groups if bar.low]
    highs = [bar.high for bar, _ in of_groups if bar.low == 0 and bar.high is not None]
    if len(sure) != 1 or len(highs) != len(of_groups) - 1 or 2 * sum(highs) > sure[0][0]:
        return None
    return sure[0][1]


def _where(groups: Sequence[str | None], bars: Bars) -> str:
    """The group whose lower end is above the sum of all other upper ends, in words: a list of those
    where it surely is would read as if nobody of the others had it."""
    of_groups = [(group, bar) for group, bar in zip(groups, bars, strict=True) if group]
    highs = sum(math.inf if bar.high is None else bar.high for _, bar in of_groups)
    most = (group for group, bar in of_groups if (bar.low or 0) + (bar.high or 0) > highs)
    return f"more than half in {group}" if (group := next(most, None)) else ""


def meaning_of_numbers(release: Released, tables: Sequence[Table]) -> str:
    """A sentence that says what the numbers in these tables are; empty if there are none."""
    bars = [bar for table in tables for row in table.rows for bar in row.bars]
    if any(bar.low is not None for bar in bars):
        return meaning_of_counts(release.manifest)
    return meaning_of_scores(release.manifest) if any(bar.number_text for bar in bars) else ""
