"""Copies of a ledger, to be put back if it is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dphh.errors import LedgerError, UsageError
from dphh.files.whole_files import unwritable_error, write_whole
from dphh.ledger.edits import edit_in
from dphh.ledger.schema import exists, reading

_STOP = "Nothing was written. Stop: keep your copy, and ask who owns the ledger"

_RUNS = """SELECT sequence, run_id, id_given, digest, data, files, analyst, who, verb, parameters,
    source, events, epsilon, delta, recorded, payers FROM runs"""
_CHARGES = "SELECT run, name FROM charges JOIN accounts ON account = id"
_CHANGES = "SELECT account, what, id, analyst, earlier, who, recorded, after, state FROM history"
#: Rows that a ledger adds and never changes, so that an earlier state of it has no others.
_ONLY_GROWS = (
    "SELECT key FROM data_key",
    _RUNS,
    "SELECT run_id, state, changed, attempts, manifest FROM runs WHERE state = 'settled'",
    _CHARGES,
    "SELECT drawn.* FROM drawn JOIN runs ON run = sequence WHERE state = 'settled'",
    _CHANGES,
)


def write_copy(con: sqlite3.Connection, ledger: Path, target: Path) -> int:
    """Write a copy of the ledger, as of this transaction; returns the number of runs in it."""
    if target.exists() and target.samefile(ledger):
        raise UsageError(f"backup: {target} is the ledger itself; name another file")
    if (edited := edit_in(con)) is not None:
        raise UsageError(f"backup: {edited}. {_STOP}")
    _check_is_earlier_copy(con, target)
    try:
        write_whole(target, _copy_of(con), 0o600)
    except OSError as problem:
        raise unwritable_error("backup", target, problem) from None
    ((runs,),) = con.execute("SELECT count(*) FROM runs").fetchall()
    return int(runs)


def _copy_of(con: sqlite3.Connection) -> bytes:
    """The ledger as the bytes of an SQLite file, as of this transaction, without what unfinished
    runs need to go on.

    A run may go on after the copy and show what it draws. A ledger that is put back must not draw
    the same again for one price; and the run's key, which is overwritten when the run settles, must
    not survive in a copy.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        con.backup(copy)
        copy.execute("PRAGMA secure_delete = ON")
        copy.execute(
            "DELETE FROM drawn WHERE run IN (SELECT sequence FROM runs WHERE state <> 'settled')"
        )
        copy.execute(
            "UPDATE runs SET state = 'failed', key = NULL, setting = NULL WHERE state <> 'settled'"
        )
        return copy.serialize()


def _check_is_earlier_copy(con: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that a new copy of this ledger must not replace: any file but an earlier copy
    of this same ledger."""
    if not exists(path):
        return
    try:
        with reading(path) as copy:
            in_copy = _what_only_grows(copy)
    except LedgerError:
        raise UsageError(
            f"backup: {path} exists, is no copy of a ledger, and would be lost. Nothing was "
            "written. Name another file"
        ) from None
    in_ledger = _what_only_grows(con)
    if not all(in_copy[query] <= in_ledger[query] for query in _ONLY_GROWS):
        raise UsageError(
            f"backup: {path} has runs or changes that this ledger does not have: it is another "
            f"ledger's copy, or this ledger was edited or put back from an older one. {_STOP}"
        )
    runs = {sequence for sequence, *_ in in_copy[_RUNS]}
    changes = in_ledger[_CHANGES] - in_copy[_CHANGES]
    last = [max((change[column] for change in in_copy[_CHANGES]), default=0) for column in (2, 6)]
    query = "SELECT id FROM history WHERE after >= ? AND id > ? AND recorded >= ?"
    later = {number for (number,) in con.execute(query, (max(runs, default=0), *last))}
    if any(number not in later for _, _, number, *_ in changes):
        raise UsageError(
            f"backup: a change is recorded as if it were older than {path}, which does not have "
            f"it: this ledger was edited by hand. {_STOP}"
        )


def _what_only_grows(con: sqlite3.Connection) -> dict[str, set[tuple[Any, ...]]]:
    return {query: {tuple(row) for row in con.execute(query)} for query in _ONLY_GROWS}
