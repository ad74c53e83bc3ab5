"""Comparisons of a date column itself that follow from the condition on its periods.

Readers compare a column with the statistics of a file's row groups, and skip those that hold no
such row. They cannot do that by the number of a period, which is computed. A comparison here leaves
out no row that counts, and none that is refused: a NULL, and days before FIRST or after LAST, stay.

The engine skips while a run goes on; nothing is decided or shown by what it skipped. All files'
schemas are read as before, because a type that depended on which files hold a period would let one
user's row change how others' rows are read.
"""

from __future__ import annotations

import datetime as dt

from dphh.rows.period import PeriodColumn, Spans

#: Rows before and after these days stay: infinite dates, and what another calendar wrote.
FIRST, LAST = dt.date(1, 1, 3), dt.date(9999, 12, 28)


def near_sql(
    period: PeriodColumn, periods: Spans, column: str, literal: str | None, *, zoned: bool
) -> str:
    """The comparisons, to follow a condition, in DuckDB's or Spark's SQL. `literal`: the type's
    name before a literal; None if the type has no comparison here. `zoned`: literals are in UTC."""
    spans = (period.moments if zoned else period.days)(periods)
    if literal is None or spans is None:
        return ""
    zone = " 00:00:00+00:00" if zoned else ""

    def day(written: dt.date) -> str:
        return f"{literal} '{written}{zone}'"

    near = [f"{column} IS NULL", f"{column} < {day(FIRST)}", f"{column} > {day(LAST)}"]
    near += [f"({column} >= {day(first)} AND {column} < {day(end)})" for first, end in spans]
    return f" AND ({' OR '.join(near)})"
