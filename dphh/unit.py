"""The unit of privacy: a user, by one column, or less than a user, by several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from dphh.errors import UsageError

#: The column that identifies a row's user, or several columns that do so together.
User = str | tuple[str, ...]
#: How dphh knows that each row of a frame or a view derives from one user's rows alone: its query
#: was "seen" to take rows one by one, the caller "said" so, or it is "assumed".
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


def whom(user: User) -> str:
    """Whom the privacy statement protects, in words."""
    if isinstance(user, str):
        return "each user"
    return f"each combination of {named(user)}; less to a person, who may be in many of them"


def counted_by(user: User) -> str:
    """What an account of the ledger protects, in words."""
    if isinstance(user, str):
        return f"users by the column {user!r}"
    return f"combinations of the columns {', '.join(map(repr, user))}"


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
