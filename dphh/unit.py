"""The unit: whose rows belong together. A user by one column or, by several, less than a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from dphh.errors import UsageError
from dphh.periods.period import Period

#: The column that says whose row it is, or several that say it together.
User = str | tuple[str, ...]
#: How it is known that each row of a frame or a view comes of one user's rows alone: its query was
#: seen to take rows one by one, or its owner says so, or it is taken for granted.
RowWise = Literal["seen", "said", "assumed"]


def checked_user(user: str | Sequence[str]) -> User:
    columns = [user] if isinstance(user, str) else user
    of_texts = isinstance(columns, (list, tuple)) and all(
        isinstance(column, str) and column for column in columns
    )
    if not of_texts or not columns or len({*columns}) < len(columns):
        raise UsageError(
            f"user: found {user!r}; name the column that says whose row it is, or several columns "
            "that say it together, each once"
        )
    return columns[0] if len(columns) == 1 else tuple(columns)


def columns_of(user: User) -> tuple[str, ...]:
    return (user,) if isinstance(user, str) else user


def as_json(user: User) -> str | list[str]:
    return user if isinstance(user, str) else list(user)


def named(user: User) -> str:
    return " and ".join(columns_of(user))


def whom(user: User, period: Period | None = None) -> str:
    """Whom a promise is made to, so that nobody takes it for more."""
    who = "each user" if isinstance(user, str) else f"each combination of {named(user)}"
    if period is not None:
        return f"{who} in each {period.noun}{period.of_column}; less to a person, over many of them"
    return who if isinstance(user, str) else f"{who}; less to a person, who may be in many of them"


def counted_by(user: User, period: Period | None = None) -> str:
    """What an account protects."""
    within = "" if period is None else f" within each {period.noun}{period.of_column}"
    if isinstance(user, str):
        return f"users by the column {user!r}{within}"
    return f"combinations of the columns {', '.join(map(repr, user))}{within}"


def asked_by(user: User, period: Period | None) -> str:
    """How the unit is asked for."""
    return f"user={as_json(user)!r}" + ("" if period is None else f", period={str(period)!r}")


def checked_row_wise(found: object) -> RowWise | None:
    """As a manifest or a written plan has it; None of files, whose rows are as they are."""
    for known in get_args(RowWise):
        if found == known:
            return known  # type: ignore[no-any-return]
    if found is None:
        return None
    raise UsageError(f"row_wise: found {found!r}; it is one of {', '.join(get_args(RowWise))}")


def proviso(row_wise: RowWise | None) -> str | None:
    """What a promise hangs on, where the rows were not seen to be made one by one."""
    match row_wise:
        case "said":
            return (
                "provided that each row of this table comes of one user's rows alone, whoever else "
                "is there: its query joins, groups, orders or limits rows or was not seen, and "
                "whoever ran it answers for it (row_wise=True)"
            )
        case "assumed":
            return (
                "provided that this table was made row by row, so that each of its rows comes of "
                "one user's rows alone, whoever else is there: how it was made cannot be seen"
            )
    return None
