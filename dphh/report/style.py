"""The style sheets and the script of charts and pages, read from their own files."""

from __future__ import annotations

from importlib.resources import files


def _read_asset(name: str) -> str:
    return files("dphh.report").joinpath(name).read_text(encoding="utf-8").strip()


#: The style of charts and trees, in notebooks of any theme and on pages.
CHART_CSS = _read_asset("chart.css")
PAGE_CSS = _read_asset("page.css")
PAGE_JS = _read_asset("page.js")
