"""A release as an Altair chart, which notebooks show and which saves as PNG, SVG or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dphh.errors import UsageError
from dphh.report.bar_tables import tables_of
from dphh.report.counted import by_of, how_many
from dphh.report.people import Released
from dphh.wording.options import check_whole
from dphh.wording.shown import shown

if TYPE_CHECKING:
    import altair as alt


def plot(release: Released, top: int) -> alt.FacetChart:
    """Bars of users, with intervals that hold together; else of scores, which have none."""
    check_whole("top", top)
    try:
        import altair as alt
    except ImportError:
        raise UsageError("plot: Altair is not installed; pip install 'dphh[plot]'") from None
    rows = [
        {"table": table.title, "item": shown(row.item, 60), "group": shown(group, 60),
         "value": bar.value, "low": bar.low, "high": bar.high}
        for table in tables_of(release, top)
        for row in table.first
        for bar, group in zip(row.bars, table.groups or ("",), strict=True)
        if bar.value is not None
    ]  # fmt: skip
    if not rows:
        raise UsageError("plot: this release has neither counts nor scores to draw")
    people = rows[0]["low"] is not None
    named = "users" if people else "score (orders items of one length; no number of people)"
    item = alt.Y("item:N", sort=None, title=None, axis=alt.Axis(labelLimit=400))
    told = ["item:N", *(["group:N"] if rows[0]["group"] else []), "value:Q"]
    base = alt.Chart(pl.DataFrame(rows, infer_schema_length=None)).encode(y=item)
    drawn = base.mark_bar().encode(x=alt.X("value:Q", title=named), tooltip=told)
    if people:
        lines = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
        drawn = alt.layer(drawn, lines)
    by = by_of(release.manifest) if rows[0]["group"] else None
    facets = drawn.facet(
        row=alt.Row("table:N", sort=None, title=None),
        column=alt.Column("group:N", sort=None, title=by),
        title=how_many(release.table, release.manifest),
    )
    chart: alt.FacetChart = facets.resolve_scale(
        y="independent", x="shared" if people else "independent"
    )
    return chart
