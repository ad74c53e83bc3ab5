"""Marks of files: short hashes that recognise moved files, so that their account still pays.

A mark is forty bits of a keyed hash of a file's size, its time of change, its first bytes and its
last, where Parquet keeps its footer. Moving a file keeps all of these, on one disk or to another
(`mv`, `cp -p`, `rsync -a`); writing it anew does not.

A reader of the ledger must not learn what a file holds, nor how many files there are (in folders
named by user, that is the number of users). So each ledger has its own key, and marks of two
ledgers do not compare. Every account has the same number of slots; unused slots have random marks.
The time of change is part of a mark because a guess at a file's contents lacks it: for a reader who
does not know the time within a minute, 200 of the minute's nanoseconds fit a wrong guess too
(docs/threats.md). So a copy with another time is another file.

Functions that take a connection work inside the caller's transaction.
"""

# Places are texts, as `Places` has them.
# ruff: noqa: PTH116, PTH123
from __future__ import annotations

import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from dphh.ledger.schema import has_column, one_verb_at_a_time

BYTES_OF_MARK = 5
#: The number of marks that an account stores; of more files, a random choice of that many.
SLOTS = 4096
#: Bytes of a file's beginning and end.
FIRST, LAST = 4 * 1024, 16 * 1024
#: Bytes below which a file has no mark if its time of change is a whole second, as some tools leave
#: it: there are few of these, and few contents that so small a file may have.
SMALL_FILE = 64 * 1024
#: How a Parquet file ends, plain or encrypted. In a folder nothing else is read.
_PARQUET_MAGIC = (b"PAR1", b"PARE")
#: Files of other formats are told by their names, as readers tell them.
_DATA_FILE_NAME = re.compile(r"\.((csv|tsv|jsonl|ndjson)(\.gz|\.zst)?|duckdb|ddb)$", re.IGNORECASE)


@dataclass(frozen=True)
class Marks:
    """The marks that a ledger keeps, by account, and its key."""

    key: bytes | None = field(default=None, repr=False)
    #: The slots of each account, as consecutive bytes.
    of_accounts: Mapping[int, bytes] = field(default_factory=dict, repr=False)

    def of_files(self, files: Iterable[str]) -> dict[str, bytes]:
        """The marks of these files, by real path; none for unreadable files and for other files
        than data."""
        if self.key is None:
            return {}
        found = {}
        for file in files:
            try:
                mark = self._mark_of_file(file)
            except OSError:
                continue
            if mark is not None:
                found[file] = mark
        return found

    def _mark_of_file(self, file: str) -> bytes | None:
        status = os.stat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
            return None  # whoever opens a pipe may wait for good
        if status.st_size < SMALL_FILE and status.st_mtime_ns % 10**9 == 0:
            return None
        assert self.key is not None
        told = (status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
        with one_verb_at_a_time:  # the file may be a ledger, which unlocks when anything closes it
            return _compute_mark(self.key, file, *told)

    def known_to(self, account: int, marks: Mapping[str, bytes]) -> str | None:
        """One of these files that has a mark of the account, or None."""
        known = set(_split_into_marks(self.of_accounts.get(account, b"")))
        return min((file for file, mark in marks.items() if mark in known), default=None)


@lru_cache(maxsize=1 << 16)
def _compute_mark(key: bytes, file: str, size: int, changed: int, *_identity: int) -> bytes | None:
    with open(file, "rb", buffering=0) as opened:
        first = opened.read(FIRST)
        opened.seek(max(0, size - LAST))
        last = opened.read(LAST)
    if not last.endswith(_PARQUET_MAGIC) and _DATA_FILE_NAME.search(file) is None:
        return None
    told = blake2b(b"%d %d " % (size, changed), key=key, digest_size=BYTES_OF_MARK)
    told.update(first)
    told.update(last)
    return told.digest()


def marks(con: sqlite3.Connection) -> Marks:
    """The marks in the ledger; none in a ledger of an earlier version."""
    if not has_column(con, "marks", "slots"):
        return Marks()
    (key,) = con.execute("SELECT key FROM marking").fetchone()
    return Marks(key, dict(con.execute("SELECT account, slots FROM marks").fetchall()))


def keep_marks(con: sqlite3.Connection, account: int, found: Collection[bytes]) -> None:
    """Add marks to the account's; if it has no free slots, replace old marks."""
    if not found:
        return
    row = con.execute("SELECT slots FROM marks WHERE account = ?", (account,)).fetchone()
    slots = _split_into_marks(secrets.token_bytes(SLOTS * BYTES_OF_MARK) if row is None else row[0])
    missing = sorted(set(found) - set(slots))
    free = [place for place, mark in enumerate(slots) if mark not in found]
    chance = secrets.SystemRandom()
    chosen = chance.sample(missing, min(len(missing), len(free)))
    for place, mark in zip(chance.sample(free, len(chosen)), chosen, strict=True):
        slots[place] = mark
    if chosen:
        con.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (account, b"".join(slots)))


def copy_marks(con: sqlite3.Connection, before: int, account: int) -> None:
    """Copy the marks of an unnamed corpus to the account that names it."""
    for (slots,) in con.execute("SELECT slots FROM marks WHERE account = ?", (before,)).fetchall():
        con.execute("INSERT OR IGNORE INTO marks VALUES (?, ?)", (account, slots))
    forget_marks(con, before)


def forget_marks(con: sqlite3.Connection, account: int) -> None:
    con.execute("DELETE FROM marks WHERE account = ?", (account,))


def _split_into_marks(slots: bytes) -> list[bytes]:
    return [slots[start : start + BYTES_OF_MARK] for start in range(0, len(slots), BYTES_OF_MARK)]
