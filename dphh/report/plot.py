"""A release as an Altair chart, which notebooks show and which saves as PNG, SVG or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from dphh.errors import UsageError
from dphh.report.bar_tables import TOGETHER, Table, meaning_of_numbers, tables_of
from dphh.report.sentences import Released, are_periods, items_line
from dphh.wording.lines import visible_text
from dphh.wording.options import check_whole

if TYPE_CHECKING:
    import altair as alt

#: The width of each group's column of a chart, in pixels.
WIDTH_OF_GROUP = 120
#: The columns of numbers in a chart's data: a bar's length, and the ends of its interval.
_BAR_COLUMNS = ("value", "low", "high")


def plot(release: Released, top: int) -> alt.VConcatChart:
    """A chart of each table, below one another: bars of numbers of users, with their intervals; or
    bars of scores, which have no intervals."""
    check_whole("top", top)
    try:
        import altair as alt
    except ImportError:
        raise UsageError("plot: Altair is not installed; pip install 'dphh[plot]'") from None
    if not meaning_of_numbers(release, tables := tables_of(release, top)):
        raise UsageError("plot: this release has neither counts nor scores to draw")
    chart = _chart_over_time if are_periods(release.manifest) else _chart
    return alt.vconcat(*map(chart, tables), title=items_line(release))


def _chart_over_time(table: Table) -> Any:
    """A line for each item, through its numbers in the order of time, in the band of its
    intervals."""
    import altair as alt

    period = alt.X("group_name:O", sort=None, title=None)
    users = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, table.scale]))
    base = alt.Chart(_drawn_rows(table), width=300, height=60).encode(x=period)
    tooltip = ["item", "group_name", *_BAR_COLUMNS]
    band = base.mark_area(opacity=0.3).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(point=True).encode(y=users, tooltip=tooltip)
    header = alt.Header(labelAngle=0, labelAlign="left", labelLimit=300)
    return (band + line).facet(
        row=alt.Row("item:N", sort=None, title=None, header=header), title=table.title
    )


def _drawn_rows(table: Table) -> pl.DataFrame:
    """A row for each bar; by groups, without the bars of all groups together."""
    return pl.DataFrame(
        [
            (
                visible_text(row.wording),
                visible_text(group or TOGETHER),
                bar.value,
                bar.low,
                bar.high,
            )
            for row in table.rows
            for bar, group in zip(row.bars, table.groups, strict=True)
            if group is not None or len(row.bars) == 1
        ],
        {"item": pl.String, "group_name": pl.String, **dict.fromkeys(_BAR_COLUMNS, pl.Float64)},
        orient="row",
    )


def _chart(table: Table) -> Any:
    import altair as alt

    rows = _drawn_rows(table)
    people = rows["low"].count() > 0
    axis_title = "users" if people else "score (no number of people)"
    item = alt.Y("item:N", sort=None, title=None, axis=alt.Axis(labelLimit=300))
    value = alt.X("value:Q", title=axis_title, scale=alt.Scale(domain=[0, table.scale]))
    base = alt.Chart(rows, width=WIDTH_OF_GROUP if len(table.groups) > 1 else 300).encode(y=item)
    chart = base.mark_bar().encode(x=value, tooltip=["item", "group_name", *_BAR_COLUMNS])
    if people:
        chart = chart + base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    if len(table.groups) == 1:
        return chart.properties(title=table.title)
    header = alt.Header(labelLimit=WIDTH_OF_GROUP)
    # The column needs no title: the table's title names the column of the groups.
    column = alt.Column("group_name:N", sort=None, title=None, header=header)
    return chart.facet(column=column, title=table.title)
