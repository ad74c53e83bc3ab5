"""Reads the ledger's tables: accounts, shares, and what runs have stored."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replaced
from typing import Any

from dphh.errors import LedgerError, UnknownRunError, UsageError
from dphh.ledger.budget import Booking, Cap, default_rule
from dphh.ledger.entries import BookedRun, StoredRelease, canonical_json
from dphh.ledger.spending import Account
from dphh.privacy.events import events_from_json
from dphh.reader.corpus import Corpus, corpus_from_json

SECONDS_PER_DAY = 24 * 60 * 60

#: The name of the whole release among the draws whose rows the ledger stores.
RELEASED = "the release"


#: The columns of a run that change until it is settled.
_UNTIL_SETTLED = ("state", "changed", "attempts", "key", "setting", "manifest")


def seal_of(row: Mapping[str, Any]) -> str:
    """A hash of a run's or a change's row, so that an edit of one of its values is seen. It leaves
    out what still changes."""
    sealed = {name: value for name, value in row.items() if name != "seal"}
    if sealed.get("attempts") is not None and sealed["state"] != "settled":
        sealed = {name: value for name, value in sealed.items() if name not in _UNTIL_SETTLED}
    return hashlib.sha256(canonical_json(sealed).encode()).hexdigest()


def seal(con: sqlite3.Connection, table: str, number: int | None) -> None:
    row = con.execute(f"SELECT * FROM {table} WHERE rowid = ?", (number,)).fetchone()
    con.execute(f"UPDATE {table} SET seal = ? WHERE rowid = ?", (seal_of(dict(row)), number))


def account_names(con: sqlite3.Connection) -> list[str]:
    return [name for (name,) in con.execute("SELECT name FROM accounts ORDER BY id")]


def accounts_in(
    con: sqlite3.Connection,
    which: Callable[[Corpus], bool] = lambda corpus: True,
    *,
    with_bookings: bool = True,
) -> list[Account]:
    """The accounts for whose corpus `which` is true. `with_bookings`: with those of the runs that
    they paid for, which takes long for all accounts."""
    query = 'SELECT id, name, source, epsilon, delta, rule, "groups" FROM accounts ORDER BY id'
    return [
        Account(number, name, corpus, Cap(epsilon, delta, rule), bookings, groups, *without_promise)
        for number, name, text, epsilon, delta, rule, declared in con.execute(query)
        if which(corpus := corpus_from_json(json.loads(text), account=name))
        for groups in [{by: tuple(values) for by, values in json.loads(declared).items()}]
        for bookings in [bookings_of(con, number) if with_bookings else ()]
        for without_promise in [_runs_that_promise_nothing(con, number) if bookings else ()]
    ]


def _runs_that_promise_nothing(con: sqlite3.Connection, account_id: int) -> tuple[int, int]:
    """How many of an account's runs count other users than it protects, as runs from before it may;
    and how many are tests'."""
    query = """
        SELECT
            count(*) FILTER (WHERE json_extract(runs.source, '$.user')
                <> json_extract(accounts.source, '$.user')),
            count(*) FILTER (WHERE data IS NULL)
        FROM charges JOIN runs ON run = sequence JOIN accounts ON account = id WHERE id = ?
    """
    ((of_others, of_tests),) = con.execute(query, (account_id,)).fetchall()
    return int(of_others), int(of_tests)


def account_named(con: sqlite3.Connection, name: str, *, with_bookings: bool = True) -> Account:
    for account in accounts_in(con, lambda own: own.account == name, with_bookings=with_bookings):
        return account
    raise UsageError(
        f"The ledger has no account {name!r}: `dphh ledger show` lists its accounts; "
        f"`dphh ledger add {name} ...`, or "
        f"dphh.Ledger().add({name!r}, corpus, epsilon, delta), makes one"
    )


def bookings_of(
    con: sqlite3.Connection, account_id: int, analyst: str | None = None
) -> tuple[Booking, ...]:
    """The bookings of an account's runs, in their order; with `analyst`, of that analyst's runs."""
    query = """
        SELECT events, epsilon, delta FROM charges JOIN runs ON run = sequence
        WHERE account = :account AND (:analyst IS NULL OR analyst = :analyst) ORDER BY sequence
    """
    runs = con.execute(query, {"account": account_id, "analyst": analyst})
    return tuple(
        Booking(events_from_json(json.loads(events)), epsilon, delta)
        for events, epsilon, delta in runs
    )


def shares_of(
    con: sqlite3.Connection, accounts: Sequence[Account], analyst: str | None = None
) -> list[Account]:
    """All analysts' shares of these accounts, or one analyst's, each under its account's rule."""
    query = """
        SELECT analyst, epsilon, delta FROM shares
        WHERE account = :account AND (:analyst IS NULL OR analyst = :analyst) ORDER BY analyst
    """
    shares = []
    for whole in accounts:
        values = {"account": whole.id, "analyst": analyst}
        for name, epsilon, delta in con.execute(query, values).fetchall():
            cap = Cap(epsilon, delta, whole.cap.rule if delta > 0 else default_rule(delta))
            own = bookings_of(con, whole.id, name)
            shares.append(replaced(whole, cap=cap, bookings=own, analyst=name, whole=whole))
    return shares


def start_of_today() -> float:
    """The time at which the present day began. Hours and seconds are not recorded: a run's duration
    discloses how much data it read, and thus a user with very many rows."""
    return time.time() // SECONDS_PER_DAY * SECONDS_PER_DAY


def login_name() -> str:
    """The login name under which this process runs: a note, not a proof."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a number and no name, as often in a container
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def number_of_unfinished_run(con: sqlite3.Connection, run: BookedRun) -> int:
    """The sequence number of a run that has not settled. Its key distinguishes it from a run with
    the same id in a ledger that was put in this one's place."""
    query = "SELECT sequence FROM runs WHERE run_id = ? AND key = ?"
    if (row := con.execute(query, (run.run_id, run.key)).fetchone()) is None:
        raise UnknownRunError(
            f"Run {run.run_id} is not going on in this ledger: another process has settled it, or "
            "the ledger was replaced. Its price stays spent."
        )
    return int(row[0])


def store(con: sqlite3.Connection, run: int, draw_name: str, data: bytes) -> None:
    con.execute("INSERT INTO drawn VALUES (?, ?, ?)", (run, draw_name, data))


def stored_rows(con: sqlite3.Connection, run: int, draw_name: str) -> bytes | None:
    query = "SELECT data FROM drawn WHERE run = ? AND name = ?"
    row = con.execute(query, (run, draw_name)).fetchone()
    return None if row is None else row["data"]


def stored_release(con: sqlite3.Connection, run: sqlite3.Row) -> StoredRelease:
    parquet = stored_rows(con, run["sequence"], RELEASED)
    if parquet is None:
        raise LedgerError(
            f"Run {run['run_id']} has no release: its state is {run['state']}. Its price "
            "stays spent; the same request with this run id continues it, unless the ledger was "
            "put back from a copy."
        )
    return StoredRelease(json.loads(run["manifest"]), parquet)


def row_of_run(con: sqlite3.Connection, run_id: str) -> sqlite3.Row | None:
    query = "SELECT * FROM runs WHERE run_id = ?"
    row: sqlite3.Row | None = con.execute(query, (run_id,)).fetchone()
    return row
