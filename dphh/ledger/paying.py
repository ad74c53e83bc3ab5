"""Who pays for a run, and whether their caps allow it. Each is asked inside the caller's
transaction, on its connection, by the owner or by an `analyst`."""

from __future__ import annotations

import sqlite3

from dphh.errors import BudgetRefused, UsageError
from dphh.ledger.budget import fits, refusal
from dphh.ledger.entries import Request
from dphh.ledger.places import holds, wrong_account_error
from dphh.ledger.spending import Account
from dphh.ledger.tables import account_named, account_names, accounts_in, shares_of
from dphh.reader.corpus import Corpus, unit_and_columns, user_option


def payers_of(
    con: sqlite3.Connection,
    corpus: Corpus,
    places: frozenset[str],
    analyst: str | None,
    *,
    required: bool = False,
    with_bookings: bool = True,
) -> list[Account]:
    """The accounts that pay: the one that the corpus names, then those that hold its files."""
    booked = {"with_bookings": with_bookings}
    named = [] if corpus.account is None else [account_named(con, corpus.account, **booked)]
    if named and corpus.kind == "path" and not holds(named[0].corpus, places):
        raise wrong_account_error(named[0].corpus, corpus)
    if not named and corpus.kind != "path" and (names := account_names(con)):
        raise BudgetRefused(
            "Refused: which account pays? This ledger has accounts, so a table in memory must "
            f"name one of them: account={names[0]!r}. Nothing was spent."
        )
    if analyst is not None and not named:
        raise BudgetRefused("Refused: an analyst's run must name the account that pays.")
    others = accounts_in(
        con, lambda own: own.account != corpus.account and holds(own, places), **booked
    )
    if required and not named and not others:
        raise UsageError(
            "account: none pays for this corpus, so nothing would cap the run, and "
            "require_account=True. Nothing was spent. Correct the corpus or the ledger, or add "
            "an account with `dphh ledger add`"
        )
    return [*named, *others]


def check_caps(
    con: sqlite3.Connection,
    request: Request,
    payers: list[Account],
    analyst: str | None,
    *,
    shares_only: bool = False,
) -> None:
    """Refuse a run that the cap of a paying account, or the analyst's share of one, does not
    allow."""
    shares: list[Account] = []
    if analyst is not None:
        shares = shares_of(con, payers, analyst)
        if not shares or shares[0].id != payers[0].id:  # the account that the request names
            raise BudgetRefused(
                f"Refused: {analyst} has no share of {payers[0].label}. Nothing was "
                "spent. Only the account's owner can give one."
            )
    for each in [*shares, *([] if shares_only else payers)]:
        same_user = each.corpus.user == request.corpus.user
        if same_user and fits([*each.bookings, request.booking], each.cap):
            continue
        if analyst is not None and each in payers:
            # An analyst must not learn what others have spent, nor of other accounts.
            raise BudgetRefused(
                "Refused: your share allows this run, but what is left for all who may ask "
                "does not. Nothing was spent. Ask for less, or ask the corpus's owner."
            )
        if not same_user:  # a misspelled option, and no budget that is used up
            raise UsageError(
                f"Refused: {each.label} protects {unit_and_columns(each.corpus.user)}, but "
                f"this run counts them by user={user_option(request.corpus.user)!r}, which "
                "does not protect them. Nothing was spent. Use the account's user columns."
            )
        raise BudgetRefused(refusal(each.label, each.bookings, each.cap, request.booking))
