"""The columns that identify the unit: one for a user, several for a combination, which is less."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.errors import UsageError

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


def checked_user(user: str | Sequence[str]) -> tuple[str, ...]:
    """The column that identifies a row's user, or several columns that do so together."""
    columns = [user] if isinstance(user, str) else user
    of_texts = isinstance(columns, (list, tuple)) and all(
        isinstance(column, str) and column for column in columns
    )
    if not of_texts or not columns or len({*columns}) < len(columns):
        raise UsageError(
            f"user: found {user!r}; name the column of user ids, or several different columns that "
            "identify a user together"
        )
    return tuple(columns)


def as_json(user: tuple[str, ...]) -> str | list[str]:
    """As it is written in an option: one column by its name."""
    return user[0] if len(user) == 1 else list(user)


def whom(user: tuple[str, ...]) -> str:
    """The protected unit in words, for privacy statements."""
    if len(user) == 1:
        return "each user"
    columns = " and ".join(user)
    return f"each combination of {columns}; less to a person, who may be in many of them"


def counted_by(user: tuple[str, ...]) -> str:
    """The unit that an account protects, in words."""
    if len(user) == 1:
        return f"users by the column {user[0]!r}"
    return f"combinations of the columns {', '.join(map(repr, user))}"
