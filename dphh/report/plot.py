"""A release as an Altair chart, which notebooks show and which saves as PNG, SVG or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from dphh.errors import UsageError
from dphh.report.bar_tables import Table, tables_of
from dphh.report.sentences import Released, how_many
from dphh.wording.lines import shown
from dphh.wording.options import check_whole

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
        for table in tables_of(release, top)
        if any(bar.value is not None for row in table.rows[: table.telling] for bar in row.bars)
    ]
    if not tables:
        raise UsageError("plot: this release has neither counts nor scores to draw")
    return alt.vconcat(*map(_chart, tables), title=how_many(release))


def _chart(table: Table) -> Any:
    import altair as alt

    rows = pl.DataFrame(
        [
            (shown(row.item, 60), shown(group, 60), bar.value, bar.low, bar.high)
            for row in table.rows[: table.telling]
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
    column = alt.Column("group:N", sort=None, title=None)  # the table's title names it
    return drawn.facet(column=column, title=table.title)
