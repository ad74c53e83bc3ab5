"""The style sheets and the script of what is drawn here, read from their own files."""

from __future__ import annotations

from importlib.resources import files


def _read(name: str) -> str:
    return files("dphh.report").joinpath(name).read_text(encoding="utf-8").strip()


#: What charts and trees look like wherever they stand: in a notebook of any theme, on a page.
CHART_CSS = _read("chart.css")
PAGE_CSS = _read("page.css")
PAGE_JS = _read("page.js")
