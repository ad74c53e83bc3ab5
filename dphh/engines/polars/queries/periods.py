"""`sql/rows/periods.sql` in Polars: the period of a row. Each function depends on one row only."""

from __future__ import annotations

import polars as pl


def period_by_day(day: pl.Expr) -> pl.Expr:
    """Days since 1970-01-01."""
    return day.cast(pl.Int32).cast(pl.Int64)


def period_by_week(day: pl.Expr) -> pl.Expr:
    """ISO weeks, which begin on Mondays; 1970-01-01 was a Thursday."""
    return (period_by_day(day) + 3).floordiv(7)


def period_by_month(day: pl.Expr) -> pl.Expr:
    return _year_of(day) * 12 + day.dt.month().cast(pl.Int64) - 1


def period_by_quarter(day: pl.Expr) -> pl.Expr:
    return _year_of(day) * 4 + day.dt.quarter().cast(pl.Int64) - 1


def period_by_year(day: pl.Expr) -> pl.Expr:
    return _year_of(day)


def period_by_number(number: pl.Expr) -> pl.Expr:
    """The number itself; NULL if it is not a whole number of 64 bits."""
    return number.cast(pl.Int64, strict=False)


def written_date(content: pl.Expr) -> pl.Expr:
    """A date spelled as text, as in text files and in folders' names."""
    spelled = content.str.contains(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z")
    return pl.when(spelled).then(content).str.to_date("%Y-%m-%d", strict=False)


def written_number(content: pl.Expr) -> pl.Expr:
    return pl.when(content.str.contains(r"^-?[0-9]{1,18}\z")).then(content)


def spelled_in_bytes(value: pl.Expr) -> list[pl.Expr]:
    """One of the values that identify a row's unit together, as its length in bytes and its
    text."""
    text = value.cast(pl.String)
    return [text.str.len_bytes().cast(pl.String), pl.lit(":"), text]


def _year_of(day: pl.Expr) -> pl.Expr:
    return day.dt.year().cast(pl.Int64)
