"""Bar charts of a release: users with intervals if they were counted, else scores.

A score is a noised weight. It orders items of one length and is not a number of people, so each
length has its own panel and scale, and the chart states what it shows. Numbers of users compare
across lengths. If users were counted within groups, each item has one bar per group. The total over
groups was not counted and is never shown.

A chart of people shows what was chosen by its noised counts, so its intervals hold all together
(`chosen`), and items go by where their intervals begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from dphh.errors import UsageError
from dphh.files.paths import written_here
from dphh.files.whole_files import write_named
from dphh.report.chosen import people_to_choose_from
from dphh.report.counted import how_many, which_rows
from dphh.report.drawing import Bar, Grid, Panel, Part, figure_html, figure_svg, figure_text
from dphh.report.people import Count, People, Tokens, people_of
from dphh.report.released import Released
from dphh.report.style import CHART_CSS
from dphh.wording.lines import shorten
from dphh.wording.options import check_whole

NOTE_ON_WEIGHTS = (
    "Noised weights: they order what stands in one panel, and are no numbers of people."
)
NOTE_ON_REPORTS = (
    "Estimates of how many of a level's reports held it: they order what stands in one "
    "panel, and are no numbers of people."
)
NOTE_WITHOUT_WEIGHTS = (
    "This release has no weights: what was found is shown in the order of the alphabet."
)
NOTE_ON_USERS = "People, as counted with noise, each with the interval of its count."
NOTE_ON_LONGER_PHRASES = (
    "A part of a longer phrase is left out where nearly as many people hold the longer one, by "
    "both counts."
)
NOTE_ON_ORDER = (
    "The order is that of where intervals begin, the highest first. Of more than {top:,}, only "
    "what stands out of the noise is shown: its interval begins above 0."
)
NOTE_ON_ROWS = (
    "The order of rows is that of the sum of where their intervals begin, the highest first. Of "
    "more than {top:,}, only rows that stand out of the noise are shown: one of their intervals "
    "begins above 0. All bars of a table have one scale."
)
NOTE_ON_LISTS = (
    "Only what stands out of the noise is listed: its interval begins above 0, and the highest "
    "beginning comes first."
)
NOTE_ON_GROUPS = (
    "Who is in several groups counts in each, so the groups do not add up to all people."
)


@dataclass(frozen=True)
class Chart:
    """Panels of bars. Shows in notebooks; saves as a page (.html) or a picture (.svg)."""

    title: str
    measure: str
    panels: tuple[Part, ...]
    of_people: bool = False

    def _repr_html_(self) -> str:
        return f"<div class='dphh'><style>{CHART_CSS}</style>{chart_html(self)}</div>"

    def _repr_svg_(self) -> str:
        return figure_svg(self.title, self.measure, self.panels)

    def save(self, path: str | Path) -> Path:
        """Write the chart as `.svg`, with its text kept as text, or as `.html`."""
        out = written_here("chart", path)
        if out.suffix not in (".svg", ".html"):
            raise UsageError(f"chart: found {out.name!r}; give a name that ends in .svg or .html")
        page = f"<!doctype html><meta charset='utf-8'><title>{escape(self.title)}</title>"
        said = self._repr_svg_() if out.suffix == ".svg" else page + self._repr_html_()
        write_named("chart", out, said.encode(), said.encode()[:4])
        return out

    def __repr__(self) -> str:
        return figure_text(self.title, self.measure, self.panels)


def chart_html(chart: Chart) -> str:
    if not chart.panels:
        return "<p>Nothing was found.</p>"
    return figure_html(chart.measure, chart.panels, of_people=chart.of_people)


def chart_of(release: Released, top: int, counts: Released | None = None) -> Chart:
    """If users were counted, the `top` phrases and the `top` single tokens by users; else the
    `top` items of each length by score."""
    check_whole("top", top)
    counting = counts if counts is not None else release
    if people_of(counting):
        chart = _chart_of_people(release, counting, top)
        return replace(chart, measure=chart.measure + _rows_of_counts(release, counting))
    everything = release.table.to_pylist()
    # In a trie, complete sequences are what users wrote; beginnings only lead to them.
    rows = [row for row in everything if row.get("ended") is not False] or everything
    panels = []
    for length, group in groupby(sorted(rows, key=_length_of_row), key=_length_of_row):
        # A trie may have two rows for one sequence: as a prefix, and as ending there.
        there = {tuple(row["tokens"]): row for row in sorted(group, key=_sort_key, reverse=True)}
        best = sorted(there.values(), key=_sort_key)
        bars = tuple(Bar(row["item"], row.get("score")) for row in best[:top])
        panels.append(Panel(_name_of_length(release, length), bars, len(best) - len(bars)))
    return Chart(_title_of(release), _meaning_of_bars(release, rows), tuple(panels))


def _rows_of_counts(release: Released, counting: Released) -> str:
    """Which rows were counted, if these are not the rows of the release."""
    where = which_rows(counting.manifest)
    if where == which_rows(release.manifest):
        return ""
    of = "of all rows" if where is None else shorten(where[0].lower() + where[1:], 200)
    return f" People were counted {of}."


def _chart_of_people(release: Released, counting: Released, top: int) -> Chart:
    people = people_to_choose_from(counting)
    items, whole = _counted_items(release, counting, people)
    panels: list[Part] = []
    for several, title in (
        (True, _name_of_length(release, 2) + " and more"),
        (False, _name_of_length(release, 1)),
    ):
        those = [tokens for tokens in whole if (len(tokens) > 1) == several]
        if those:
            panels.append(_panel_or_grid(title, those, items, people, top))
    order = NOTE_ON_ORDER if people.groups is None else NOTE_ON_ROWS
    said = [NOTE_ON_USERS, people.held + ".", order.format(top=top)]
    if len(whole) < len(items):
        said.append(NOTE_ON_LONGER_PHRASES)
    if people.groups is not None:
        said.append(NOTE_ON_GROUPS)
    found = {tuple(tokens) for tokens in release.table.column("tokens").to_pylist()}
    if uncounted := len(found) - len(items):
        said.append(f"Of what was found, {uncounted:,} were not counted and are not shown here.")
    return Chart(_title_of(release), " ".join(said), tuple(panels), of_people=True)


def within_groups(release: Released, top: int, counts: Released | None = None) -> Chart | None:
    """One panel per group with its own `top` of what stands out of the noise; None if nothing was
    counted in groups."""
    counting = counts if counts is not None else release
    people = people_to_choose_from(counting)
    if people.groups is None or not people:
        return None
    items, whole = _counted_items(release, counting, people)
    those = [tokens for tokens in whole if len(tokens) > 1] or whole
    panels: list[Part] = []
    for place, group in enumerate(people.groups):
        counted = [
            (count, tokens)
            for tokens in those
            if (count := people.counts[tokens][place]) is not None
        ]
        clear = [each for each in counted if each[0].low > 0]
        clear.sort(key=lambda each: (-each[0].low, -each[0].users, items[each[1]]))
        bars = tuple(_bar_of(items[tokens], count) for count, tokens in clear[:top])
        more, in_noise = len(clear) - len(bars), len(counted) - len(clear)
        panels.append(Panel(f"{people.by}: {group}", bars, more, in_noise))
    said = f"Each {people.by} has an order and a scale of its own. {people.held}. {NOTE_ON_LISTS}"
    return Chart(_title_of(release), said, tuple(panels), of_people=True)


def _title_of(release: Released) -> str:
    return how_many(release.table, release.manifest)


def _counted_items(
    release: Released, counting: Released, people: People
) -> tuple[dict[Tokens, str], list[Tokens]]:
    """The counted items with their texts, and the tokens of those that no longer phrase makes
    redundant by the release's own intervals, in the order of `people`. In a trie, no sequence is
    part of another."""
    columns = [name for name in ("item", "tokens") if name in release.table.column_names]
    items = {
        tuple(row["tokens"]): row["item"]
        for row in release.table.select(columns).to_pylist()
        if tuple(row["tokens"]) in people.counts
    }
    in_trie = "ended" in release.table.column_names
    parts = set() if in_trie else people_of(counting).redundant_parts()
    whole = [tokens for tokens in items if tokens not in parts or len(tokens) == 1]
    whole.sort(key=lambda tokens: (*people.rank(tokens), -len(tokens), items[tokens]))
    return items, whole


def _panel_or_grid(
    title: str, those: Sequence[Tokens], items: dict[Tokens, str], people: People, top: int
) -> Part:
    # What is all shown was not chosen: then nothing is left out, not even what nobody may hold.
    clear = those if len(those) <= top else [each for each in those if people.stands_out(each)]
    more, in_noise = max(0, len(clear) - top), len(those) - len(clear)
    if people.groups is None:
        bars = [_bar_of(items[tokens], people.counts[tokens][0]) for tokens in clear[:top]]
        return Panel(title, tuple(bars), more, in_noise)
    rows = [
        (items[tokens], tuple(map(_bar_of, people.groups, people.counts[tokens])))
        for tokens in clear[:top]
    ]
    return Grid(f"{title}, by {people.by}", people.groups, tuple(rows), more, in_noise)


def _bar_of(text: str, count: Count | None) -> Bar:
    return Bar(text, None) if count is None else Bar(text, *count)


def _length_of_row(row: dict[str, Any]) -> int:
    return len(row["tokens"])


def _sort_key(row: dict[str, Any]) -> tuple[float, str]:
    return -(row["score"] if row.get("score") is not None else float("-inf")), row["item"]


def _meaning_of_bars(release: Released, rows: Iterable[dict[str, Any]]) -> str:
    if all(row.get("score") is None for row in rows):
        return NOTE_WITHOUT_WEIGHTS
    return NOTE_ON_REPORTS if release.manifest["verb"] == "ldp_trie" else NOTE_ON_WEIGHTS


def _name_of_length(release: Released, length: int) -> str:
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
