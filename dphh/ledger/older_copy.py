"""Detects a ledger that was replaced by an older copy, which lacks what was spent since.

A small file beside the ledger, `ledger.sqlite.seen` (the note), has the numbers of the ledger's
last run and last cap. These numbers only grow, because no row is ever deleted, except the caps of
an account that never paid and is removed; then the note is lowered too. The note is written under
the ledger's write lock, from committed rows, so it is never ahead of the ledger. A ledger with
smaller numbers than its note has been replaced.

A replacement of the note too, or of the whole disk, is not detected: nothing on that disk remembers
it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from dphh.errors import LedgerError, UsageError
from dphh.files.whole_files import refuse_other_file

#: The note's suffix, appended to the ledger's file name.
SUFFIX = ".seen"
#: The suffix of a note that is being written.
NEW = ".new"


def refuse_older(con: sqlite3.Connection, path: Path) -> None:
    """Inside a write transaction: refuse a ledger behind its note, and bring the note up to it."""
    if (said := behind(con, path)) is not None:
        raise LedgerError(said)
    note, now = path.with_name(path.name + SUFFIX), _last_numbers(con)
    if now != _read_note(note):
        with suppress(OSError):  # nobody spends less for the lack of a note
            _write_note(note, now)


def behind(con: sqlite3.Connection | None, path: Path) -> str | None:
    """The error message for a ledger with fewer runs or caps than its note says, or None."""
    note = path.with_name(path.name + SUFFIX)
    before, now = _read_note(note), (0, 0) if con is None else _last_numbers(con)
    if all(number >= noted for number, noted in zip(now, before, strict=True)):
        return None
    return (
        f"The ledger {path} has {now[0]:,} runs and {now[1]:,} caps, and had {before[0]:,} "
        f"and {before[1]:,}: it was replaced by an older copy, or lost, and what was spent "
        "since is not in it. Put the newest copy back. If there is none, remove "
        f"{note.name} beside it, and lower the caps at once by what you know was spent "
        "(`dphh ledger cap`)."
    )


def refuse_newer_copy(con: sqlite3.Connection, copy: Path) -> None:
    """Refuse to write a backup over a file that is not an earlier copy of this ledger."""
    refuse_other_file("backup", copy, b"SQLite format 3\0")
    if not copy.is_file() or not copy.stat().st_size:
        return
    if copy.with_name(copy.name + SUFFIX).exists():
        raise UsageError(f"backup: {copy} is a ledger in use; name another file")
    other = sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        missing = _run_ids(other) - _run_ids(con)
        changes = [_number_of_changes(each) for each in (other, con)]
    except sqlite3.Error:
        raise UsageError(
            f"backup: {copy} is no dphh ledger, and would be lost; name another file, or remove "
            "this one first"
        ) from None
    finally:
        other.close()
    if missing or changes[0] > changes[1]:
        raise UsageError(
            f"backup: {copy} has {len(missing):,} runs that this ledger has not, and "
            f"{changes[0]:,} changes by owners for {changes[1]:,}: it is newer, or a copy of "
            "another ledger; name another file"
        )


def _run_ids(con: sqlite3.Connection) -> set[str]:
    return {run_id for (run_id,) in con.execute("SELECT run_id FROM runs")}


def _number_of_changes(con: sqlite3.Connection) -> int:
    """The number of owners' changes; 0 for a ledger of a version without history."""
    there = con.execute("SELECT 1 FROM sqlite_master WHERE name = 'history'").fetchone()
    return con.execute("SELECT count(*) FROM history").fetchone()[0] if there else 0


def lower_note(con: sqlite3.Connection, path: Path) -> None:
    """Lower the note, inside a write transaction that removed caps."""
    with suppress(OSError):
        _write_note(path.with_name(path.name + SUFFIX), _last_numbers(con))


def _last_numbers(con: sqlite3.Connection) -> tuple[int, int]:
    """The numbers of the last run and the last cap."""
    query = "SELECT coalesce(max({}), 0) FROM {}"
    numbers = [
        con.execute(query.format(*of)).fetchone()[0]
        for of in (("sequence", "runs"), ("id", "caps"))
    ]
    return int(numbers[0]), int(numbers[1])


def _read_note(note: Path) -> tuple[int, int]:
    """The numbers in the note; zeros if there is no readable note."""
    try:
        runs, caps = map(int, note.read_text().split())
    except (OSError, ValueError):
        return 0, 0
    return runs, caps


def _write_note(note: Path, numbers: tuple[int, int]) -> None:
    """Write the note atomically, readable by the ledger's owner only."""
    new = note.with_name(note.name + NEW)
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, " ".join(map(str, numbers)).encode())
    finally:
        os.close(file)
    new.replace(note)
