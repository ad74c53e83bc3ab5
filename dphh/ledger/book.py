"""The ledger: the budget that survives the process.

A run reserves its whole price before a row is read, begins, stores each level as it is drawn, and
settles with its release. From the reservation on the price stays spent, whatever happens to the
process; only a run that never began can be cancelled, and one that began can go on. Each later step
needs the hold that the reservation returned; the run id alone does not suffice, because another
request may have it by then. Order is by sequence number; clocks are
recorded for people and decide nothing.

The ledger holds parameters, prices and releases: nothing that may not leave the building.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dphh.corpus import Corpus
from dphh.errors import BudgetRefused, LedgerError
from dphh.files.paths import written_here
from dphh.ledger import export, records, unfinished
from dphh.ledger.accounts import Accounts
from dphh.ledger.analyst_shares import askers, caps_of_share
from dphh.ledger.budget import checked_draw
from dphh.ledger.corpora import files_of_named, named_corpus
from dphh.ledger.entries import (
    Entry,
    Hold,
    Manifest,
    Request,
    Reservation,
    StoredRelease,
    checked_run_id,
    error_not_held,
    unknown_account,
    unknown_run,
)
from dphh.ledger.older_copy import behind
from dphh.ledger.outlook import Outlook
from dphh.ledger.paying import (
    charge,
    charges,
    check_own,
    find_sharing_accounts,
    first_to_refuse,
    locations_of_named,
    own_account,
    payers,
    refuse_unknown_origin,
    repeated,
)
from dphh.ledger.schema import reading, writing
from dphh.ledger.sources import Source
from dphh.ledger.unfinished import Beginning, Setting
from dphh.privacy.events import Event
from dphh.wording.options import named_in_words


class Ledger(Accounts):
    """One SQLite file. Each method is one transaction, safe among any number of processes.

    With an `analyst`, every run is that analyst's: it pays from the analyst's share of the account
    that it names, and from the account. With an `attempt`, a secret, all holds have this secret, so
    that the parent of a process that died can cancel the process's reservations.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        analyst: str | None = None,
        attempt: str | None = None,
    ) -> None:
        super().__init__(path)
        self.analyst = analyst
        self._attempt = attempt
        #: The runs that were charged, or begun, through this object and not cancelled.
        self.paid_here: set[str] = set()

    def reserve(
        self, run_id: str, request: Request, *, files: str | None = None, once: bool = False
    ) -> Reservation:
        """Spend a run's whole price on every account that shares data with its source, or refuse.

        The same request with the same run id spends nothing, and carries the stored release if
        there is one: a run that did not finish may begin again. Repeated requests hold the same
        run, and its price is free again only when all holds are cancelled.

        `files` tells the data from others (`files_check`), and is kept for requests to come; a
        test's run has none. With `once`, a run of the same request and files is held, whatever its
        id, and `run_id` is for where there is none.
        """
        hold = Hold(checked_run_id(run_id), self._attempt or secrets.token_hex(16))
        while True:
            # Folders are walked before the file is locked; if an account came or moved meanwhile,
            # again.
            named, marks = self._named_accounts()
            seen = find_sharing_accounts(request.source, named, marks, to_keep=True)
            with writing(self.path) as con:
                if once and files and (found := records.asked_before(con, request, files)):
                    hold = replace(hold, run_id=found["run_id"])
                if (earlier := repeated(con, request, hold)) is not None:
                    return earlier
                rows = records.accounts(con)
                if locations_of_named(rows) != locations_of_named(named) or marks.key is None:
                    continue  # of a new ledger, the key is there from now on
                refuse_unknown_origin(request, named)
                paying = payers(con, rows, request, seen)
                if self.analyst is not None:
                    check_own(con, paying, request, self.analyst)
                refusing = first_to_refuse(paying, request, self.analyst)
                if refusing is None:
                    charged = charge(con, request, hold, paying, seen, self.analyst, files)
            if refusing is None:
                self.paid_here.add(hold.run_id)
                return charged
            raise BudgetRefused(refusing.refusal(request))

    def asked_before(self, request: Request, files: str) -> Entry | None:
        """The run that `reserve` with `once` would hold, or None. Changes nothing."""
        with reading(self.path) as con:
            found = None if con is None else records.asked_before(con, request, files)
        return None if found is None else records.entry(found, ())

    def asked_of_other_data(self, request: Request) -> Entry | None:
        """The last run of an equal request, on any data, or None. Changes nothing."""
        with reading(self.path) as con:
            found = None if con is None else records.asked_of_other_data(con, request)
        return None if found is None else records.entry(found, ())

    def outlook(self, request: Request) -> Outlook:
        """What the ledger would say of this request now: who pays, whether it is refused, and what
        it uses of a cap. Looks at the accounts and walks the files once. Changes nothing."""
        named, known = self._named_accounts()
        seen = find_sharing_accounts(request.source, named, known)
        with reading(self.path) as con:
            if con is None and request.account is not None:
                raise unknown_account(request.account)
            paying = [] if con is None else payers(con, records.accounts(con), request, seen)
            caps = [(payer.account.label, met) for payer in paying for met in payer.met(request)]
            if self.analyst is not None:
                caps = []  # an analyst may know of their share alone
            try:
                refuse_unknown_origin(request, named)
                if self.analyst is not None and con is not None:
                    own = own_account(paying, request)
                    met_own = caps_of_share(con, self.analyst, own, request)
                    caps = [(own.label, met) for met in met_own]
                    check_own(con, paying, request, self.analyst)
                refusing = first_to_refuse(paying, request, self.analyst)
            except BudgetRefused as problem:
                return Outlook(request, tuple(paying), tuple(caps), str(problem))
        return Outlook(request, tuple(paying), tuple(caps), refusing)

    def begin(
        self, hold: Hold, setting: Setting | None = None, key: bytes = b""
    ) -> Beginning | None:
        """Record that rows are about to be read; from here on the run cannot be cancelled.

        With a `setting`, a run that has begun and is not settled begins again if its setting is
        the same, and gets the key that it had. Without one, it begins once and keeps no levels.
        """
        with reading(self.path) as con:
            if con is None:
                raise error_not_held(hold)
            source = Source.from_json(json.loads(records.held(con, hold)["source"]))
        touched = {
            each.account.id
            for each in find_sharing_accounts(source, *self._named_accounts()).shared
        }
        with writing(self.path) as con:
            found = records.held(con, hold)
            beginning = None
            if setting is None or found["state"] == "reserved":
                records.move(con, records.sequence_in_state(found, "begin", "reserved"), "running")
                if setting is not None:
                    beginning = unfinished.insert(con, found["sequence"], setting, key)
            else:
                beginning = unfinished.continue_run(con, found, setting)
            charged = con.execute("SELECT account FROM charges WHERE run = ?", (found["sequence"],))
            if not touched <= {account for (account,) in charged}:
                raise LedgerError(
                    f"Run {hold.run_id} would read files of an account that it did not pay for: "
                    "links or folders changed since it was reserved. Repeat it with a new run id."
                )
        self.paid_here.add(hold.run_id)
        return beginning

    def level(self, hold: Hold, step: str) -> bytes | None:
        """The stored rows of this step of an unfinished run; None if it was not drawn yet."""
        with reading(self.path) as con:
            if con is None:
                raise error_not_held(hold)
            return unfinished.level(con, unfinished.running(records.held(con, hold)), step)

    def keep_level(self, hold: Hold, step: str, data: bytes) -> bytes:
        """Store what was drawn for this step, unless another process was first; returns the stored
        rows."""
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
        """Store the release. Only a release that is stored in the ledger may be shown.

        `drew`: the events that the run drew, if its releases alone determined that it needed fewer
        than it reserved. The rest is given back to accounts whose rule allows that.
        """
        with writing(self.path) as con:
            found = records.held(con, hold)
            run = records.sequence_in_state(found, "settle", "running")
            if drew is not None and tuple(drew) != (booked := records.events_of(found["events"])):
                records.insert_drawn(con, run, checked_draw(booked, drew))
            records.move(con, run, "settled")
            records.insert_release(con, run, manifest, parquet)
            unfinished.forget(con, run)

    def failed(self, hold: Hold) -> None:
        """Record that an attempt has ended without a release. Its price stays spent, and a repeated
        request continues it."""
        with writing(self.path) as con:
            unfinished.failed(con, unfinished.running(records.held(con, hold)))

    def cancel(self, hold: Hold) -> None:
        """Cancel a run that never began, so that it provably drew nothing.

        Its price is free again once no other process holds it.
        """
        with writing(self.path) as con:
            run = records.sequence_in_state(records.held(con, hold), "cancel", "reserved")
            if records.delete_hold(con, run, hold):
                records.move(con, run, "cancelled")
        self.paid_here.discard(hold.run_id)

    def reserved_before(self, run_id: str, request: Request) -> Reservation | None:
        """What `reserve` would return for a settled run of this id, with its release; None if there
        is none. Refuses another request of this id, and a ledger that is an older copy, as
        `reserve` does. Changes nothing."""
        with reading(self.path) as con:
            if (said := behind(con, self.path)) is not None:
                raise LedgerError(said)
            found = None if con is None else records.find_run(con, run_id)
            if con is None or found is None or found["state"] != "settled":
                return None
            return repeated(con, request, Hold(run_id, ""))  # a settled run is not held

    def release(self, run: str | Hold) -> StoredRelease:
        """The manifest and the Parquet file of a settled run, by its id or by a hold on it."""
        with reading(self.path) as con:
            if isinstance(run, Hold):
                if con is None:
                    raise error_not_held(run)
                return records.release(con, records.held(con, run))
            if con is None:
                raise unknown_run(run)
            return records.release(con, records.run(con, run))

    @named_in_words
    def corpus(self, name: str, *, files: str | Path | Sequence[str | Path] = ()) -> Corpus:
        """The corpus of an account, read as its owner said when it was added; its account pays.

        files: read these alone. They must belong to the corpus."""
        corpus = named_corpus(name, self)
        if corpus is None:
            raise unknown_account(name)
        some = [files] if isinstance(files, (str, Path)) else files
        return files_of_named(corpus, [str(file) for file in some], self) if some else corpus

    def runs(self, name: str | None = None) -> list[Entry]:
        """Every run in the order of reservation, or those that an account paid for."""
        with reading(self.path) as con:
            labels = {} if con is None else {row.id: row.label for row in records.accounts(con)}
            found = [] if con is None else records.runs(con)
            payers: dict[int, list[str]] = {run["sequence"]: [] for run in found}
            for run, account in [] if con is None else charges(con):
                payers[run].append(labels[account])
            drawn = {} if con is None else records.drawn(con)
            analysts = {} if con is None else askers(con)
        if name is not None and name not in labels.values():
            raise unknown_account(name)
        entries = [
            records.entry(
                run,
                tuple(payers[run["sequence"]]),
                drawn.get(run["sequence"]),
                analysts.get(run["sequence"]),
            )
            for run in found
        ]
        return [entry for entry in entries if name is None or name in entry.accounts]

    def export(self, path: str | Path, *, history: bool = False) -> None:
        """Write every run, or what owners changed, to a `.parquet` or `.csv` file, whole or not at
        all."""
        frame = export.changes(self.history()) if history else export.runs(self.runs())
        export.export(frame, written_here("export", path), self.path)
