"""Draws panels of bars as HTML tables, as one SVG picture, and as text for a terminal.

A panel has one bar per text; a grid has one bar per text and group, all on one scale.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dphh.wording import shown
from dphh.wording.lines import padded, shorten, width_of, wrapped

#: Characters up to which a label is shown; the release's table has the whole text.
_CUT = 60


@dataclass(frozen=True)
class Bar:
    text: str
    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def end(self) -> float:
        return self.high or self.value or 0.0


@dataclass(frozen=True)
class Panel:
    """Bars on one scale, such as those of one length. `more`: how many were left out."""

    title: str
    bars: tuple[Bar, ...]
    more: int

    @property
    def longest(self) -> float:
        return max((bar.end for bar in self.bars), default=0.0) or 1.0


@dataclass(frozen=True)
class Grid:
    """One bar for each text in each group: texts are rows, groups are columns."""

    title: str
    groups: tuple[str, ...]
    #: Each row has one bar per group.
    rows: tuple[tuple[str, tuple[Bar, ...]], ...]
    more: int

    @property
    def longest(self) -> float:
        return max((bar.end for _, bars in self.rows for bar in bars), default=0.0) or 1.0


Part = Panel | Grid


# As HTML tables, which read without their style, wrap on a phone and need no script.


def figure_html(measure: str, parts: Sequence[Part], *, of_people: bool) -> str:
    grids = "".join(_grid_html(part) for part in parts if isinstance(part, Grid))
    panels = "".join(_panel_html(part) for part in parts if isinstance(part, Panel))
    kind = "chart people" if of_people else "chart"
    return (
        f"<figure class='{kind}'><figcaption>{escape(measure)}</figcaption>{grids}"
        + (f"<div class='panels'>{panels}</div>" if panels else "")
        + "</figure>"
    )


def _panel_html(panel: Panel) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{shown.html(bar.text, _CUT)}</th>"
        f"<td class='bar'>{_bar_html(bar, panel.longest)}</td><td>{_said(bar)}</td></tr>"
        for bar in panel.bars
    )
    return f"<div>{_table(panel, rows)}</div>"


def _grid_html(grid: Grid) -> str:
    head = "".join(f"<th scope='col'>{shown.html(group, _CUT)}</th>" for group in grid.groups)
    rows = "".join(
        f"<tr><th scope='row'>{shown.html(text, _CUT)}</th>"
        + "".join(f"<td>{_bar_html(bar, grid.longest)}{_said(bar)}</td>" for bar in bars)
        + "</tr>"
        for text, bars in grid.rows
    )
    return f"<div class='grid'>{_table(grid, f'<tr><td></td>{head}</tr>{rows}')}</div>"


def _table(part: Part, rows: str) -> str:
    more = f"<p class='more'>and {part.more:,} more</p>" if part.more else ""
    caption = f"<caption>{shown.html(part.title)}</caption>"
    return f"<table>{caption}<tbody>{rows}</tbody></table>{more}"


def _bar_html(bar: Bar, longest: float) -> str:
    return f"<svg width='100%' height='16' aria-hidden='true'>{_drawn(bar, longest)}</svg>"


def _drawn(bar: Bar, longest: float) -> str:
    """One bar, with widths in percent so that it scales; a whisker if there is an interval."""
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


# As one SVG, for slides and papers. Labels are above their bars, so no text width is guessed.

_WIDTH, _LINE, _BAR, _GAP = 640, 18, 10, 8
#: The least width of a group's column in a grid, and the space between two columns.
_COLUMN, _BETWEEN = 150, 16
#: About how many characters of a label fit beside its number.
_LABEL = 64


class _Picture:
    """The SVG elements drawn so far, and the vertical position of the next one."""

    def __init__(self, width: int) -> None:
        self.width, self.y = width, 0
        self.parts: list[str] = []

    def text(self, said: str, kind: str = "", x: int = 0, anchor: str = "start") -> None:
        self.parts.append(
            f"<text class='{kind}' x='{x}' y='{self.y}' text-anchor='{anchor}'>{said}</text>"
        )

    def bar(self, bar: Bar, longest: float, x: int, width: int) -> None:
        drawn = _drawn(bar, longest)
        self.parts.append(
            f"<svg x='{x}' y='{self.y}' width='{width}' height='{_BAR}'>{drawn}</svg>"
        )

    def panel(self, panel: Panel) -> None:
        for bar in panel.bars:
            self.y += _LINE
            self.text(shown.svg(bar.text, _LABEL), "label")
            self.text(_said(bar, "({})"), x=self.width, anchor="end")
            self.y += 4
            self.bar(bar, panel.longest, 0, self.width)
            self.y += _BAR + _GAP

    def grid(self, grid: Grid) -> None:
        column = self.width // len(grid.groups)
        places = [place * column for place in range(len(grid.groups))]
        self.y += _LINE
        for group, x in zip(grid.groups, places, strict=True):
            self.text(shown.svg(group, column // 8), x=x)
        for text, bars in grid.rows:
            self.y += _LINE + 4
            self.text(shown.svg(text, self.width // 8), "title")
            self.y += 6
            for bar, x in zip(bars, places, strict=True):
                self.bar(bar, grid.longest, x, column - _BETWEEN)
            self.y += _BAR + _LINE - 4
            for bar, x in zip(bars, places, strict=True):
                self.text(_said(bar, "({})"), x=x)


def figure_svg(title: str, measure: str, parts: Sequence[Part]) -> str:
    widest = max((len(part.groups) for part in parts if isinstance(part, Grid)), default=0)
    picture = _Picture(max(_WIDTH, widest * _COLUMN))
    lines = textwrap.wrap(measure, picture.width // 7)
    for line, kind in ((title, "title"), *((line, "") for line in lines)):
        picture.y += _LINE
        picture.text(shown.svg(line), kind)
    for part in parts:
        picture.y += 2 * _LINE
        picture.text(shown.svg(part.title), "title")
        picture.grid(part) if isinstance(part, Grid) else picture.panel(part)
        if part.more:
            picture.y += _LINE
            picture.text(f"and {part.more:,} more")
    x, width, height = -_LINE, picture.width + 2 * _LINE, picture.y + 2 * _LINE
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='{x} 0 {width} {height}' "
        f"width='{width}' height='{height}' role='img'><title>{shown.svg(title)}</title>"
        f"<style>{_SVG_CSS}</style><rect x='{x}' width='{width}' height='{height}' fill='#fff'/>"
        f"{''.join(picture.parts)}</svg>"
    )


#: A picture is for slides and paper, so it has a white background and no dark mode.
_SVG_CSS = (
    "text{font:13px system-ui,sans-serif;fill:#1d2330;unicode-bidi:isolate}"
    ".title{font-weight:600}.fill{fill:#5b8bd0}.ends{stroke:#1d2330;stroke-width:1.5}"
)


# As text: a full bar is 24 characters.


def figure_text(title: str, measure: str, parts: Sequence[Part]) -> str:
    lines = [title, *wrapped(measure, below="")]
    for part in parts:
        lines += ["", shorten(part.title)]
        if isinstance(part, Grid):
            width = max(map(width_of, map(shorten, part.groups)), default=0)
            for text, bars in part.rows:
                lines.append(f"  {shorten(text)}")
                lines += [
                    f"    {padded(shorten(bar.text), width)}  {_bar_text(bar, part.longest)}"
                    for bar in bars
                ]
        else:
            lines += [
                f"  {_bar_text(bar, part.longest)}  {shorten(bar.text)}".rstrip()
                if bar.value is not None
                else f"  {shorten(bar.text)}"
                for bar in part.bars
            ]
        lines += [f"  ... and {part.more:,} more"] * (part.more > 0)
    return "\n".join(lines)


def _bar_text(bar: Bar, longest: float) -> str:
    if bar.value is None:
        return ""
    drawn = "█" * max(1, round(24 * min(1.0, max(0.0, bar.value / longest))))
    return f"{drawn:<24}  {_said(bar, '({})'):>10}"
