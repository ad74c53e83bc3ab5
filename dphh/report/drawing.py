"""Draws panels of bars as HTML tables, as one SVG picture, and as text for a terminal.

A panel has one bar per text; a grid has one bar per text and group, all on one scale. Lines have
one point per text and week, each line on a scale of its own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dphh.wording import shown
from dphh.wording.lines import padded, shorten, width_of, wrapped

#: Characters up to which a label is shown; the release's table has the whole text.
_LONGEST_TEXT = 60
#: So many groups side by side fit on a sheet of paper.
_MOST_COLUMNS = 5


@dataclass(frozen=True)
class Bar:
    """A bar of a chart: its label, value and interval."""

    text: str
    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def end(self) -> float:
        return self.high or self.value or 0.0


@dataclass(frozen=True)
class Panel:
    """Bars on one scale, such as those of one length. `more`: how many were left out; `in_noise`:
    how many others, because they do not stand out of the noise."""

    title: str
    bars: tuple[Bar, ...]
    more: int
    in_noise: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.bars

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
    in_noise: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.rows

    @property
    def longest(self) -> float:
        return max((bar.end for _, bars in self.rows for bar in bars), default=0.0) or 1.0


@dataclass(frozen=True)
class Lines(Grid):
    """A grid drawn as one line per text: groups are weeks, in order. A bar without a value is a
    gap."""


Part = Panel | Grid


def _left_out(part: Part) -> str:
    """How many are not shown, and why; empty if all are."""
    if part.is_empty and part.in_noise:
        return f"nothing stands out of the noise here: {part.in_noise:,} left out"
    more = [f"{part.more:,} more"] * (part.more > 0)
    if part.in_noise:
        do = "does" if part.in_noise == 1 else "do"
        more.append(f"{part.in_noise:,} that {do} not stand out of the noise")
    return f"and {' and '.join(more)}" if more else ""


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
        f"<tr><th scope='row'>{shown.html(bar.text, _LONGEST_TEXT)}</th>"
        f"<td class='bar'>{_bar_html(bar, panel.longest)}</td><td>{_value_html(bar)}</td></tr>"
        for bar in panel.bars
    )
    return f"<div>{_table_html(panel, rows)}{_left_out_html(panel)}</div>"


def _grid_html(grid: Grid) -> str:
    if isinstance(grid, Lines):
        return _lines_html(grid)
    places = range(len(grid.groups))
    width = min(len(places), _MOST_COLUMNS)
    tables = "".join(
        _columns_html(grid, places[start : start + width], width) for start in places[::width]
    )
    return f"<div class='grid'>{tables}{_left_out_html(grid)}</div>"


def _columns_html(grid: Grid, places: Sequence[int], width: int) -> str:
    """Of a grid that is wider than a sheet of paper, the groups at these places.

    Empty columns fill it up to `width`: a bar's length is a share of its column, so only columns of
    one width have one scale.
    """
    head = "".join(
        f"<th scope='col'>{shown.html(grid.groups[at], _LONGEST_TEXT)}</th>" for at in places
    ) + "<td></td>" * (width - len(places))
    rows = "".join(
        f"<tr><th scope='row'>{shown.html(text, _LONGEST_TEXT)}</th>"
        + "".join(
            f"<td>{_bar_html(bars[at], grid.longest)}{_value_html(bars[at])}</td>" for at in places
        )
        + "</tr>"
        for text, bars in grid.rows
    )
    return _table_html(grid, f"<tr><td></td>{head}</tr>{rows}")


def _lines_html(lines: Lines) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{shown.html(text, _LONGEST_TEXT)}</th><td class='bar'><svg "
        "width='100%' "
        f"height='{_PLOT}' aria-hidden='true'>{_plot_line(bars)}</svg></td>"
        f"<td>{_value_html(_last_bar_with_value(bars))}</td></tr>"
        for text, bars in lines.rows
    )
    names = _axis_svg(lines.groups, 4, _LINE - 4)
    axis = f"<svg class='axis' width='100%' height='{_LINE}'>{names}</svg>"
    table = _table_html(lines, f"{rows}<tr><th></th><td>{axis}</td><td></td></tr>")
    return f"<div>{table}{_left_out_html(lines)}</div>"


def _plot_line(bars: Sequence[Bar]) -> str:
    """One line through the weeks, with a whisker at each point; no line across a gap."""
    top = max((bar.end for bar in bars), default=0.0) or 1.0
    drawn, before = ["<line class='zero' x1='0' x2='100%' y1='95%' y2='95%'/>"], None
    for place, bar in enumerate(bars):
        if bar.value is None:
            before = None
            continue
        at = f"{100 * (place + 0.5) / len(bars):.2f}%"
        y, low, high = (
            f"{95 - 90 * max(0.0, each) / top:.2f}%"
            for each in (bar.value, bar.low or 0.0, bar.end)
        )
        if before is not None:
            x1, y1 = before
            drawn.append(f"<line class='run' x1='{x1}' y1='{y1}' x2='{at}' y2='{y}'/>")
        drawn.append(f"<circle class='fill' cx='{at}' cy='{y}' r='3.5'/>")
        if bar.low is not None:
            drawn.append(f"<line class='ends' x1='{at}' x2='{at}' y1='{low}' y2='{high}'/>")
        before = at, y
    return "".join(drawn)


def _axis_svg(weeks: Sequence[str], most: int, y: int) -> str:
    """The names of at most this many weeks below their points; the last is among them."""
    step = max(1, -(-(len(weeks) - 1) // max(1, most - 1)))
    named = [place for place in range(len(weeks)) if (len(weeks) - 1 - place) % step == 0]
    return "".join(
        f"<text x='{100 * (place + 0.5) / len(weeks):.2f}%' y='{y}' text-anchor='middle'>"
        f"{shown.svg(weeks[place], 16)}</text>"
        for place in named
    )


def _last_bar_with_value(bars: Sequence[Bar]) -> Bar:
    """The last that has a value."""
    return next((bar for bar in reversed(bars) if bar.value is not None), Bar("", None))


def _table_html(part: Part, rows: str) -> str:
    return f"<table><caption>{shown.html(part.title)}</caption><tbody>{rows}</tbody></table>"


def _left_out_html(part: Part) -> str:
    said = _left_out(part)
    return f"<p class='more'>{said}</p>" if said else ""


def _bar_html(bar: Bar, longest: float) -> str:
    return (
        f"<svg width='100%' height='16' aria-hidden='true'>{_bar_drawing_html(bar, longest)}</svg>"
    )


def _bar_drawing_html(bar: Bar, longest: float) -> str:
    """One bar, with widths in percent so that it scales; a whisker if there is an interval."""
    if bar.value is None:
        return ""
    drawn = (
        f"<rect class='fill' y='15%' height='70%' width='{_width_in_percent(bar.value, longest)}'/>"
    )
    if bar.low is not None and bar.high is not None:
        low, high = _width_in_percent(bar.low, longest), _width_in_percent(bar.high, longest)
        drawn += (
            f"<line class='ends' x1='{low}' x2='{high}' y1='50%' y2='50%'/>"
            f"<line class='ends' x1='{low}' x2='{low}' y1='25%' y2='75%'/>"
            f"<line class='ends' x1='{high}' x2='{high}' y1='25%' y2='75%'/>"
        )
    return drawn


def _width_in_percent(value: float, longest: float) -> str:
    return f"{100 * min(1.0, max(0.0, value / longest)):.2f}%"


def _value_html(bar: Bar, interval: str = "<small>{}</small>") -> str:
    if bar.value is None:
        return ""
    if bar.low is None or bar.high is None:
        return f"{bar.value:,.1f}"
    return f"{bar.value:,.0f} {interval.format(f'{bar.low:,.0f}–{bar.high:,.0f}')}"


#: The height of one line over the weeks, and of a line of text.
_PLOT, _LINE = 56, 18


# As one SVG, for slides and papers. Labels are above their bars, so no text width is guessed.

_WIDTH, _BAR, _GAP = 640, 10, 8
#: The least width of a group's column in a grid, and the space between two columns.
_COLUMN, _BETWEEN = 150, 16
#: About how many characters of a label fit beside its number.
_LABEL_WIDTH = 64


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
        drawn = _bar_drawing_html(bar, longest)
        self.parts.append(
            f"<svg x='{x}' y='{self.y}' width='{width}' height='{_BAR}'>{drawn}</svg>"
        )

    def panel(self, panel: Panel) -> None:
        for bar in panel.bars:
            self.y += _LINE
            self.text(shown.svg(bar.text, _LABEL_WIDTH), "label")
            if bar.value is None:
                continue
            self.text(_value_html(bar, "({})"), x=self.width, anchor="end")
            self.y += 4
            self.bar(bar, panel.longest, 0, self.width)
            self.y += _BAR + _GAP

    def lines(self, lines: Lines) -> None:
        for text, bars in lines.rows:
            self.y += _LINE
            self.text(shown.svg(text, _LABEL_WIDTH), "label")
            self.text(_value_html(_last_bar_with_value(bars), "({})"), x=self.width, anchor="end")
            self.y += 4
            self._add_nested_svg(_PLOT, _plot_line(bars))
            self.y += _GAP
        self._add_nested_svg(_LINE, _axis_svg(lines.groups, 8, _LINE - 4))

    def _add_nested_svg(self, height: int, drawn: str) -> None:
        self.parts.append(f"<svg y='{self.y}' width='{self.width}' height='{height}'>{drawn}</svg>")
        self.y += height

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
                self.text(_value_html(bar, "({})"), x=x)


def figure_svg(title: str, measure: str, parts: Sequence[Part]) -> str:
    grids = [part for part in parts if isinstance(part, Grid) and not isinstance(part, Lines)]
    widest = max((len(grid.groups) for grid in grids), default=0)
    picture = _Picture(max(_WIDTH, widest * _COLUMN))
    lines = textwrap.wrap(measure, picture.width // 7)
    for line, kind in ((title, "title"), *((line, "") for line in lines)):
        picture.y += _LINE
        picture.text(shown.svg(line), kind)
    for part in parts:
        picture.y += 2 * _LINE
        picture.text(shown.svg(part.title), "title")
        match part:
            case Lines():
                picture.lines(part)
            case Grid():
                picture.grid(part)
            case Panel():
                picture.panel(part)
        if said := _left_out(part):
            picture.y += _LINE
            picture.text(said)
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
    ".run{stroke:#5b8bd0;stroke-width:2}.zero{stroke:#1d2330;stroke-opacity:.3}"
)


# As text: a full bar is 24 characters.


def figure_text(title: str, measure: str, parts: Sequence[Part]) -> str:
    lines = [title, *wrapped(measure, below="")]
    for part in parts:
        lines += ["", shorten(part.title)]
        if isinstance(part, Lines):
            lines += [f"  {_line_text(bars)}  {shorten(text)}" for text, bars in part.rows]
        elif isinstance(part, Grid):
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
        if said := _left_out(part):
            lines.append(f"  ... {said}")
    return "\n".join(lines)


def _bar_text(bar: Bar, longest: float) -> str:
    if bar.value is None:
        return ""
    drawn = "█" * max(1, round(24 * min(1.0, max(0.0, bar.value / longest))))
    return f"{drawn:<24}  {_value_html(bar, '({})'):>10}"


def _line_text(bars: Sequence[Bar]) -> str:
    """A column for each week, then the last count; a dot where nothing was counted."""
    top = max((bar.end for bar in bars), default=0.0) or 1.0
    levels = "▁▂▃▄▅▆▇█"
    drawn = "".join(
        "·" if bar.value is None else levels[min(7, max(0, int(8 * bar.value / top)))]
        for bar in bars
    )
    return f"{drawn}  {_value_html(_last_bar_with_value(bars), '({})'):>20}"
