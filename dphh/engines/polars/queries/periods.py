"""`sql/rows/periods.sql`: which period a row is in. Each function looks at one row."""

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
    """What is no whole number of 64 bits is no period."""
    return number.cast(pl.Int64, strict=False)


def written_date(content: pl.Expr) -> pl.Expr:
    """Files of text and the names of folders spell them."""
    spelled = content.str.contains(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z")
    return pl.when(spelled).then(content).str.to_date("%Y-%m-%d", strict=False)


def written_number(content: pl.Expr) -> pl.Expr:
    return pl.when(content.str.contains(r"^-?[0-9]{1,18}\z")).then(content)


def spelled_in_bytes(value: pl.Expr) -> list[pl.Expr]:
    """One of several values that say together whose row it is: its length in bytes, and it."""
    text = value.cast(pl.String)
    return [text.str.len_bytes().cast(pl.String), pl.lit(":"), text]


def _year_of(day: pl.Expr) -> pl.Expr:
    return day.dt.year().cast(pl.Int64)
