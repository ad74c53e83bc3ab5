"""Who pays for a request: every account that shares data with its source, and one that it names.

The functions that take a connection work inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import NamedTuple

from dphh.errors import BudgetRefused, ElsewhereRefused, UsageError
from dphh.ledger import budget, records
from dphh.ledger.budget import Booking, fits
from dphh.ledger.nouns import Hold, Request, Reservation, unknown_account
from dphh.ledger.records import AccountRow
from dphh.ledger.shares import check_share, record_asker
from dphh.ledger.sources import Source, places
from dphh.unit import as_json, counted_by


def sharing(source: Source, named: Sequence[AccountRow]) -> list[AccountRow]:
    """Walks folders, so never inside a transaction that others wait for."""
    if not named:
        return []
    here = places(source)
    return [row for row in named if places(row.source).overlap(here)]


def by_name(rows: Sequence[AccountRow], name: str) -> AccountRow:
    for row in rows:
        if row.name == name:
            return row
    raise unknown_account(name)


class Payer(NamedTuple):
    """An account that pays for a request, and what its runs have cost so far."""

    account: AccountRow
    prices: list[Booking]

    def allows(self, request: Request) -> bool:
        cap = self.account.cap
        return cap is None or fits([*self.prices, request.price], cap)

    def refusal(self, request: Request) -> str:
        """Slow: it looks for what would fit."""
        assert self.account.cap is not None
        return budget.refusal(self.account.label, self.prices, self.account.cap, request.price)


def payers(
    con: sqlite3.Connection, rows: Sequence[AccountRow], request: Request, shared: Collection[int]
) -> list[Payer]:
    """Of the accounts, those that share its data and the one that it names."""
    named = () if request.account is None else (by_name(rows, request.account).id,)
    paying = [row for row in rows if row.id in {*shared, *named}]
    return [Payer(row, records.prices(con, row.id)) for row in paying]


def first_to_refuse(paying: Sequence[Payer], request: Request, analyst: str | None) -> Payer | None:
    # First the one that is asked for: what others refuse tells of what is not the analyst's to see.
    for payer in sorted(paying, key=lambda payer: payer.account.name != request.account):
        account = payer.account
        same_user = account.source.user == request.source.user
        if same_user and payer.allows(request):
            continue
        if analyst is not None and account.name != request.account:
            # What else the ledger names, and what is spent of it, is not theirs to see.
            raise ElsewhereRefused(
                "Refused: another corpus of the ledger has rows in the same files, and does not "
                "allow this run. Nothing was spent. Ask for less, or ask the corpora's owner."
            )
        if not same_user:
            raise BudgetRefused(
                f"Refused: the account {account.label!r} protects "
                f"{counted_by(account.source.user)}, and this run counts them by "
                f"{as_json(request.source.user)!r}, which promises the former nothing. Nothing was "
                f"spent. Use user={as_json(account.source.user)!r}."
            )
        return payer
    return None


def check_own(
    con: sqlite3.Connection, paying: Sequence[Payer], request: Request, analyst: str
) -> None:
    """The share that an analyst has of what they ask for, before any account is asked."""
    named = next((p.account for p in paying if p.account.name == request.account), None)
    if request.account is None or named is None:
        raise BudgetRefused("Refused: an analyst's run must name the account that it is for.")
    check_share(con, analyst, named, request)


def charge(
    con: sqlite3.Connection,
    request: Request,
    hold: Hold,
    paying: Sequence[AccountRow],
    analyst: str | None,
    files: str | None,
) -> Reservation:
    payers = [row.id for row in paying]
    sequence = records.insert_run(con, hold.run_id, request, payers, files)
    records.insert_hold(con, sequence, hold)
    if analyst is not None:
        record_asker(con, sequence, analyst)
    labels = tuple(row.label for row in paying)
    return Reservation(hold, sequence, labels, paying[0].name is not None)


def unnamed(con: sqlite3.Connection, rows: Sequence[AccountRow], source: Source) -> AccountRow:
    """The account of a corpus that nobody has named: it records and does not limit."""
    fingerprint = source.fingerprint()
    same = (row for row in rows if row.name is None and row.fingerprint == fingerprint)
    return next(same, None) or records.insert_account(con, None, source, fingerprint)


def repeated(con: sqlite3.Connection, request: Request, hold: Hold) -> Reservation | None:
    """The run, settled or not, if this is the same request over again: then it is held by both."""
    if (found := records.find_run(con, hold.run_id)) is None:
        return None
    if found["digest"] not in request.digests:
        raise UsageError(
            f"Run {hold.run_id} is in the ledger with another request (verb, corpus, parameters or "
            "price). Use a new run id."
        )
    if found["state"] != "settled":  # then there is nothing left to do with it
        records.insert_hold(con, found["sequence"], hold)
    payers = {account for run, account in charges(con) if run == found["sequence"]}
    paid = [row for row in records.accounts(con) if row.id in payers]
    return Reservation(
        hold,
        found["sequence"],
        tuple(row.label for row in paid),
        any(row.name is not None for row in paid),
        records.release(con, found) if found["state"] == "settled" else None,
        records.files_then(con, found["sequence"]),
    )


def charges(con: sqlite3.Connection) -> list[tuple[int, int]]:
    return con.execute("SELECT run, account FROM charges ORDER BY run, account").fetchall()
