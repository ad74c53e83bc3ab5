"""The columns that identify the unit: one for a user, several for a combination, which is less."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.errors import UsageError

#: The column that identifies a row's user, or several columns that do so together.
UserColumns = str | tuple[str, ...]
#: The condition of a statement about a frame, a relation or a view, whose rows dphh takes as given.
PROVIDED = "each row was made from rows of its own user"
#: Of a type whose equal values may be written in two ways, such as 0.0 and -0.0.
NO_USERS = (
    "{option}: column {column} is {kind}; cast it to text or to an integer in a view, so that "
    "equal users are spelled equally"
)
ROWS_WITHOUT_USER = (
    "user: found rows with a NULL user id, and dphh cannot bound what they add; "
    "null_users='drop' leaves them out, or give each row a user id"
)


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


def whom(user: UserColumns) -> str:
    """The protected unit in words, for privacy statements."""
    if isinstance(user, str):
        return "each user"
    return f"each combination of {named(user)}; less to a person, who may be in many of them"


def counted_by(user: UserColumns) -> str:
    """The unit that an account protects, in words."""
    if isinstance(user, str):
        return f"users by the column {user!r}"
    return f"combinations of the columns {', '.join(map(repr, user))}"
