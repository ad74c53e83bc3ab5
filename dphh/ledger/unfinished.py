"""Runs that have begun and are not settled: what the ledger stores so that they can continue.

A run draws each level once, and its rows are stored here before they are used. A repeated request
with the same run id, also after the process was killed, takes the stored rows and draws only the
missing levels. All stored rows are part of the release.

Functions take a connection and work inside the caller's transaction.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from dphh.errors import LedgerError, UsageError
from dphh.ledger.entries import canonical
from dphh.ledger.records import pieces

#: What must be unchanged when a run continues: names and values.
Setting = dict[str, str]

#: The number of attempts is limited, because a failed attempt may disclose something of the data
#: that no theorem covers (docs/threats.md).
MOST_ATTEMPTS = 20


@dataclass(frozen=True)
class Beginning:
    """A run that may read its rows; `attempt` is 1 unless it is continued."""

    #: The key from which a continued run derives again the random words that a run draws once.
    key: bytes = field(repr=False)
    attempt: int


def insert(con: sqlite3.Connection, run: int, setting: Setting, key: bytes) -> Beginning:
    text = canonical(setting, "the setting")
    con.execute(
        "INSERT INTO unfinished (run, key, setting, attempts) VALUES (?, ?, ?, 1)", (run, key, text)
    )
    return Beginning(key, 1)


def continue_run(con: sqlite3.Connection, found: dict[str, Any], setting: Setting) -> Beginning:
    """Begin one more attempt at a run that has begun, or refuse it and say why."""
    run_id, run = found["run_id"], running(found)
    row = con.execute(
        "SELECT key, setting, attempts FROM unfinished WHERE run = ?", (run,)
    ).fetchone()
    if row is None:
        raise LedgerError(
            f"Run {run_id} did not finish and cannot continue: an older dphh began it and stored "
            "none of its levels. Its price stays spent. Use a new run id, which spends again."
        )
    key, text, attempts = row
    began: Setting = json.loads(text)
    for what in sorted(began.keys() | setting.keys()):
        if began.get(what) != setting.get(what):
            # Sizes and times of private files went into their state: an analyst may read this.
            then, now = (each.get(what, "unknown") for each in (began, setting))
            told = "" if what == "files" else f" (then {then}; now {now})"
            raise UsageError(
                f"Run {run_id} did not finish and cannot continue: its {what} changed since it "
                f"began{told}. Its price stays spent. Repeat it unchanged, or use a new run id or "
                "again=True, which spends again."
            )
    if attempts >= MOST_ATTEMPTS:
        raise LedgerError(
            f"Run {run_id} was begun {attempts} times and never finished; more attempts are not "
            "allowed, because each failure may reveal something about the data. Its price stays "
            "spent. Find the cause, then use a new run id or again=True, which spends again."
        )
    con.execute("UPDATE unfinished SET attempts = attempts + 1, failed = 0 WHERE run = ?", (run,))
    return Beginning(key, attempts + 1)


def failed(con: sqlite3.Connection, run: int) -> None:
    """Record that no process works on this run any more, unless it is begun again."""
    con.execute("UPDATE unfinished SET failed = 1 WHERE run = ?", (run,))


def running(found: dict[str, Any]) -> int:
    """The sequence number of a run that has begun and is not settled."""
    if found["state"] != "running":
        raise LedgerError(
            f"Run {found['run_id']} cannot continue: its state is {found['state']}. The same "
            "request with this run id returns the release of a settled run."
        )
    return int(found["sequence"])


def level(con: sqlite3.Connection, run: int, step: str) -> bytes | None:
    query = "SELECT data, sha256 FROM levels WHERE run = ? AND step = ? ORDER BY number"
    found = con.execute(query, (run, step)).fetchall()
    if not found:
        return None
    whole = b"".join(data for data, _ in found)
    if {hashlib.sha256(whole).hexdigest()} != {digest for _, digest in found}:
        raise LedgerError(
            f"A stored level of run number {run} ({step}) is damaged. Restore the ledger from a "
            "backup; the run stays spent."
        )
    return whole


def insert_level(con: sqlite3.Connection, run: int, step: str, data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    con.executemany(
        "INSERT INTO levels VALUES (?, ?, ?, ?, ?)",
        ((run, step, number, piece, digest) for number, piece in pieces(data)),
    )


def forget(con: sqlite3.Connection, run: int) -> None:
    """Delete a settled run's key and levels: its release contains all of them."""
    con.execute("DELETE FROM levels WHERE run = ?", (run,))
    con.execute("DELETE FROM unfinished WHERE run = ?", (run,))
