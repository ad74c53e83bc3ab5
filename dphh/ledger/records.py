"""Reads and writes the ledger's tables: one or two SQL statements per function.

Functions that take a connection work inside the caller's transaction.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dphh.errors import LedgerError, UsageError
from dphh.ledger.budget import (
    Booking,
    Budget,
    Cap,
    given_back,
    left,
    rule_for_first_run,
    spent,
    used,
)
from dphh.ledger.by_period import fullest, of_a_person, together, without_room
from dphh.ledger.entries import (
    Account,
    Entry,
    Hold,
    Manifest,
    Request,
    StoredRelease,
    canonical,
    error_not_held,
    unknown_run,
)
from dphh.ledger.schema import has_cap_rules, has_column, has_persons
from dphh.ledger.sources import CHECK, Source
from dphh.privacy.events import Event, events_from_json, events_to_json
from dphh.rows.period import ALWAYS, Spans

DAY = 24 * 60 * 60  # seconds
CHUNK = 32 * 2**20  # bytes of a release in one row; SQLite's own limit for a blob is 1e9


class Prices(NamedTuple):
    """The prices of an account's runs, as they count for a unit's cap and for a person's cap."""

    of_unit: list[Booking]
    of_person: list[Booking]


class AccountRow(NamedTuple):
    """An account as the ledger stores it, with its cap."""

    id: int
    name: str | None
    source: Source
    fingerprint: str
    cap: Cap | None
    #: The cap of a person over all periods, if the unit is a user in one period.
    person: Cap | None = None

    @property
    def label(self) -> str:
        return self.source.label if self.name is None else self.name

    def account(self, runs: Prices, periods: Spans = ALWAYS) -> Account:
        """The public form of the account, with what is left for one more run over these periods."""
        cap, period = self.cap, self.source.period
        full = fullest(runs.of_unit, cap, periods)
        return Account(
            name=self.name,
            source=self.source,
            fingerprint=self.fingerprint,
            runs=len(runs.of_unit),
            cap=cap,
            spent=spent(full.prices, cap),
            left=None if cap is None else left(full.prices, cap),
            given_back=None if cap is None else given_back(full.prices, cap),
            used=None if cap is None else used(full.prices, cap),
            fullest="" if period is None else full.name(period),
            fullest_runs=len(full.prices),
            without_room=() if period is None else without_room(runs.of_unit, cap, periods),
            person=of_a_person(self.person, runs.of_person),
            together=() if period is None else together(full, runs.of_unit),
        )


def accounts(con: sqlite3.Connection) -> list[AccountRow]:
    kept = "kept" if has_cap_rules(con, "caps") else "'composed'"
    person = "person_epsilon, person_delta" if has_persons(con) else "NULL, NULL"
    query = f"""
        SELECT a.id, name, source, fingerprint, epsilon, delta, {kept}, {person}
        FROM accounts a LEFT JOIN caps c
        ON c.id = (SELECT max(id) FROM caps WHERE account = a.id) ORDER BY a.id
    """
    return [
        AccountRow(
            number,
            name,
            Source.from_json(json.loads(source)),
            fingerprint,
            None if epsilon is None else Cap(epsilon, delta, kept),
            None if persons is None else Cap(persons, persons_delta, kept),
        )
        for (
            number,
            name,
            source,
            fingerprint,
            epsilon,
            delta,
            kept,
            persons,
            persons_delta,
        ) in con.execute(query)
    ]


def insert_account(
    con: sqlite3.Connection, name: str | None, source: Source, fingerprint: str
) -> AccountRow:
    text = canonical(source.to_json(), "the source's content")
    number = con.execute(
        "INSERT INTO accounts (name, source, fingerprint) VALUES (?, ?, ?)",
        (name, text, fingerprint),
    ).lastrowid
    assert number is not None
    return AccountRow(number, name, source, fingerprint, None)


def move_account(con: sqlite3.Connection, account: int, source: Source) -> None:
    """Change the account's location to this source."""
    text = canonical(source.to_json(), "the source's content")
    con.execute(
        "UPDATE accounts SET source = ?, fingerprint = ? WHERE id = ?",
        (text, source.fingerprint(), account),
    )
    con.execute("DELETE FROM deleted WHERE account = ?", (account,))


def accounts_with_files(con: sqlite3.Connection) -> set[int]:
    """Accounts that had files at some time (they have a charge or a mark), and whose files were not
    declared deleted."""
    charged = "SELECT account FROM charges"
    if not has_column(con, "marks", "slots"):
        return {account for (account,) in con.execute(charged)}
    query = f"{charged} UNION SELECT account FROM marks EXCEPT SELECT account FROM deleted"
    return {account for (account,) in con.execute(query)}


def insert_cap(
    con: sqlite3.Connection, account: int, cap: Cap, person: Budget | None = None
) -> None:
    of_a_person = (None, None) if person is None else (person.epsilon, person.delta)
    con.execute(
        "INSERT INTO caps (account, epsilon, delta, kept, recorded, person_epsilon, person_delta) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (account, cap.epsilon, cap.delta, cap.kept, now(con), *of_a_person),
    )


def settle_cap_rule(con: sqlite3.Connection, account: int) -> None:
    """Settle the rule of the account's cap by the first run that was ever requested, cancelled or
    not.

    That run was requested before the account released anything, so no release influenced the
    choice.
    """
    query = """
        SELECT caps.id, caps.delta, events, runs.epsilon, runs.delta
        FROM caps JOIN charges USING (account) JOIN runs ON run = sequence
        WHERE account = ? AND kept = 'open' ORDER BY sequence, caps.id DESC LIMIT 1
    """
    for cap, cap_delta, events, epsilon, delta in con.execute(query, (account,)).fetchall():
        kept = rule_for_first_run(Booking(events_of(events), epsilon, delta), cap_delta)
        con.execute("UPDATE caps SET kept = ? WHERE id = ?", (kept, cap))


def prices(con: sqlite3.Connection, account: int, analyst: str | None = None) -> list[Booking]:
    """The prices of an account's runs that were not cancelled, of all or of one analyst.

    What a settled run did not draw is given back to accounts but not to shares, and only under the
    cap of its reservation or a larger one.
    """
    return unit_and_person_prices(con, account, analyst).of_unit


def unit_and_person_prices(
    con: sqlite3.Connection, account: int, analyst: str | None = None
) -> Prices:
    """The prices of an account's runs, for the unit's cap and for a person's cap."""
    asked = "" if analyst is None else "JOIN askers USING (run)"
    gives_back = analyst is None and has_column(con, "charges", "cap")
    persons = "person_back" if has_persons(con) else "false"
    columns = f"drawn.events, unit_back, {persons}" if gives_back else "NULL, false, false"
    query = f"""
        SELECT runs.events, runs.epsilon, runs.delta, runs.source, accounts.source, {columns}
        FROM charges JOIN runs ON charges.run = sequence {asked}
        JOIN accounts ON accounts.id = charges.account
        {_caps_comparison_join(con) if gives_back else ""}
        WHERE charges.account = :account AND state <> 'cancelled'
        {"" if analyst is None else "AND analyst = :analyst"} ORDER BY sequence
    """
    found = Prices([], [])
    for events, epsilon, delta, run, ours, drew, unit_back, person_back in con.execute(
        query, {"account": account, "analyst": analyst}
    ):
        price = Booking(events_of(events), epsilon, delta, **_periods_read(run, ours))
        less = None if drew is None else events_of(drew)
        found.of_unit.append(replace(price, drew=less if unit_back else None))
        found.of_person.append(replace(price, drew=less if person_back else None))
    return found


def _periods_read(run: str, account: str) -> dict[str, Any]:
    """The periods that a run reads, as fields of `Booking`. A run with another unit, from before
    the account was named, counts in all periods, at its claimed price."""
    if '"period"' not in account:
        return {}
    ours = Source.from_json(json.loads(account))
    theirs = Source.from_json(json.loads(run))
    return theirs.reads if theirs.unit == ours.unit else {}


def _caps_comparison_join(con: sqlite3.Connection) -> str:
    person = """,
        reserved.person_epsilon <= now.person_epsilon
        AND reserved.person_delta <= now.person_delta AS person_back"""
    return f"""
        LEFT JOIN (
            SELECT charges.run AS of_run, charges.account AS of_account,
            reserved.epsilon <= now.epsilon AND reserved.delta <= now.delta AS unit_back
            {person if has_persons(con) else ""}
            FROM charges
            JOIN caps AS reserved ON reserved.id = charges.cap
            JOIN caps AS now
            ON now.id = (SELECT max(id) FROM caps WHERE account = charges.account)
        ) ON of_run = sequence AND of_account = charges.account
        LEFT JOIN drawn ON drawn.run = sequence AND state = 'settled'
    """


def insert_drawn(con: sqlite3.Connection, run: int, events: Iterable[Event]) -> None:
    text = canonical(events_to_json(events), "the events")
    con.execute("INSERT INTO drawn VALUES (?, ?)", (run, text))


def drawn(con: sqlite3.Connection) -> dict[int, tuple[Event, ...]]:
    """The events that settled runs drew, for runs that drew less than they had reserved."""
    if not has_column(con, "drawn", "events"):
        return {}
    return {run: events_of(text) for run, text in con.execute("SELECT run, events FROM drawn")}


def run(con: sqlite3.Connection, run_id: str) -> dict[str, Any]:
    """The run with this id. The id of a cancelled run is free again."""
    if (found := find_run(con, run_id)) is None:
        raise unknown_run(run_id)
    return found


def find_run(con: sqlite3.Connection, run_id: str) -> dict[str, Any] | None:
    query = "SELECT * FROM runs WHERE run_id = ? AND state <> 'cancelled'"
    return next(iter(_rows_as_dicts(con, query, (run_id,))), None)


def asked_before(con: sqlite3.Connection, request: Request, files: str) -> dict[str, Any] | None:
    """The last run of an equal request, under any id, if its data have the same `files` value.

    Only the last run is compared (for a frame, the last with the same query), because `files` has
    few bits, which would soon be equal by chance among many earlier states.
    """
    if not has_column(con, "asked", "files"):
        return None
    query = """
        SELECT runs.*, files FROM runs JOIN asked ON run = sequence
        WHERE digest IN (?, ?) AND state <> 'cancelled' AND substr(files, ?) = ?
        ORDER BY sequence DESC LIMIT 1
    """
    of_query = (*request.digest_now_and_before, CHECK + 1, files[CHECK:])
    found = next(iter(_rows_as_dicts(con, query, of_query)), None)
    return found if found is not None and found["files"] == files else None


def asked_of_other_data(con: sqlite3.Connection, request: Request) -> dict[str, Any] | None:
    """The last run of an equal request, on any data."""
    if not has_column(con, "asked", "files"):
        return None
    query = """
        SELECT runs.* FROM runs JOIN asked ON run = sequence
        WHERE state <> 'cancelled' AND digest IN (?, ?) ORDER BY sequence DESC LIMIT 1
    """
    return next(iter(_rows_as_dicts(con, query, request.digest_now_and_before)), None)


def files_value_of_run(con: sqlite3.Connection, run: int) -> str:
    """The stored `files` value of a run, by which its data are recognised; '' if there is none."""
    if not has_column(con, "asked", "files"):
        return ""
    found = con.execute("SELECT files FROM asked WHERE run = ?", (run,)).fetchone()
    return "" if found is None else str(found[0])


def insert_hold(con: sqlite3.Connection, run: int, hold: Hold) -> None:
    con.execute("INSERT OR IGNORE INTO holds VALUES (?, ?)", (run, hold.token))


def held(con: sqlite3.Connection, hold: Hold) -> dict[str, Any]:
    """The run that this hold belongs to. Refuses another run of the same id."""
    query = (
        "SELECT runs.* FROM runs JOIN holds ON holds.run = sequence WHERE run_id = ? AND token = ?"
    )
    if (found := next(iter(_rows_as_dicts(con, query, (hold.run_id, hold.token))), None)) is None:
        raise error_not_held(hold)
    return found


def delete_hold(con: sqlite3.Connection, run: int, hold: Hold) -> bool:
    """Delete this hold; returns whether it was the run's last one."""
    con.execute("DELETE FROM holds WHERE run = ? AND token = ?", (run, hold.token))
    query = "SELECT count(*) FROM holds WHERE run = ?"
    return bool(con.execute(query, (run,)).fetchone()[0] == 0)


def runs(con: sqlite3.Connection) -> list[dict[str, Any]]:
    found = _rows_as_dicts(con, "SELECT * FROM runs ORDER BY sequence")
    if has_column(con, "unfinished", "failed"):
        ended = {run for (run,) in con.execute("SELECT run FROM unfinished WHERE failed")}
        for run in found:
            run["state"] = "failed" if run["sequence"] in ended else run["state"]
    return found


def insert_run(
    con: sqlite3.Connection,
    run_id: str,
    request: Request,
    payers: Iterable[int],
    files: str | None,
) -> int:
    time_now = now(con)
    sequence = con.execute(
        "INSERT INTO runs (run_id, digest, verb, parameters, source, events, epsilon, delta, "
        "state, recorded, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'reserved', ?, ?)",
        (
            run_id,
            request.digest,
            request.verb,
            canonical(request.parameters, "the parameters"),
            canonical(request.source.to_json(), "the source's content"),
            canonical(events_to_json(request.price.events), "the events"),
            request.price.epsilon,
            request.price.delta,
            time_now,
            time_now,
        ),
    ).lastrowid
    assert sequence is not None
    if files is not None:
        con.execute("INSERT INTO asked VALUES (?, ?)", (sequence, files))
    for account in payers:
        con.execute(
            "INSERT INTO charges SELECT :account, :run, max(id) FROM caps WHERE account = :account",
            {"account": account, "run": sequence},
        )
        settle_cap_rule(con, account)
    return sequence


def sequence_in_state(found: dict[str, Any], verb: str, state: str) -> int:
    """The run's sequence number, if the run is in this state; else an error that says why not."""
    if found["state"] != state:
        raise LedgerError(
            f"Cannot {verb} run {found['run_id']}: its state is {found['state']}, and only a "
            f"{state} run can. To run again, use a new run id."
        )
    return int(found["sequence"])


def move(con: sqlite3.Connection, run: int, after: str) -> None:
    """Move the run to the next state."""
    con.execute("UPDATE runs SET state = ?, changed = ? WHERE sequence = ?", (after, now(con), run))


def insert_release(
    con: sqlite3.Connection, sequence: int, manifest: Manifest, parquet: bytes
) -> None:
    con.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?)",
        ((sequence, number, piece) for number, piece in pieces(parquet)),
    )
    con.execute(
        "UPDATE runs SET manifest = ?, sha256 = ? WHERE sequence = ?",
        (canonical(manifest, "the manifest"), hashlib.sha256(parquet).hexdigest(), sequence),
    )


def pieces(data: bytes) -> Iterator[tuple[int, memoryview]]:
    """Divide data that are too large for one row into numbered pieces."""
    whole = memoryview(data)
    for number, start in enumerate(range(0, len(whole), CHUNK)):
        yield number, whole[start : start + CHUNK]


def release(con: sqlite3.Connection, found: dict[str, Any]) -> StoredRelease:
    if found["state"] != "settled":
        raise LedgerError(
            f"Run {found['run_id']} has no release: its state is {found['state']}. Its price "
            "stays spent; the same request with this run id makes it."
        )
    query = "SELECT data FROM chunks WHERE run = ? ORDER BY number"
    parquet = b"".join(data for (data,) in con.execute(query, (found["sequence"],)))
    if hashlib.sha256(parquet).hexdigest() != found["sha256"]:
        raise LedgerError(
            f"The stored release of run {found['run_id']} is damaged. Restore the ledger from a "
            "backup; the run stays spent."
        )
    return StoredRelease(json.loads(found["manifest"]), parquet)


def entry(
    found: dict[str, Any],
    payers: tuple[str, ...],
    drawn: tuple[Event, ...] | None = None,
    analyst: str | None = None,
) -> Entry:
    return Entry(
        sequence=found["sequence"],
        run_id=found["run_id"],
        accounts=payers,
        source=Source.from_json(json.loads(found["source"])),
        verb=found["verb"],
        parameters=json.loads(found["parameters"]),
        events=events_of(found["events"]),
        epsilon=found["epsilon"],
        delta=found["delta"],
        state=found["state"],
        when=_day_of(found["recorded"]),
        changed=_day_of(found["changed"]),
        drawn=drawn,
        analyst=analyst,
    )


def _day_of(seconds: float) -> datetime:
    """The day of a time; ledgers of earlier versions recorded seconds."""
    return datetime.fromtimestamp(seconds // DAY * DAY, UTC)


def now(con: sqlite3.Connection) -> float:
    """The present day, but never before a day that the ledger has recorded.

    Hours and seconds are not recorded: a run's duration discloses how much data it read, and thus a
    user with very many rows.
    """
    con.execute("UPDATE clock SET latest = max(latest, ?)", (time.time() // DAY * DAY,))
    return float(con.execute("SELECT latest FROM clock").fetchone()[0])


def _rows_as_dicts(
    con: sqlite3.Connection, query: str, values: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    cursor = con.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def events_of(text: str) -> tuple[Event, ...]:
    try:
        return events_from_json(json.loads(text))
    except UsageError as error:
        raise LedgerError(f"The ledger holds a run that this dphh cannot price: {error}") from error
