"""The user columns: one identifies a user; several together identify less, as a user's month."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.errors import UsageError

#: The promise about a frame, a relation or a view holds only on this condition.
PROMISE_CONDITION = "each row was made from rows of its own user"
#: For a user column of a type whose equal values may have two spellings, such as 0.0 and -0.0.
USER_TYPE_MESSAGE = (
    "{option}: column {column} is {kind}; cast it to text or to an integer in a view, so that "
    "equal users are spelled equally"
)
ROWS_WITHOUT_USER_MESSAGE = (
    "user: found rows with a NULL user id, and dphh cannot bound what they add; "
    "null_users='drop' leaves them out, or give each row a user id"
)


def checked_user(user: str | Sequence[str]) -> tuple[str, ...]:
    """Check the option `user`; returns the user columns."""
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


def user_option(user: tuple[str, ...]) -> str | list[str]:
    """The user columns as the option `user` takes them: one as a text, several as a list."""
    return user[0] if len(user) == 1 else list(user)


def unit_in_words(user: tuple[str, ...]) -> str:
    """The protected unit, for privacy statements: each user, or each combination of columns."""
    if len(user) == 1:
        return "each user"
    columns = " and ".join(user)
    return f"each combination of {columns}; less to a person, who may have many of them"


def unit_and_columns(user: tuple[str, ...]) -> str:
    """The protected unit with the names of all its columns, for what accounts say."""
    if len(user) == 1:
        return f"users by the column {user[0]!r}"
    return f"combinations of the columns {', '.join(map(repr, user))}"
