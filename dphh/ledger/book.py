"""The ledger: the budget that survives the process.

A run reserves its whole price before a row is read, begins, stores each level as it is drawn, and
settles with its release. From the reservation on the price stays spent, whatever happens to the
process; only a run that never began can be cancelled, and one that began can go on. What was
reserved is the reserver's: each later step goes by the hold that the reservation gave, never by the
run's id alone, which another request may have by then. Order is by sequence number; clocks are
recorded for people and decide nothing.

The ledger holds parameters, prices and releases: nothing that may not leave the building.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphh.corpus import Corpus
from dphh.errors import BudgetRefused, ElsewhereRefused, LedgerError, UsageError
from dphh.ledger import records, unfinished
from dphh.ledger.ahead import Ahead, ahead
from dphh.ledger.behind import source_of
from dphh.ledger.budget import (
    Booking,
    Budget,
    Kept,
    checked_booking,
    checked_cap,
    checked_draw,
    fits,
    refusal,
)
from dphh.ledger.older_copy import come_down
from dphh.ledger.records import (
    Account,
    AccountRow,
    Entry,
    Hold,
    Manifest,
    Request,
    Reservation,
    StoredRelease,
    unknown_account,
)
from dphh.ledger.said import accounts_text
from dphh.ledger.schema import default_path, reading, writing
from dphh.ledger.shares import (
    Share,
    check_share,
    has_shares,
    record_asker,
    set_share,
    shares,
)
from dphh.ledger.sources import Source, places
from dphh.ledger.unfinished import Beginning, Setting
from dphh.privacy.events import Event
from dphh.report.accounts import accounts_html
from dphh.report.tables import FORMULA
from dphh.unit import as_json, counted_by
from dphh.wording.asked import named_in_words

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Account", "Budget", "Entry", "Hold", "Ledger", "Reservation", "Share", "Source",
    "StoredRelease",
]  # fmt: skip


class Ledger:
    """One SQLite file. Each method is one transaction, safe among any number of processes.

    With an `analyst`, every run is asked for by them: it pays from their share of the account that
    it names, as well as from the account. With an `attempt`, a secret, what is reserved is held by
    it, so that who gave it to a process can cancel in that process's stead when it has died.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        analyst: str | None = None,
        attempt: str | None = None,
    ) -> None:
        if path is not None and not isinstance(path, (str, Path)):
            raise UsageError(
                f"ledger: found a value of type {type(path).__name__}; give the path of its file"
            )
        self.analyst = analyst
        self._attempt = attempt
        # Resolved once: a later change of folder must not lead to another ledger, and SQLite names
        # the journal after the real file.
        self.path = Path(os.path.realpath(Path(path or default_path()).expanduser()))

    def __repr__(self) -> str:
        """Where it is, and what every account has spent and left."""
        try:
            return f"Ledger({str(self.path)!r})\n{accounts_text(self.accounts())}"
        except LedgerError as problem:
            return f"Ledger({str(self.path)!r}): {problem}"

    def _repr_html_(self) -> str:
        return accounts_html(self.accounts())

    # Accounts

    @named_in_words
    def add(
        self,
        name: str,
        source: Source | Corpus,
        epsilon: float,
        delta: float,
        kept: Kept = "open",
    ) -> Account:
        """Name a corpus and cap it. `kept`: how, if not as its first run settles it ("divergence"
        for releases with Gaussian noise, "sums" for all others).

        Earlier runs on any of its files, by whatever path, count as spent, at their claimed price
        even where they counted users by another column.
        """
        cap = checked_cap(epsilon, delta, kept)
        checked_name(name)
        if not isinstance(source, (Source, Corpus)):
            raise UsageError(f"source: found a {type(source).__name__}; give a dphh.Corpus")
        source = (source_of(source) if isinstance(source, Corpus) else source).absolute()
        fingerprint = source.fingerprint()
        here = places(source)

        @cache
        def shares(earlier: str) -> bool:
            return places(Source.from_json(json.loads(earlier))).overlap(here)

        with reading(self.path) as con:
            known = set() if con is None else {run["source"] for run in records.runs(con)}
        for earlier in known:  # folders are walked before the file is locked
            shares(earlier)
        with writing(self.path) as con:
            rows = records.accounts(con)
            if any(row.name == name for row in rows):
                raise UsageError(
                    f"The account {name!r} exists. Choose another name, or change its cap with "
                    "`dphh ledger cap`."
                )
            same = [row.id for row in rows if row.name is None and row.fingerprint == fingerprint]
            account = records.insert_account(con, name, source, fingerprint).id
            records.insert_cap(con, account, cap)
            for unnamed in same:  # the corpus has a name now
                con.execute("UPDATE charges SET account = ? WHERE account = ?", (account, unnamed))
                con.execute("DELETE FROM accounts WHERE id = ?", (unnamed,))
            for run in records.runs(con):
                if shares(run["source"]):
                    charge = (account, run["sequence"])
                    con.execute("INSERT OR IGNORE INTO charges VALUES (?, ?, NULL)", charge)
            records.settle_how_kept(con, account)
        return self.status(name)

    def remove(self, name: str) -> None:
        """Forget an account that nothing was ever charged to, such as one with a wrong column."""
        with writing(self.path) as con:
            account = self._unpaid(con, name, "removed")
            for table in ("caps", *(["shares"] if has_shares(con) else [])):
                con.execute(f"DELETE FROM {table} WHERE account = ?", (account.id,))
            con.execute("DELETE FROM accounts WHERE id = ?", (account.id,))
            come_down(con, self.path)

    def rename(self, name: str, new: str) -> Account:
        """Another name for an account that nothing was ever charged to."""
        checked_name(new)
        with writing(self.path) as con:
            account = self._unpaid(con, name, "renamed")
            if any(row.name == new for row in records.accounts(con)):
                raise UsageError(f"The account {new!r} exists. Choose another name.")
            con.execute("UPDATE accounts SET name = ? WHERE id = ?", (new, account.id))
        return self.status(new)

    def _unpaid(self, con: sqlite3.Connection, name: str, what: str) -> AccountRow:
        account = _found(records.accounts(con), name)
        # A cancelled run's charge stays: its request names the account.
        charged = con.execute("SELECT count(*) FROM charges WHERE account = ?", (account.id,))
        if (runs := charged.fetchone()[0]) > 0:
            raise UsageError(
                f"The account {name!r} was charged {runs:,} times, so it cannot be {what}: what "
                "was spent would be forgotten. Lower its cap with `dphh ledger cap` to stop it."
            )
        return account

    @named_in_words
    def set_cap(self, name: str, epsilon: float, delta: float, kept: Kept = "open") -> Account:
        """Change a cap, and how it is `kept`. One below what was spent is allowed, and refuses all
        further runs."""
        cap = checked_cap(epsilon, delta, kept)
        with writing(self.path) as con:
            account = _found(records.accounts(con), name).id
            records.insert_cap(con, account, cap)
            records.settle_how_kept(con, account)
        return self.status(name)

    def accounts_touched(self, source: Source | str) -> tuple[str, ...]:
        """The named accounts that share data with a source (or with an account, by its name)."""
        if isinstance(source, str):
            source = self.status(source).source
        return tuple(row.label for row in _touched(source.absolute(), self._named()))

    def accounts(self) -> list[Account]:
        """Every corpus, in the order in which the ledger met them."""
        return [row.account(prices) for row, prices in self._priced()]

    def status(self, name: str) -> Account:
        """One corpus by its name or, if it has none, by its path or label."""
        found = [(row, prices) for row, prices in self._priced(name)]
        if not found:
            raise unknown_account(name)
        row, prices = min(found, key=lambda each: each[0].name is None)
        return row.account(prices)

    def label_of(self, asked: str) -> str:
        """The label of a corpus by its name, its label, or its path from this folder."""
        accounts = sorted(self.accounts(), key=lambda account: account.name is None)
        if any(asked == account.label for account in accounts):
            return asked
        for account in accounts:
            if account.source.kind != "path" or not asked:
                continue
            if replace(account.source, where=(asked,)).fingerprint() == account.fingerprint:
                return account.label
        raise unknown_account(asked)

    def set_share(self, name: str, analyst: str, epsilon: float, delta: float) -> None:
        """Give an analyst a share of an account's cap, or change it."""
        set_share(self.path, name, analyst, epsilon, delta)

    def shares(self, analyst: str | None = None) -> list[Share]:
        """What analysts may spend and have spent, of every account that they have a share of."""
        return shares(self.path, analyst)

    # Runs

    def reserve(
        self,
        run_id: str,
        source: Source | str,
        verb: str,
        parameters: dict[str, Any],
        events: Sequence[Event],
        epsilon: float,
        delta: float,
        *,
        account: str | None = None,
        files: str | None = None,
        once: bool = False,
    ) -> Reservation:
        """Spend a run's whole price on every account that shares data with its source, or refuse.

        `account` is one more that pays, for data that the ledger cannot recognise, such as a frame;
        it never replaces those that the source touches. As `source`, an account's name stands for
        where that account lives. The same request with the same run id spends nothing, and carries
        the stored release if there is one: a run that did not finish may begin again. Whoever asks
        the same holds the same run, and the price comes back only when nobody does any more.

        `files` tells the data from others (`files_check`), and is kept for requests to come; a
        test's run has none. With `once`, a run of the same request and files is held, whatever its
        id, and `run_id` is for where there is none.
        """
        if not run_id.isprintable() or not 0 < len(run_id) <= 200:
            raise UsageError("A run id is 1 to 200 printable characters.")
        price = checked_booking(events, epsilon, delta)
        if isinstance(source, str):
            account = account or source
            source = self.status(source).source
        request = Request(run_id, source.absolute(), account, verb, parameters, price)
        hold = Hold(run_id, self._attempt or secrets.token_hex(16))
        while True:
            # Folders are walked before the file is locked; if an account came in between, again.
            named = self._named()
            touched = {row.id for row in _touched(request.source, named)}
            with writing(self.path) as con:
                if once and files and (found := records.asked_before(con, request.digest, files)):
                    request = replace(request, run_id=found["run_id"])
                    hold = replace(hold, run_id=found["run_id"])
                if (earlier := _repeated(con, request, hold)) is not None:
                    return earlier
                rows = records.accounts(con)
                if {row.id for row in rows if row.name is not None} != {row.id for row in named}:
                    continue
                if account is not None:
                    touched |= {_found(rows, account).id}
                paying = [row for row in rows if row.id in touched]
                prices = {row.id: records.prices(con, row.id) for row in paying}
                if self.analyst is not None:
                    _check_own(con, paying, request, self.analyst)
                refusing = _first_to_refuse(paying, prices, request, self.analyst)
                if refusing is None:
                    paying = paying or [_unnamed(con, rows, request.source)]
                    return _charge(con, request, hold, paying, self.analyst, files)
            assert refusing.cap is not None
            raise BudgetRefused(refusal(refusing.label, prices[refusing.id], refusing.cap, price))

    def asked_before(
        self,
        source: Source,
        verb: str,
        parameters: dict[str, Any],
        events: Sequence[Event],
        epsilon: float,
        delta: float,
        *,
        account: str | None = None,
        files: str = "",
    ) -> Entry | None:
        """The run that `reserve` would hold `once`; None where there is none. Only looks."""
        price = checked_booking(events, epsilon, delta)
        request = Request("", source.absolute(), account, verb, parameters, price)
        with reading(self.path) as con:
            found = None if con is None else records.asked_before(con, request.digest, files)
        return None if found is None else records.entry(found, ())

    def would_refuse(
        self,
        source: Source,
        events: Sequence[Event],
        epsilon: float,
        delta: float,
        *,
        account: str | None = None,
    ) -> str | None:
        """What `reserve` would refuse such a run with now; None where it would not. Only looks,
        so another run may come first."""
        price = checked_booking(events, epsilon, delta)
        request = Request("", source.absolute(), account, "", {}, price)
        touched = {row.id for row in _touched(request.source, self._named())}
        with reading(self.path) as con:
            rows = [] if con is None else records.accounts(con)
            if account is not None:
                touched |= {_found(rows, account).id}
            paying = [row for row in rows if row.id in touched]
            prices = {row.id: [] if con is None else records.prices(con, row.id) for row in paying}
        try:
            refusing = _first_to_refuse(paying, prices, request, self.analyst)
        except BudgetRefused as problem:
            return str(problem)
        if refusing is None or refusing.cap is None:
            return None
        return refusal(refusing.label, prices[refusing.id], refusing.cap, price)

    def ahead(
        self,
        source: Source,
        events: Sequence[Event],
        epsilon: float,
        delta: float,
        *,
        account: str | None = None,
    ) -> Ahead | None:
        """What such a run would meet at the account that allows least; None where none is capped.
        Only looks."""
        price = checked_booking(events, epsilon, delta)
        touched = {row.id for row in _touched(source.absolute(), self._named())}
        with reading(self.path) as con:
            rows = [] if con is None else records.accounts(con)
            if account is not None:
                touched |= {_found(rows, account).id}
            paying = [row for row in rows if row.id in touched and row.cap is not None]
            prices = {row.id: [] if con is None else records.prices(con, row.id) for row in paying}
        found = [ahead(row.label, prices[row.id], row.cap, price) for row in paying if row.cap]
        return min(found, key=lambda each: (each.runs_left, -each.share), default=None)

    def begin(
        self, hold: Hold, setting: Setting | None = None, key: bytes = b""
    ) -> Beginning | None:
        """Record that rows are about to be read; from here on nothing can give the price back.

        With a `setting`, a run that has begun and is not settled begins again if its setting is
        the same, and gets the key that it had. Without one, it begins once and keeps no levels.
        """
        with reading(self.path) as con:
            if con is None:
                raise records.not_held(hold)
            source = Source.from_json(json.loads(records.held(con, hold)["source"]))
        touched = {row.id for row in _touched(source, self._named())}
        with writing(self.path) as con:
            found = records.held(con, hold)
            beginning = None
            if setting is None or found["state"] == "reserved":
                records.move(con, records.in_state(found, "begin", "reserved"), "running")
                if setting is not None:
                    beginning = unfinished.insert(con, found["sequence"], setting, key)
            else:
                beginning = unfinished.go_on(con, found, setting)
            charged = con.execute("SELECT account FROM charges WHERE run = ?", (found["sequence"],))
            if not touched <= {account for (account,) in charged}:
                raise LedgerError(
                    f"Run {hold.run_id} would read files of an account that it did not pay: links "
                    "or folders changed since it was reserved. Ask again, with a new run id."
                )
        return beginning

    def level(self, hold: Hold, step: str) -> bytes | None:
        """What stands for this step of a run that is going on; None if it was not drawn yet."""
        with reading(self.path) as con:
            if con is None:
                raise records.not_held(hold)
            return unfinished.level(con, unfinished.running(records.held(con, hold)), step)

    def keep_level(self, hold: Hold, step: str, data: bytes) -> bytes:
        """Store what was drawn for this step, unless another process was first; what stands."""
        with writing(self.path) as con:
            run = unfinished.running(records.held(con, hold))
            if (standing := unfinished.level(con, run, step)) is None:
                unfinished.insert_level(con, run, step, data)
        return standing or data

    def settle(
        self,
        hold: Hold,
        manifest: Manifest,
        parquet: bytes,
        drew: Sequence[Event] | None = None,
    ) -> None:
        """Store the release. Only what stands in the ledger may be shown.

        `drew`: what the run drew of what it reserved, where its releases alone left the rest of it
        undone. The rest is given back with this, to accounts that can take it back.
        """
        with writing(self.path) as con:
            found = records.held(con, hold)
            run = records.in_state(found, "settle", "running")
            if drew is not None and tuple(drew) != (booked := records.events_of(found["events"])):
                records.insert_drawn(con, run, checked_draw(booked, drew))
            records.move(con, run, "settled")
            records.insert_release(con, run, manifest, parquet)
            unfinished.forget(con, run)

    def failed(self, hold: Hold) -> None:
        """Record that an attempt has ended without a release, so that none is awaited. Its price
        stays spent, and the same request goes on with it."""
        with writing(self.path) as con:
            unfinished.failed(con, unfinished.running(records.held(con, hold)))

    def cancel(self, hold: Hold) -> None:
        """Let go of a run that never began, so that it provably drew nothing.

        Its price comes back once nobody else holds it.
        """
        with writing(self.path) as con:
            run = records.in_state(records.held(con, hold), "cancel", "reserved")
            if records.let_go(con, run, hold):
                records.move(con, run, "cancelled")

    def release(self, run: str | Hold) -> StoredRelease:
        """The manifest and the Parquet file of a settled run, by its id or by a hold on it."""
        with reading(self.path) as con:
            if isinstance(run, Hold):
                if con is None:
                    raise records.not_held(run)
                return records.release(con, records.held(con, run))
            if con is None:
                raise records.unknown_run(run)
            return records.release(con, records.run(con, run))

    def runs(self, name: str | None = None) -> list[Entry]:
        """Every run in the order of reservation, or those that an account paid for."""
        with reading(self.path) as con:
            labels = {} if con is None else {row.id: row.label for row in records.accounts(con)}
            found = [] if con is None else records.runs(con)
            payers: dict[int, list[str]] = {run["sequence"]: [] for run in found}
            for run, account in [] if con is None else _charges(con):
                payers[run].append(labels[account])
            drawn = {} if con is None else records.drawn(con)
        if name is not None and name not in labels.values():
            raise unknown_account(name)
        entries = [
            records.entry(run, tuple(payers[run["sequence"]]), drawn.get(run["sequence"]))
            for run in found
        ]
        return [entry for entry in entries if name is None or name in entry.accounts]

    def export(self, path: str | Path) -> None:
        """Write every run to a `.parquet` or `.csv` file, whole or not at all."""
        target = Path(path)
        if target.suffix not in (".parquet", ".csv"):
            raise UsageError(f"The ledger exports to .parquet or .csv, not to {target.name!r}.")
        if Path(os.path.realpath(target)) == self.path:
            raise UsageError(f"{target} is the ledger itself. Export to another file.")
        frame = _frame(self.runs())
        draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with draft.open("wb") as file:
                if target.suffix == ".csv":
                    _without_formulas(frame).write_csv(file)
                else:
                    frame.write_parquet(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise LedgerError(
                f"Could not export to {target}: {error.strerror or error}. See that its folder "
                "exists, has space and may be written to."
            ) from error

    def _named(self) -> list[AccountRow]:
        with reading(self.path) as con:
            rows = [] if con is None else records.accounts(con)
        return [row for row in rows if row.name is not None]

    def _priced(self, label: str | None = None) -> list[tuple[AccountRow, list[Booking]]]:
        """Accounts and what their runs cost, read at one moment."""
        with reading(self.path) as con:
            rows = [] if con is None else records.accounts(con)
            wanted = [row for row in rows if label is None or row.label == label]
            return [] if con is None else [(row, records.prices(con, row.id)) for row in wanted]


def checked_name(name: str) -> None:
    if not re.fullmatch(r"\w[\w-]{0,99}(\.[\w-]{1,99})*", name) or name.endswith(".parquet"):
        raise UsageError(
            f"An account's name is letters, digits, '_', '-' and '.', not {name!r}: a path or a "
            "glob would be taken for a file."
        )


def _touched(source: Source, named: Sequence[AccountRow]) -> list[AccountRow]:
    """Walks folders, so never inside a transaction that others wait for."""
    if not named:
        return []
    here = places(source)
    return [row for row in named if places(row.source).overlap(here)]


def _found(rows: Sequence[AccountRow], name: str) -> AccountRow:
    for row in rows:
        if row.name == name:
            return row
    raise unknown_account(name)


def _first_to_refuse(
    paying: Sequence[AccountRow],
    prices: dict[int, list[Booking]],
    request: Request,
    analyst: str | None,
) -> AccountRow | None:
    # First the one that is asked for: what others refuse tells of what is not the analyst's to see.
    for row in sorted(paying, key=lambda row: row.name != request.account):
        same_user = row.source.user == request.source.user
        if same_user and (row.cap is None or fits([*prices[row.id], request.price], row.cap)):
            continue
        if analyst is not None and row.name != request.account:
            # What else the ledger names, and what is spent of it, is not theirs to see.
            raise ElsewhereRefused(
                "Refused: another corpus of the ledger has rows in the same files, and does not "
                "allow this run. Nothing was spent. Ask for less, or ask the corpora's owner."
            )
        if not same_user:
            raise BudgetRefused(
                f"Refused: the account {row.label!r} protects {counted_by(row.source.user)}, and "
                f"this run counts them by {as_json(request.source.user)!r}, which promises the "
                f"former nothing. Nothing was spent. Use user={as_json(row.source.user)!r}."
            )
        return row
    return None


def _check_own(
    con: sqlite3.Connection, paying: Sequence[AccountRow], request: Request, analyst: str
) -> None:
    """The share that an analyst has of what they ask for, before any account is asked."""
    named = next((row for row in paying if row.name == request.account), None)
    if request.account is None or named is None:
        raise BudgetRefused("Refused: an analyst's run must name the account that it is for.")
    check_share(con, analyst, named, request)


def _charge(
    con: sqlite3.Connection,
    request: Request,
    hold: Hold,
    paying: Sequence[AccountRow],
    analyst: str | None,
    files: str | None,
) -> Reservation:
    sequence = records.insert_run(con, request, [row.id for row in paying], files)
    records.insert_hold(con, sequence, hold)
    if analyst is not None:
        record_asker(con, sequence, analyst)
    labels = tuple(row.label for row in paying)
    return Reservation(hold, sequence, labels, paying[0].name is not None)


def _unnamed(con: sqlite3.Connection, rows: Sequence[AccountRow], source: Source) -> AccountRow:
    """The account of a corpus that nobody has named: it records and does not limit."""
    fingerprint = source.fingerprint()
    same = (row for row in rows if row.name is None and row.fingerprint == fingerprint)
    return next(same, None) or records.insert_account(con, None, source, fingerprint)


def _repeated(con: sqlite3.Connection, request: Request, hold: Hold) -> Reservation | None:
    """The run, settled or not, if this is the same request over again: then it is held by both."""
    run_id = request.run_id
    if (found := records.find_run(con, run_id)) is None:
        return None
    if found["digest"] != request.digest:
        raise UsageError(
            f"Run {run_id} is in the ledger with another request (verb, corpus, parameters or "
            "price). Use a new run id."
        )
    if found["state"] != "settled":  # then there is nothing left to do with it
        records.insert_hold(con, found["sequence"], hold)
    payers = {account for run, account in _charges(con) if run == found["sequence"]}
    paid = [row for row in records.accounts(con) if row.id in payers]
    return Reservation(
        hold,
        found["sequence"],
        tuple(row.label for row in paid),
        any(row.name is not None for row in paid),
        records.release(con, found) if found["state"] == "settled" else None,
        records.files_of(con, found["sequence"]),
    )


def _charges(con: sqlite3.Connection) -> list[tuple[int, int]]:
    return con.execute("SELECT run, account FROM charges ORDER BY run, account").fetchall()


def _drawn_text(entry: Entry) -> str | None:
    return None if entry.drawn is None else json.dumps([x.to_json() for x in entry.drawn])


def _without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Run ids are analysts' own: a spreadsheet must not compute one (`Release.to_csv`)."""
    import polars as pl

    first = f"^([{re.escape(''.join(FORMULA))}])"
    return frame.with_columns(pl.col(pl.String).str.replace(first, "'$1"))


def _frame(entries: Sequence[Entry]) -> pl.DataFrame:
    """Flat columns, so that Parquet and CSV say the same."""
    import polars as pl

    columns: dict[str, tuple[list[Any], Any]] = {
        "sequence": ([e.sequence for e in entries], pl.Int64),
        "run_id": ([e.run_id for e in entries], pl.String),
        "accounts": ([json.dumps(e.accounts) for e in entries], pl.String),
        "source": ([json.dumps(e.source.to_json()) for e in entries], pl.String),
        "verb": ([e.verb for e in entries], pl.String),
        "parameters": ([json.dumps(e.parameters) for e in entries], pl.String),
        "events": ([json.dumps([x.to_json() for x in e.events]) for e in entries], pl.String),
        "drawn": ([_drawn_text(e) for e in entries], pl.String),
        "epsilon": ([e.epsilon for e in entries], pl.Float64),
        "delta": ([e.delta for e in entries], pl.Float64),
        "state": ([e.state for e in entries], pl.String),
        "reserved": ([e.when.isoformat() for e in entries], pl.String),
        "changed": ([e.changed.isoformat() for e in entries], pl.String),
    }
    return pl.DataFrame([pl.Series(name, values, kind) for name, (values, kind) in columns.items()])
