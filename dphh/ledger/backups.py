"""Copies of a ledger, to be put back if it is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from dphh.errors import LedgerError, UsageError
from dphh.ledger.schema import exists, reading

#: What a ledger only adds to, so that an earlier state of it has no other.
_ONLY_GROWS = (
    "SELECT run_id, digest FROM runs",
    "SELECT id, what, was, now, who, recorded FROM history",
    "SELECT account FROM history UNION SELECT was FROM history WHERE what = 'name'",
)


def copy_of(con: sqlite3.Connection) -> bytes:
    """The ledger as the bytes of an SQLite file, as of this transaction, without what unfinished
    runs need to go on.

    A run may go on after the copy and show what it draws. Put back, the ledger must not draw the
    same once more for one price; and the run's key, which is overwritten when it settles, must not
    survive in a copy.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        con.backup(copy)
        copy.execute("PRAGMA secure_delete = ON")
        copy.execute(
            "DELETE FROM drawn WHERE run IN (SELECT sequence FROM runs WHERE state <> 'settled')"
        )
        copy.execute(
            "UPDATE runs SET state = 'failed', key = NULL, setting = NULL, process = NULL "
            "WHERE state <> 'settled'"
        )
        return copy.serialize()


def check_is_earlier_copy(con: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that a new copy of this ledger must not replace: any file but an earlier copy
    of this same ledger."""
    if not exists(path):
        return
    try:
        with reading(path) as there:
            theirs = [{tuple(row) for row in there.execute(query)} for query in _ONLY_GROWS]
    except LedgerError:
        raise UsageError(
            f"backup: {path} exists, is no copy of a ledger, and would be lost. Nothing was "
            "written. Name another file"
        ) from None
    for query, found in zip(_ONLY_GROWS, theirs, strict=True):
        if not found <= {tuple(row) for row in con.execute(query)}:
            raise UsageError(
                f"backup: {path} has runs or changes that this ledger does not have: it is "
                "another ledger's copy, or this ledger was put back from an older one. Nothing was "
                "written. Name another file"
            )
