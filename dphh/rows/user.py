"""The columns that identify the unit: one for a user, several for a combination, which is less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from dphh.errors import UsageError
from dphh.rows.period import PeriodColumn

#: The column that identifies a row's user, or several columns that do so together.
UserColumns = str | tuple[str, ...]
#: How dphh knows that each row of a frame or a view derives from one user's rows alone: its query
#: was "seen" to take rows one by one, the caller "said" so, or it is "assumed".
RowWise = Literal["seen", "said", "assumed"]


def checked_user(user: str | Sequence[str]) -> UserColumns:
    columns = [user] if isinstance(user, str) else user
    of_texts = isinstance(columns, (list, tuple)) and all(
        isinstance(column, str) and column for column in columns
    )
    if not of_texts or not columns or len({*columns}) < len(columns):
        raise UsageError(
            f"user: found {user!r}; name the column of user ids, or several different columns that "
            "identify a user together"
        )
    return columns[0] if len(columns) == 1 else tuple(columns)


def columns_of(user: UserColumns) -> tuple[str, ...]:
    return (user,) if isinstance(user, str) else user


def as_json(user: UserColumns) -> str | list[str]:
    return user if isinstance(user, str) else list(user)


def named(user: UserColumns) -> str:
    return " and ".join(columns_of(user))


def whom(user: UserColumns, period: PeriodColumn | None = None) -> str:
    """The protected unit in words, for privacy statements."""
    who = "each user" if isinstance(user, str) else f"each combination of {named(user)}"
    if period is not None:
        return f"{who} in each {period.noun}{period.of_column}; less to a person, over many of them"
    return who if isinstance(user, str) else f"{who}; less to a person, who may be in many of them"


def counted_by(user: UserColumns, period: PeriodColumn | None = None) -> str:
    """The unit that an account protects, in words."""
    within = "" if period is None else f" within each {period.noun}{period.of_column}"
    if isinstance(user, str):
        return f"users by the column {user!r}{within}"
    return f"combinations of the columns {', '.join(map(repr, user))}{within}"


def asked_by(user: UserColumns, period: PeriodColumn | None) -> str:
    """The options that declare this unit, as they are written in Python."""
    return f"user={as_json(user)!r}" + ("" if period is None else f", period={str(period)!r}")


def checked_row_wise(found: object) -> RowWise | None:
    """The value found in a manifest or a saved plan, checked; None for files."""
    for known in get_args(RowWise):
        if found == known:
            return known  # type: ignore[no-any-return]
    if found is None:
        return None
    raise UsageError(f"row_wise: found {found!r}; it is one of {', '.join(get_args(RowWise))}")


def proviso(row_wise: RowWise | None) -> str | None:
    """The condition of the privacy statement where the query was not seen to be row by row."""
    match row_wise:
        case "said":
            return (
                "provided that each row of this table derives from one user's rows alone, whoever "
                "else is in the data: its query joins, groups, orders or limits rows or could not "
                "be inspected, and the caller assures this (row_wise=True)"
            )
        case "assumed":
            return (
                "provided that each row of this table derives from one user's rows alone, whoever "
                "else is in the data: how the table was made cannot be inspected"
            )
    return None
