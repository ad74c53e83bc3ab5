"""Heat maps as HTML tables; each cell also contains its value as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import log
from typing import Any

from dphh.report.style import CHART_CSS


@dataclass(frozen=True)
class Cell:
    """A value (smaller is better), the cell's text, a line below it, and a tooltip."""

    value: float | None
    text: str
    below: str = ""
    title: str = ""
    struck: bool = False


#: Keys: which map, which row, which column.
Cells = Mapping[tuple[tuple[tuple[str, Any], ...], Any, Any], Cell]


def heat_html(title: str, down: str, across: str, cells: Cells) -> str:
    values = [cell.value for cell in cells.values() if cell.value is not None]
    least, most = (log(max(1, min(values))), log(max(1, *values))) if values else (0.0, 0.0)
    maps = []
    for which in dict.fromkeys(which for which, _, _ in cells):
        rows = dict.fromkeys(row for each, row, _ in cells if each == which)
        columns = dict.fromkeys(column for each, _, column in cells if each == which)
        head = "".join(f"<th scope='col'>{escape(str(column))}</th>" for column in columns)
        body = "".join(
            f"<tr><th scope='row'>{escape(str(row))}</th>"
            + "".join(
                _cell_html(cells[which, row, column], least, most)
                if (which, row, column) in cells
                else "<td></td>"
                for column in columns
            )
            + "</tr>"
            for row in rows
        )
        of = ", ".join(f"{name} {value}" for name, value in which)
        corner = " \\ ".join(part for part in (down, across) if part)
        maps.append(
            f"<table style='border-collapse:separate;border-spacing:2px'>"
            f"<caption style='text-align:left'>{escape(of)}</caption>"
            f"<tr><th>{escape(corner)}</th>{head}</tr>{body}</table>"
        )
    note = "<p class='more'>The stronger the colour, the fewer users an item needs to be found.</p>"
    return (
        f"<style>{CHART_CSS}</style><div class='dphh'><p><b>{escape(title)}</b></p>"
        f"{''.join(maps)}{note}</div>"
    )


def _cell_html(cell: Cell, least: float, most: float) -> str:
    """Colour strength follows the order of magnitude; a refused plan's cell is hatched."""
    colour = "none"
    if cell.value is not None:
        strength = 1.0 if most == least else (most - log(max(1, cell.value))) / (most - least)
        colour = f"rgba(91,139,208,{0.15 + 0.6 * strength:.2f})"
    if cell.struck:
        colour = f"repeating-linear-gradient(45deg,{colour} 0 6px,transparent 6px 12px)"
    below = f"<br><small style='color:inherit'>{escape(cell.below)}</small>" if cell.below else ""
    pointed = f" title='{escape(cell.title, quote=True)}'" if cell.title else ""
    return (
        f"<td{pointed} style='background:{colour};padding:4px 10px;text-align:right;"
        f"font-variant-numeric:tabular-nums'>{escape(cell.text)}{below}</td>"
    )
