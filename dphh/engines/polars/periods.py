"""The unit and the period of a row, as Polars expressions (`queries/periods.py`)."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import polars as pl

from dphh.corpus import Corpus
from dphh.engines.polars.conditions import kept
from dphh.engines.polars.queries import periods as sql
from dphh.errors import CorpusError
from dphh.rows.period import PeriodColumn, Spans
from dphh.sources.finding import NO_PERIOD, NO_UNITS
from dphh.sources.near_periods import FIRST, LAST

_PERIOD_FUNCTIONS = {
    "day": sql.period_by_day,
    "week": sql.period_by_week,
    "month": sql.period_by_month,
    "quarter": sql.period_by_quarter,
    "year": sql.period_by_year,
}


def unit_expression(corpus: Corpus, schema: pl.Schema) -> pl.Expr:
    """The unit that a row belongs to. Several values become one text that determines each of them;
    NULL if one of them is NULL."""
    if not corpus.unit_is_spelled:
        column = corpus.columns_of_user[0][1]
        return user_expression(column, schema[column])
    parts: list[pl.Expr] = []
    for option, column in corpus.columns_of_user:
        if not is_plain(schema[column]):
            raise CorpusError(NO_UNITS.format(option=option, column=column, kind=schema[column]))
        parts += sql.spelled_in_bytes(pl.col(column))
    if corpus.period is not None:
        parts += sql.spelled_in_bytes(period_expression(corpus.period, schema))
    return pl.concat_str(parts, ignore_nulls=False)


def counts_expression(corpus: Corpus, schema: pl.Schema) -> pl.Expr:
    """The condition for rows that are read: they have content, meet the corpus's condition and are
    in one of the periods. A row without a period is kept, so that it is refused like a row with a
    NULL user id."""
    holds = pl.col(corpus.content.column).is_not_null()
    if corpus.content.where is not None:
        holds &= kept(corpus.content.where, schema)
    if corpus.period is None or corpus.periods is None:
        return holds
    period = period_expression(corpus.period, schema)
    counted = holds & pl.any_horizontal(
        period.is_null(), *(period.is_between(first, last) for first, last in corpus.periods)
    )
    return counted & _near_periods(corpus.period, corpus.periods, schema[corpus.period.column])


def _near_periods(period: PeriodColumn, periods: Spans, kind: pl.DataType) -> pl.Expr:
    """The comparisons of `sources/near_periods.py` as a Polars expression."""
    zone = kind.time_zone if isinstance(kind, pl.Datetime) else None
    spans = (period.days if zone is None else period.moments)(periods)
    if spans is None or kind not in (pl.Date(), pl.Datetime("us", zone)):
        return pl.lit(True)
    column = pl.col(period.column)

    def day(written: dt.date) -> pl.Expr:
        if kind == pl.Date:
            return pl.lit(written)
        moment = dt.datetime.combine(written, dt.time(), None if zone is None else dt.UTC)
        return pl.lit(moment if zone is None else moment.astimezone(ZoneInfo(zone)))

    near = column.is_null() | (column < day(FIRST)) | (column > day(LAST))
    for first, end in spans:
        near |= (column >= day(first)) & (column < day(end))
    return near


def user_expression(column: str, kind: pl.DataType) -> pl.Expr:
    """The user column, with categorical values as text: their numbers, in order of appearance, must
    not be hashed or sorted."""
    user = pl.col(column)
    return user.cast(pl.String) if isinstance(kind, (pl.Categorical, pl.Enum)) else user


def is_plain(kind: pl.DataType) -> bool:
    """Whether all engines spell the values of this type alike."""
    plain = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Null)
    return kind.is_integer() or isinstance(kind, plain)


def period_expression(period: PeriodColumn, schema: pl.Schema) -> pl.Expr:
    """The number of the row's period; NULL if it has none."""
    column, kind = pl.col(period.column), schema[period.column]
    text = isinstance(kind, (pl.String, pl.Categorical, pl.Enum))
    if period.by == "number":
        if not text and not kind.is_integer():
            raise CorpusError(NO_PERIOD.format(period=period, kind=kind))
        return sql.period_by_number(sql.written_number(column.cast(pl.String)) if text else column)
    if text:
        day = sql.written_date(column.cast(pl.String))
    elif isinstance(kind, pl.Datetime):
        zoned = kind.time_zone is not None
        day = (column.dt.convert_time_zone(period.zone) if zoned else column).dt.date()
    elif kind == pl.Date:
        day = column
    else:
        raise CorpusError(NO_PERIOD.format(period=period, kind=kind))
    return _PERIOD_FUNCTIONS[period.by](day)
