"""Copies of a ledger, to be put back if it is lost."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dphh.errors import LedgerError, UsageError
from dphh.files.whole_files import unwritable_error, write_whole
from dphh.ledger.edits import edit_in
from dphh.ledger.paying import read_other_files
from dphh.ledger.schema import exists, reading
from dphh.ledger.tables import accounts_in
from dphh.reader.corpus import corpus_from_json

_STOP = "Nothing was written. Stop: keep your copy, and ask who owns the ledger"

_RUNS = """SELECT sequence, run_id, id_given, digest, data, files, analyst, who, verb, parameters,
    source, events, epsilon, delta, recorded FROM runs"""
_CHARGES = "SELECT run, name FROM charges JOIN accounts ON account = id"
_CHANGES = "SELECT account, what, id, analyst, was, now, who, recorded, after, state FROM history"
#: What a ledger only adds to, so that an earlier state of it has no other.
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
            "UPDATE runs SET state = 'failed', key = NULL, setting = NULL WHERE state <> 'settled'"
        )
        return copy.serialize()


def _check_is_earlier_copy(con: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that a new copy of this ledger must not replace: any file but an earlier copy
    of this same ledger."""
    if not exists(path):
        return
    try:
        with reading(path) as there:
            theirs = _what_only_grows(there)
    except LedgerError:
        raise UsageError(
            f"backup: {path} exists, is no copy of a ledger, and would be lost. Nothing was "
            "written. Name another file"
        ) from None
    ours = _what_only_grows(con)
    if not all(theirs[query] <= ours[query] for query in _ONLY_GROWS):
        raise UsageError(
            f"backup: {path} has runs or changes that this ledger does not have: it is another "
            f"ledger's copy, or this ledger was edited or put back from an older one. {_STOP}"
        )
    runs = {sequence for sequence, *_ in theirs[_RUNS]}
    charges, changes = (ours[each] - theirs[each] for each in (_CHARGES, _CHANGES))
    explained = {account for account, what, *_ in changes if what in ("account", "corpus")}
    of_others = _charged_for_other_files(con)
    if any(
        account not in explained and (run in runs or (run, account) in of_others)
        for run, account in charges
    ):
        raise UsageError(
            f"backup: an account pays for a run that {path} has without it, or whose files are not "
            f"in its data, and no change since says why: this ledger was edited by hand. {_STOP}"
        )
    last = [max((change[at] for change in theirs[_CHANGES]), default=0) for at in (2, 7)]
    query = "SELECT id FROM history WHERE after >= ? AND id > ? AND recorded >= ?"
    later = {number for (number,) in con.execute(query, (max(runs, default=0), *last))}
    if any(number not in later for _, _, number, *_ in changes):
        raise UsageError(
            f"backup: a change is recorded as if it were older than {path}, which does not have "
            f"it: this ledger was edited by hand. {_STOP}"
        )


def _charged_for_other_files(con: sqlite3.Connection) -> set[tuple[int, str]]:
    """The charges, as of `_CHARGES`, of accounts for runs that read files which they do not
    have."""
    charged: dict[tuple[str, str], list[int]] = {}
    query = """SELECT run, name, runs.source FROM charges JOIN accounts ON account = id
        JOIN runs ON run = sequence"""
    for run, account, source in con.execute(query):
        charged.setdefault((account, source), []).append(run)
    owned = {each.name: each.corpus for each in accounts_in(con, with_bookings=False)}
    return {
        (run, account)
        for (account, source), runs in charged.items()
        if read_other_files(corpus_from_json(json.loads(source)), owned[account])
        for run in runs
    }


def _what_only_grows(con: sqlite3.Connection) -> dict[str, set[tuple[Any, ...]]]:
    return {query: {tuple(row) for row in con.execute(query)} for query in _ONLY_GROWS}
