"""The history of owners' changes: of caps, shares, tokens, declared groups, names and locations.

Each change is one row, written in the change's own transaction, and never changed or removed. Times
are days, as everywhere in the ledger. `who` is the operating system's user name, which is a note
and not a proof.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from dphh.ledger.budget import Budget, Cap

What = Literal["cap", "share", "token", "groups", "name", "place"]


@dataclass(frozen=True)
class Change:
    """One change that an owner made."""

    when: datetime  # the day
    who: str | None  # None where an earlier dphh, which recorded nobody, made it
    what: What
    account: str | None  # its name then; None of a token, which is for all of an analyst's shares
    analyst: str | None
    was: str | None  # None: there was none
    now: str | None  # None: there is none any more

    def to_json(self) -> dict[str, Any]:
        return {**self.__dict__, "when": self.when.isoformat()}

    def __str__(self) -> str:
        whose = "" if self.analyst is None else f" of {self.analyst}"
        before = "" if self.was is None else f", before {self.was}"
        by = "" if self.who is None else f", by {self.who}"
        return f"{self.when:%Y-%m-%d} {self.what}{whose}: {self.now or 'none'}{before}{by}"


def note(
    con: sqlite3.Connection,
    day: float,
    what: What,
    account: str | None,
    was: Budget | str | None,
    now: Budget | str | None,
    analyst: str | None = None,
) -> None:
    """Record a change, inside the transaction that makes it."""
    con.execute(
        "INSERT INTO history (account, analyst, what, was, now, who, recorded) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (account, analyst, what, _as_text(was), _as_text(now), _system_user(), day),
    )


def caps_as_text(cap: Cap | None, person: Budget | None) -> str | None:
    """An account's cap as text, with the cap of a person over all periods if it has one."""
    if cap is None or person is None:
        return _as_text(cap)
    return f"{_as_text(cap)}; of a person {_as_text(Budget(person.epsilon, person.delta))}"


def changes(con: sqlite3.Connection, name: str | None = None) -> list[Change]:
    """The changes in order; those of one account include its earlier names and its analysts'
    tokens."""
    if not _table_exists(con, "history"):
        return []
    query = "SELECT recorded, who, what, account, analyst, was, now FROM history ORDER BY id"
    found = [
        Change(datetime.fromtimestamp(day, UTC), *rest) for day, *rest in con.execute(query)
    ]  # fmt: skip
    if name is None:
        return found
    names = {name}
    for change in reversed(found):
        if change.what == "name" and change.now in names and change.was is not None:
            names.add(change.was)
    analysts = {change.analyst for change in found if change.account in names}
    return [
        change
        for change in found
        if change.account in names or (change.account is None and change.analyst in analysts)
    ]


def note_earlier(con: sqlite3.Connection) -> None:
    """For a ledger of a version without history: record its caps and shares, without an owner's
    name."""
    tables = [("caps", "'cap'", "NULL")]
    if _table_exists(con, "shares"):
        tables.append(("shares", "'share'", "analyst"))
    for table, what, analyst in tables:
        query = f"""
            SELECT name, {what}, {analyst}, epsilon, delta, recorded
            FROM {table} t JOIN accounts a ON a.id = account ORDER BY t.id
        """
        before: dict[tuple[str, str | None], str] = {}
        for name, kind, whose, epsilon, delta, day in con.execute(query).fetchall():
            now = _as_text(Budget(epsilon, delta))
            con.execute(
                "INSERT INTO history (account, analyst, what, was, now, recorded) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (name, whose, kind, before.get((name, whose)), now, day),
            )
            before[name, whose] = str(now)


def _as_text(value: Budget | str | None) -> str | None:
    if not isinstance(value, Budget):
        return value
    kept = f", kept by {value.kept}" if isinstance(value, Cap) and value.kept != "open" else ""
    return f"epsilon {value.epsilon:g}, delta {value.delta:g}{kept}"


def _system_user() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # no such table here, or a container's number without a name
        return os.environ.get("USERNAME") or f"user {getattr(os, 'getuid', lambda: 'unknown')()}"


def _table_exists(con: sqlite3.Connection, table: str) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    return bool(con.execute(query, (table,)).fetchone()[0])
