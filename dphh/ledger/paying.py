"""Which accounts pay for a request: all that share data with its source, and the one it names.

The functions that take a connection work inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dphh.errors import BudgetRefused, ElsewhereRefused, UsageError
from dphh.ledger import records
from dphh.ledger.analyst_shares import check_share, record_asker
from dphh.ledger.by_period import CapToFit, caps_to_fit
from dphh.ledger.entries import Hold, Request, Reservation, unknown_account
from dphh.ledger.marks import Marks, keep_marks
from dphh.ledger.records import AccountRow, Prices
from dphh.ledger.sources import Source, places
from dphh.rows.user import asked_by, counted_by


class Shared(NamedTuple):
    """An account that shares data with a source."""

    account: AccountRow
    #: The real paths of the files that the source and the account both read; may be empty.
    files: frozenset[str]
    #: A file of the source that was moved here from the account's location.
    moved: str | None = None


@dataclass(frozen=True)
class SharingAccounts:
    """Which accounts share data with a source, and the marks of its files, at one moment."""

    shared: tuple[Shared, ...]
    #: The marks of the files that it reads, by real path; empty if no marks were needed.
    marks: Mapping[str, bytes]

    def marks_for(self, account: int) -> set[bytes]:
        """The marks of those files that are the account's."""
        of_it = next((each for each in self.shared if each.account.id == account), None)
        if of_it is None:
            return set()
        return {mark for file, mark in self.marks.items() if file in of_it.files}


def find_sharing_accounts(
    source: Source, rows: Sequence[AccountRow], marks: Marks, *, to_keep: bool = False
) -> SharingAccounts:
    """Find the accounts that share data with a source. Walks folders, and opens files if their
    marks are needed or `to_keep`, so it is never called inside a transaction."""
    here = places(source)
    of_files = marks.of_files(here.paths) if to_keep else None
    found = []
    for row in rows:
        there = here if row.source.is_at(source) else places(row.source)
        if there.overlap(here):
            found.append(Shared(row, here.paths & there.paths))
            continue
        if of_files is None and row.id in marks.of_accounts:
            of_files = marks.of_files(here.paths)
        if (moved := marks.known_to(row.id, of_files or {})) is not None:
            found.append(Shared(row, frozenset(), moved))
    return SharingAccounts(tuple(found), of_files or {})


def locations_of_named(rows: Sequence[AccountRow]) -> set[tuple[int, str]]:
    """A value that changes when a named account is added or moved."""
    return {(row.id, row.fingerprint) for row in rows if row.name is not None}


def account_by_name(rows: Sequence[AccountRow], name: str) -> AccountRow:
    for row in rows:
        if row.name == name:
            return row
    raise unknown_account(name)


class Payer(NamedTuple):
    """An account that pays for a request, and what its runs have cost so far."""

    account: AccountRow
    prices: Prices
    #: The file because of which it pays, if that file was moved from the account's location.
    moved: str | None = None

    def met(self, request: Request) -> list[CapToFit]:
        """The account's caps that the request must fit."""
        account, period = self.account, self.account.source.period
        units, person = self.prices
        return caps_to_fit(period, account.cap, units, account.person, person, request.price)

    def allows(self, request: Request) -> bool:
        return all(each.allows for each in self.met(request))

    def refusal(self, request: Request) -> str:
        """The message of the refusal. Slow, because it searches for a budget that would fit."""
        refusing = next(each for each in self.met(request) if not each.allows)
        said = refusing.refusal(self.account.label, request.price)
        return (
            said if self.moved is None else f"{said} {moved_here(self.account.label, self.moved)}"
        )


def moved_here(label: str, file: str) -> str:
    """The sentence that explains why an account pays for a file at another location."""
    return (
        f"{file} was a file of {label!r} before it was moved or copied there, so that account "
        f"pays: `dphh ledger move {label} PATH` says where its data lie now."
    )


def refuse_unknown_origin(request: Request, named: Sequence[AccountRow]) -> None:
    """Refuse rows whose files are not all known, unless the request names the account that pays:
    they may come from files of a capped corpus."""
    if request.whole or request.account is not None or not named:
        return
    some = "not all files that these rows come from can be told"
    none = "which files these rows come from cannot be told"
    raise BudgetRefused(
        f"Refused: this ledger caps corpora, and {some if request.source.files else none}, so they "
        "may belong to a capped corpus. Nothing was spent. Name the account that pays with name= "
        "(account := in SQL), or make one for these rows with Ledger.add(name, corpus, epsilon, "
        "delta)."
    )


def payers(
    con: sqlite3.Connection, rows: Sequence[AccountRow], request: Request, seen: SharingAccounts
) -> list[Payer]:
    """The accounts that pay: those that share data with the request, and the one that it names."""
    named = () if request.account is None else (account_by_name(rows, request.account).id,)
    moved = {each.account.id: each.moved for each in seen.shared}
    paying = [row for row in rows if row.id in {*moved, *named}]
    return [
        Payer(row, records.unit_and_person_prices(con, row.id), moved.get(row.id)) for row in paying
    ]


def first_to_refuse(paying: Sequence[Payer], request: Request, analyst: str | None) -> Payer | None:
    # First the account that the analyst names: refusals of others would disclose what the analyst
    # must not see.
    for payer in sorted(paying, key=lambda payer: payer.account.name != request.account):
        account = payer.account
        same_user = account.source.unit == request.source.unit
        if same_user and payer.allows(request):
            continue
        if analyst is not None and account.name != request.account:
            # An analyst must not see other accounts, nor what is spent of them.
            raise ElsewhereRefused(
                "Refused: another corpus of the ledger has rows in the same files, and does not "
                "allow this run. Nothing was spent. Ask for less, or ask the corpora's owner."
            )
        if not same_user:
            raise BudgetRefused(
                f"Refused: the account {account.label!r} protects "
                f"{counted_by(account.source.user)}, but this run counts them by "
                f"{asked_by(request.source.user)}, which does not protect them. Nothing "
                f"was spent. Use {asked_by(account.source.user)}."
                + ("" if payer.moved is None else f" {moved_here(account.label, payer.moved)}")
            )
        return payer
    return None


def check_own(
    con: sqlite3.Connection, paying: Sequence[Payer], request: Request, analyst: str
) -> None:
    """Check that an analyst names an account of which they have a share, before any account is
    asked."""
    check_share(con, analyst, own_account(paying, request), request)


def own_account(paying: Sequence[Payer], request: Request) -> AccountRow:
    """The account that an analyst's request names."""
    named = next((p.account for p in paying if p.account.name == request.account), None)
    if request.account is None or named is None:
        raise BudgetRefused("Refused: an analyst's run must name the account that pays.")
    return named


def charge(
    con: sqlite3.Connection,
    request: Request,
    hold: Hold,
    paying: Sequence[Payer],
    seen: SharingAccounts,
    analyst: str | None,
    files: str | None,
) -> Reservation:
    """Charge the run to the accounts that pay or, if there are none, to an unnamed account."""
    rows = [payer.account for payer in paying]
    if rows:
        marks = {row.id: seen.marks_for(row.id) for row in rows}
    else:
        rows = [unnamed(con, records.accounts(con), request.source)]
        marks = {rows[0].id: set(seen.marks.values())}
    sequence = records.insert_run(con, hold.run_id, request, [row.id for row in rows], files)
    records.insert_hold(con, sequence, hold)
    if analyst is not None:
        record_asker(con, sequence, analyst)
    for account, found in marks.items():
        keep_marks(con, account, found)
    return Reservation(
        hold,
        sequence,
        tuple(row.label for row in rows),
        bool(paying),
        moved=tuple(
            moved_here(payer.account.label, payer.moved) for payer in paying if payer.moved
        ),
    )


def unnamed(con: sqlite3.Connection, rows: Sequence[AccountRow], source: Source) -> AccountRow:
    """The account of a corpus without a name, which records costs and has no cap."""
    fingerprint = source.fingerprint()
    same = (row for row in rows if row.name is None and row.fingerprint == fingerprint)
    return next(same, None) or records.insert_account(con, None, source, fingerprint)


def repeated(con: sqlite3.Connection, request: Request, hold: Hold) -> Reservation | None:
    """The run with this run id, or None. Another request with this id is refused. The caller gets a
    hold on the run too, unless it is settled."""
    if (found := records.find_run(con, hold.run_id)) is None:
        return None
    if found["digest"] not in request.digest_now_and_before:
        raise UsageError(
            f"Run {hold.run_id} is in the ledger with another request (verb, corpus, parameters or "
            "price). Use a new run id."
        )
    if found["state"] != "settled":  # a settled run needs no hold
        records.insert_hold(con, found["sequence"], hold)
    payers = {account for run, account in charges(con) if run == found["sequence"]}
    paid = [row for row in records.accounts(con) if row.id in payers]
    return Reservation(
        hold,
        found["sequence"],
        tuple(row.label for row in paid),
        any(row.name is not None for row in paid),
        records.release(con, found) if found["state"] == "settled" else None,
        records.files_value_of_run(con, found["sequence"]),
    )


def charges(con: sqlite3.Connection) -> list[tuple[int, int]]:
    return con.execute("SELECT run, account FROM charges ORDER BY run, account").fetchall()
