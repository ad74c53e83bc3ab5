"""Bars of what a release found: people with intervals where they were counted, else the score.

A score is a noised weight. It orders what has one length and is no number of people, so each
length has a panel and a scale of its own, and the chart says which of the two it shows.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from dphh.errors import UsageError
from dphh.files.whole_files import write_whole
from dphh.report.released import Released
from dphh.report.style import CHART_CSS
from dphh.wording import shown
from dphh.wording.lines import shorten, wrapped

#: The columns of a release that says how many people.
PEOPLE = ("users", "low", "high")

WEIGHTS = "Noised weights: they order what stands in one panel, and are no numbers of people."
REPORTS = (
    "Estimates of how many of a level's reports held it: they order what stands in one "
    "panel, and are no numbers of people."
)
NOTHING = "This release has no weights: what was found is shown in the order of the alphabet."
USERS = "People, as counted with noise, each with the interval of its count."


@dataclass(frozen=True)
class Bar:
    text: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Panel:
    """What has one length. `more`: how many of it were left out."""

    title: str
    bars: tuple[Bar, ...]
    more: int

    @property
    def longest(self) -> float:
        return max((bar.high or bar.value or 0.0 for bar in self.bars), default=0.0) or 1.0


@dataclass(frozen=True)
class Chart:
    """Panels of bars: shows in notebooks, and saves as a page (.html) or a picture (.svg)."""

    title: str
    measure: str
    panels: tuple[Panel, ...]

    def _repr_html_(self) -> str:
        return f"<div class='dphh'><style>{CHART_CSS}</style>{chart_html(self)}</div>"

    def _repr_svg_(self) -> str:
        return chart_svg(self)

    def save(self, path: str | Path) -> Path:
        """Write the chart: `.svg`, whose text stays text, or `.html`."""
        out = Path(path)
        if out.suffix not in (".svg", ".html"):
            raise UsageError(f"chart: found {out.name!r}; give a name that ends in .svg or .html")
        page = f"<!doctype html><meta charset='utf-8'><title>{escape(self.title)}</title>"
        said = self._repr_svg_() if out.suffix == ".svg" else page + self._repr_html_()
        try:
            write_whole(out, said.encode())
        except OSError as problem:
            raise UsageError(
                f"chart: {out} could not be written ({problem.strerror}); give another path"
            ) from None
        return out

    def __repr__(self) -> str:
        lines = [self.title, *wrapped(self.measure, below="")]
        for panel in self.panels:
            lines += ["", panel.title]
            lines += [f"  {_bar_text(bar, panel.longest)}" for bar in panel.bars]
            lines += [f"  ... and {panel.more:,} more"] * (panel.more > 0)
        return "\n".join(lines)


def chart_of(release: Released, top: int, counts: Released | None = None) -> Chart:
    """The `top` of each length: by people where they were counted, else by score."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise UsageError(f"top: found {top!r}; give a number of bars from 1")
    everything = release.table.to_pylist()
    # Of a trie, what people wrote are the sequences that end; beginnings are on the way to them.
    rows = [row for row in everything if row.get("ended") is not False] or everything
    people = people_of(counts if counts is not None else release)
    for row in rows:
        row["people"] = people.get(tuple(row["tokens"]))
    panels = []
    for title, group in groupby(sorted(rows, key=_length), key=_length):
        # A trie says twice of a sequence that it is there and that it ends.
        there = {tuple(row["tokens"]): row for row in sorted(group, key=_order, reverse=True)}
        best = sorted(there.values(), key=_order)
        bars = tuple(_bar(row, bool(people)) for row in best[:top])
        uncounted = bool(people) and all(bar.value is None for bar in bars)
        named = _named(release, title) + (", not counted" if uncounted else "")
        panels.append(Panel(named, bars, len(best) - len(bars)))
    found = f"{len(release):,} found by {release.manifest['verb']}"
    return Chart(found, _measure(release, rows, bool(people)), tuple(panels))


def people_of(release: Released) -> dict[tuple[str, ...], tuple[float, float, float]]:
    """Of a release with counts: tokens, and users with the ends of their interval."""
    if not set(PEOPLE) <= set(release.table.column_names):
        return {}
    return {
        tuple(row["tokens"] or [row["item"]]): (row["users"], row["low"], row["high"])
        for row in release.table.to_pylist()
        if row["users"] is not None
    }


def _length(row: dict[str, Any]) -> int:
    return len(row["tokens"])


def _order(row: dict[str, Any]) -> tuple[float, float, str]:
    people = row["people"][0] if row["people"] else float("-inf")
    return -people, -(row["score"] if row.get("score") is not None else float("-inf")), row["item"]


def _bar(row: dict[str, Any], of_people: bool) -> Bar:
    if of_people:
        value, low, high = row["people"] or (None, None, None)
        return Bar(row["item"], value, low, high)
    return Bar(row["item"], row.get("score"))


def _measure(release: Released, rows: Iterable[dict[str, Any]], of_people: bool) -> str:
    if of_people:
        return USERS
    if all(row.get("score") is None for row in rows):
        return NOTHING
    return REPORTS if release.manifest["verb"] == "ldp_trie" else WEIGHTS


def _named(release: Released, length: int) -> str:
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


#: Characters of a label that wraps; the table has all of it.
_CUT = 60


# As HTML: a table, so that it reads without its style, wraps on a phone and keeps any script.


def chart_html(chart: Chart) -> str:
    if not chart.panels:
        return "<p>Nothing was found.</p>"
    kind = "chart people" if chart.measure == USERS else "chart"
    panels = "".join(_panel_html(panel) for panel in chart.panels)
    return (
        f"<figure class='{kind}'><figcaption>{escape(chart.measure)}</figcaption>"
        f"<div class='panels'>{panels}</div></figure>"
    )


def _panel_html(panel: Panel) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{shown.html(bar.text, _CUT)}</th>"
        f"<td class='bar'>{_bar_html(bar, panel.longest)}</td><td>{_said(bar)}</td></tr>"
        for bar in panel.bars
    )
    more = f"<p class='more'>and {panel.more:,} more</p>" if panel.more else ""
    return (
        f"<div><table><caption>{escape(panel.title)}</caption><tbody>{rows}</tbody></table>"
        f"{more}</div>"
    )


def _bar_html(bar: Bar, longest: float) -> str:
    return f"<svg width='100%' height='16' aria-hidden='true'>{_drawn(bar, longest)}</svg>"


def _drawn(bar: Bar, longest: float) -> str:
    """One bar in percent, so that it is as wide as there is room; a whisker where it has ends."""
    if bar.value is None:
        return ""
    drawn = f"<rect class='fill' y='15%' height='70%' width='{_percent(bar.value, longest)}'/>"
    if bar.low is not None and bar.high is not None:
        low, high = _percent(bar.low, longest), _percent(bar.high, longest)
        drawn += (
            f"<line class='ends' x1='{low}' x2='{high}' y1='50%' y2='50%'/>"
            f"<line class='ends' x1='{low}' x2='{low}' y1='25%' y2='75%'/>"
            f"<line class='ends' x1='{high}' x2='{high}' y1='25%' y2='75%'/>"
        )
    return drawn


def _percent(value: float, longest: float) -> str:
    return f"{100 * min(1.0, max(0.0, value / longest)):.2f}%"


def _said(bar: Bar, interval: str = "<small>{}</small>") -> str:
    if bar.value is None:
        return ""
    if bar.low is None or bar.high is None:
        return f"{bar.value:,.1f}"
    return f"{bar.value:,.0f} {interval.format(f'{bar.low:,.0f}–{bar.high:,.0f}')}"


# As one SVG: for slides and papers. Labels stand above their bars, so that no width is guessed.

_WIDTH, _LINE, _BAR, _GAP = 640, 18, 10, 8
#: About so many characters of a label fit beside its number.
_LABEL = 64


def chart_svg(chart: Chart) -> str:
    parts: list[str] = []
    y = 0

    def text(said: str, kind: str, anchor: str = "start") -> None:
        x = 0 if anchor == "start" else _WIDTH
        parts.append(f"<text class='{kind}' x='{x}' y='{y}' text-anchor='{anchor}'>{said}</text>")

    for line, kind in ((chart.title, "title"), *((part, "") for part in _lines(chart.measure))):
        y += _LINE
        text(shown.svg(line), kind)
    for panel in chart.panels:
        y += 2 * _LINE
        text(shown.svg(panel.title), "title")
        for bar in panel.bars:
            y += _LINE
            text(shown.svg(bar.text, _LABEL), "label")
            text(_said(bar, "({})"), "", "end")
            y += 4
            drawn = _drawn(bar, panel.longest)
            parts.append(f"<svg y='{y}' width='{_WIDTH}' height='{_BAR}'>{drawn}</svg>")
            y += _BAR + _GAP
        if panel.more:
            y += _LINE
            text(f"and {panel.more:,} more", "")
    x, width, height = -_LINE, _WIDTH + 2 * _LINE, y + 2 * _LINE
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='{x} 0 {width} {height}' "
        f"width='{width}' height='{height}' role='img'><title>{shown.svg(chart.title)}</title>"
        f"<style>{_SVG_CSS}</style><rect x='{x}' width='{width}' height='{height}' fill='#fff'/>"
        f"{''.join(parts)}</svg>"
    )


#: A picture goes onto slides and paper, so it brings its own ground and knows no dark.
_SVG_CSS = (
    "text{font:13px system-ui,sans-serif;fill:#1d2330;unicode-bidi:isolate}"
    ".title{font-weight:600}.fill{fill:#5b8bd0}.ends{stroke:#1d2330;stroke-width:1.5}"
)


def _lines(text: str, longest: int = 92) -> list[str]:
    return textwrap.wrap(text, longest)


def _bar_text(bar: Bar, longest: float) -> str:
    """For terminals: 24 characters of bar."""
    if bar.value is None:
        return shorten(bar.text)
    drawn = "█" * max(1, round(24 * min(1.0, max(0.0, bar.value / longest))))
    return f"{drawn:<24}  {_said(bar, '({})'):>10}  {shorten(bar.text)}"
