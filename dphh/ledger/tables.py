"""What the ledger's tables have: accounts and shares, and of runs what they stored."""

from __future__ import annotations

import getpass
import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace as replaced
from datetime import UTC, datetime, timedelta

from dphh.errors import DphhError, LedgerError, UnknownRunError, UsageError
from dphh.ledger.budget import Booking, Budget, Cap, default_rule, events_booked
from dphh.ledger.entries import BookedRun, Request, StoredRelease, canonical_json
from dphh.ledger.spending import Account
from dphh.privacy.events import events_from_json
from dphh.reader.corpus import Corpus, corpus_from_json

SECONDS_PER_DAY = 24 * 60 * 60

#: The name of the release among the steps whose rows the ledger stores.
RELEASE_STEP = "the release"

#: Of an account, all that its owner may change.
_STATE = 'json_array(json_array(epsilon, delta, rule), source, "groups")'


def account_names(con: sqlite3.Connection) -> list[str]:
    return [name for (name,) in con.execute("SELECT name FROM accounts ORDER BY id")]


def accounts_in(
    con: sqlite3.Connection,
    which: Callable[[Corpus], bool] = lambda corpus: True,
    *,
    with_bookings: bool = True,
) -> list[Account]:
    """The accounts for whose corpus `which` is true, with the bookings of the runs that they
    paid for, unless these are not asked for. Reading those of all accounts takes long."""
    query = 'SELECT id, name, source, epsilon, delta, rule, "groups" FROM accounts ORDER BY id'
    edited = edited_accounts(con)
    return [
        Account(
            *(number, name, corpus, Cap(epsilon, delta, rule), bookings, groups, of_others),
            edited=name in edited,
        )
        for number, name, text, epsilon, delta, rule, declared in con.execute(query)
        if which(corpus := corpus_from_json(json.loads(text), account=name))
        for groups in [{by: tuple(values) for by, values in json.loads(declared).items()}]
        for bookings in [bookings_of(con, number) if with_bookings else ()]
        for of_others in [_runs_of_other_users(con, number) if bookings else 0]
    ]


def edited_accounts(con: sqlite3.Connection) -> list[str]:
    """The accounts whose cap, corpus or groups are not what the last change of these has left:
    somebody edited the file. Each is compared with its own changes, so that no later change of
    another covers an edit."""
    differs = " OR ".join(
        f"""json_extract({_STATE}, '$[{place}]') IS NOT (
            SELECT json_extract(state, '$[{place}]') FROM history
            WHERE account = name AND what IN ('account', '{what}') ORDER BY id DESC LIMIT 1
        )"""
        for place, what in enumerate(("cap", "corpus", "groups"))
    )
    return [name for (name,) in con.execute(f"SELECT name FROM accounts WHERE {differs}")]


#: What the ledger says of a run, and of a settled one what its release says.
_RUN_TWICE = """SELECT run_id, verb, parameters, source, events, epsilon, delta, digest, recorded,
    json_extract(manifest, '$.run_id', '$.verb', '$.parameters', '$.events', '$.privacy', '$.day')
    FROM runs ORDER BY sequence"""


#: What reading a row raises that has something else in place of JSON, numbers and days.
_NOT_WHAT_DPHH_WROTE = (
    *(ArithmeticError, AttributeError, DphhError, LookupError),
    *(OSError, TypeError, ValueError),
)


def edited_run(con: sqlite3.Connection) -> str | None:
    """The id of the first run whose row is not what dphh wrote: what was asked for and booked has
    another digest, or its release says otherwise."""
    for row in con.execute(_RUN_TWICE):
        try:
            if not _agrees_with_itself(*row):
                return str(row["run_id"])
        except _NOT_WHAT_DPHH_WROTE:
            return str(row["run_id"])
    return None


def _agrees_with_itself(
    run_id: str, verb: str, parameters: str, source: str, events: str, epsilon: float, delta: float,
    digest: str, recorded: float, said: str | None,
) -> bool:  # fmt: skip
    corpus, asked = corpus_from_json(json.loads(source)), json.loads(parameters)
    booking = Booking(events_from_json(json.loads(events)), epsilon, delta)
    booked_on = datetime.fromtimestamp(recorded, UTC)
    if not booking.events or digest != Request(corpus, verb, asked, booking).digest:
        return False
    if said is None:  # it has not settled
        return True
    *named, asked_of, events_of, privacy, day = json.loads(said)
    claim = Budget(float(privacy.get("user_epsilon", privacy["epsilon"])), float(privacy["delta"]))
    booked = Booking(events_booked(events_from_json(events_of), claim), claim.epsilon, claim.delta)
    took = datetime.fromisoformat(day).replace(tzinfo=UTC) - booked_on
    return (
        named == [run_id, verb]
        and canonical_json(asked_of) == parameters
        and booked == booking
        # A run that was killed may go on long after it was booked. Clocks may differ.
        and timedelta(-1) <= took <= timedelta(366)
    )


def _runs_of_other_users(con: sqlite3.Connection, account_id: int) -> int:
    """How many of an account's runs count other users than it protects: runs from before it."""
    query = """
        SELECT count(*) FROM charges JOIN runs ON run = sequence JOIN accounts ON account = id
        WHERE id = ? AND json_extract(runs.source, '$.user')
            <> json_extract(accounts.source, '$.user')
    """
    ((found,),) = con.execute(query, (account_id,)).fetchall()
    return int(found)


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
    found = con.execute(query, {"account": account_id, "analyst": analyst})
    return tuple(
        Booking(events_from_json(json.loads(events)), epsilon, delta)
        for events, epsilon, delta in found
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
        asked = {"account": whole.id, "analyst": analyst}
        for name, epsilon, delta in con.execute(query, asked).fetchall():
            cap = Cap(epsilon, delta, whole.cap.rule if delta > 0 else default_rule(delta))
            own = bookings_of(con, whole.id, name)
            shares.append(replaced(whole, cap=cap, bookings=own, analyst=name, whole=whole))
    return shares


def record_change(
    con: sqlite3.Connection,
    what: str,
    account: str | None,
    was: str | None,
    now: str | None,
    analyst: str | None = None,
) -> None:
    """Record an owner's change, inside the transaction that makes it."""
    con.execute(
        "INSERT INTO history (account, analyst, what, was, now, who, recorded, after, state) "
        "SELECT :account, :analyst, :what, :was, :now, :who, :day, coalesce(max(sequence), 0), "
        f"(SELECT {_STATE} FROM accounts WHERE name = :account) FROM runs",
        {"account": account, "analyst": analyst, "what": what, "was": was, "now": now,
         "who": login_name(), "day": start_of_today()},
    )  # fmt: skip


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
    """The sequence number of a run that has not settled. By its key it is told from a run with the
    same id in a ledger that was put in this one's place."""
    query = "SELECT sequence FROM runs WHERE run_id = ? AND key = ?"
    if (found := con.execute(query, (run.run_id, run.key)).fetchone()) is None:
        raise UnknownRunError(
            f"Run {run.run_id} is not going on in this ledger: another process has settled it, or "
            "the ledger was replaced. Its price stays spent."
        )
    return int(found[0])


def store(con: sqlite3.Connection, run: int, step: str, data: bytes) -> None:
    con.execute("INSERT INTO drawn VALUES (?, ?, ?)", (run, step, data))


def stored_rows(con: sqlite3.Connection, run: int, step: str) -> bytes | None:
    query = "SELECT data FROM drawn WHERE run = ? AND step = ?"
    found = con.execute(query, (run, step)).fetchone()
    return None if found is None else found["data"]


def stored_release(con: sqlite3.Connection, found: sqlite3.Row) -> StoredRelease:
    parquet = stored_rows(con, found["sequence"], RELEASE_STEP)
    if parquet is None:
        raise LedgerError(
            f"Run {found['run_id']} has no release: its state is {found['state']}. Its price "
            "stays spent; the same request with this run id continues it, unless the ledger was "
            "put back from a copy."
        )
    return StoredRelease(json.loads(found["manifest"]), parquet)


def row_of_run(con: sqlite3.Connection, run_id: str) -> sqlite3.Row | None:
    query = "SELECT * FROM runs WHERE run_id = ?"
    found: sqlite3.Row | None = con.execute(query, (run_id,)).fetchone()
    return found
