"""A release as an Altair chart, which notebooks show and which saves as PNG, SVG or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from dphh.errors import UsageError
from dphh.report.bar_tables import Rows, Table, tables_of
from dphh.report.counted import Released, by_of, how_many
from dphh.wording.options import check_whole
from dphh.wording.shown import shown

if TYPE_CHECKING:
    import altair as alt


_NUMBERS = ("value", "low", "high")


def plot(release: Released, top: int) -> alt.VConcatChart:
    """Bars of users, with intervals that hold together; else of scores, which have none. A chart
    for each table, below one another."""
    check_whole("top", top)
    try:
        import altair as alt
    except ImportError:
        raise UsageError("plot: Altair is not installed; pip install 'dphh[plot]'") from None
    tables = [
        table
        for table in tables_of(release, Rows(top, top))
        if any(bar.value is not None for row in table.rows[: table.opened] for bar in row.bars)
    ]
    if not release.table.num_rows:
        raise UsageError("plot: nothing was found, so there is nothing to draw")
    if not tables:
        raise UsageError("plot: this release has neither counts nor scores to draw")
    charts = [_chart(table, by_of(release.manifest)) for table in tables]
    return alt.vconcat(*charts, title=how_many(release.table, release.manifest))


def _chart(table: Table, by: str) -> Any:
    import altair as alt

    rows = pl.DataFrame(
        [
            (shown(row.item, 60), shown(group, 60), bar.value, bar.low, bar.high)
            for row in table.rows[: table.opened]
            for bar, group in zip(row.bars, table.columns or ("all",), strict=True)
        ],
        {"item": pl.String, "group": pl.String, **dict.fromkeys(_NUMBERS, pl.Float64)},
        orient="row",
    )
    people = rows["low"].null_count() == 0
    named = "users" if people else "score (no number of people)"
    item = alt.Y("item:N", sort=None, title=None, axis=alt.Axis(labelLimit=300))
    value = alt.X("value:Q", title=named, scale=alt.Scale(domain=[0, table.scale]))
    base = alt.Chart(rows, width=120 if table.columns else 300).encode(y=item)
    drawn = base.mark_bar().encode(x=value, tooltip=["item", "group", *_NUMBERS])
    if people:
        drawn = drawn + base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    if not table.columns:
        return drawn.properties(title=table.title)
    column = alt.Column("group:N", sort=None, title=by)
    return drawn.facet(column=column, title=table.title)
