"""The unit: whose rows belong together. A user by one column or, by several, less than a user."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.errors import UsageError

#: The column that says whose row it is, or several that say it together.
User = str | tuple[str, ...]


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
    """Whom a promise is made to, so that nobody takes it for more."""
    if isinstance(user, str):
        return "each user"
    return f"each combination of {named(user)}; less to a person, who may be in many of them"


def counted_by(user: User) -> str:
    """What an account protects."""
    if isinstance(user, str):
        return f"users by the column {user!r}"
    return f"combinations of the columns {', '.join(map(repr, user))}"
