"""A chart of a few lines as SVG in a page: its text is text, its colours are the page's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 26, 44, 60
COLOURS = ("one", "two", "three")


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """Values onto pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        low, high, value = (
            (log10(each) for each in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start + (self.end - self.start) * (value - low) / (high - low)


def lines_svg(
    title: str,
    across: str,
    lines: Sequence[Line],
    logs: tuple[bool, bool] = (False, False),
    bottom: float | None = None,
    top: float | None = None,
) -> str:
    """The chart, and below it the same numbers as a table for who cannot see it."""
    xs = sorted({x for line in lines for x, _ in line.points})
    ys = [y for line in lines for _, y in line.points]
    lowest = bottom if bottom is not None else (min(ys) if logs[1] else 0.0)
    across_axis = Axis(xs[0], xs[-1], LEFT, WIDTH - RIGHT, logs[0])
    up_axis = Axis(lowest, top or max(ys), HEIGHT - BOTTOM, TOP, logs[1])
    parts = [f'<text class="title" x="4" y="20">{escape(title)}</text>']
    for x in xs:
        place = across_axis.at(x)
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - 34}" class="across">{said(x)}</text>')
    for y in _ticks(up_axis):
        place = up_axis.at(y)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
            f'y1="{place:.1f}" y2="{place:.1f}"/>'
            f'<text x="{LEFT - 8}" y="{place + 5:.1f}" class="up">{said(y)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" class="across">{escape(across)}</text>')
    for colour, line in zip(COLOURS, lines, strict=False):
        drawn = " ".join(f"{across_axis.at(x):.1f},{up_axis.at(y):.1f}" for x, y in line.points)
        dash = " dashed" if line.dashed else ""
        parts.append(f'<polyline class="line {colour}{dash}" points="{drawn}"/>')
        parts += [
            f'<circle class="dot {colour}" cx="{across_axis.at(x):.1f}" '
            f'cy="{up_axis.at(y):.1f}" r="3"/>'
            for x, y in line.points
        ]
    key = "".join(
        f'<span class="key {colour}{" dashed" if line.dashed else ""}">{escape(line.name)}</span>'
        for colour, line in zip(COLOURS, lines, strict=False)
    )
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
    return (
        f'<figure class="picture">{svg}<figcaption>{key}</figcaption></figure>\n\n'
        f"{_table(across, xs, lines)}"
    )


def said(value: float) -> str:
    """A number of at most three digits, as people write it."""
    if value and abs(value) < 1e-3:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{float(f'{value:.3g}'):,.10g}"


def _ticks(axis: Axis) -> list[float]:
    if axis.log:
        tens = range(-12, 9)
        ticks = [d * 10.0**k for k in tens for d in (1, 2, 5)]
        return [tick for tick in ticks if axis.low <= tick <= axis.high]
    step = 10 ** int(log10(axis.high - axis.low))
    if (axis.high - axis.low) / step < 3:
        step /= 2
    return [axis.low + step * k for k in range(12) if axis.low + step * k <= axis.high]


def _table(across: str, xs: Sequence[float], lines: Sequence[Line]) -> str:
    head = f"| {across} | " + " | ".join(said(x) for x in xs) + " |\n|---" + "|---:" * len(xs) + "|"
    rows = [
        f"| {line.name} | " + " | ".join(said(dict(line.points)[x]) for x in xs) + " |"
        for line in lines
    ]
    return "\n".join([head, *rows])
