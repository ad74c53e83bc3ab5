"""Analysts of the gateway: their tokens, and what each may spend of an account's cap.

A share is a separate cap on the runs of one analyst. It does not add to the account's cap, which
holds for all runs: shares may sum to more than the cap, and then the first runs get it.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from dataclasses import replace

from dphh.errors import BudgetRefused, UsageError
from dphh.ledger.accounts import AccountRow, Accounts, account_named, accounts_in, note, prices
from dphh.ledger.budget import (
    Booking,
    Budget,
    Cap,
    checked_budget,
    default_rule,
    fits,
    left,
    refusal,
)
from dphh.ledger.schema import reading, writing
from dphh.ledger.spending import Account
from dphh.wording.options import named_in_words


class Analysts(Accounts):
    """Analysts' shares and tokens, as their owner gives them."""

    @named_in_words
    def set_share(self, account: str, analyst: str, epsilon: float, delta: float) -> None:
        """Give an analyst a share of an account, or change it. One below what was spent refuses all
        further runs of the analyst."""
        _check_analyst(analyst)
        budget = checked_budget(epsilon, delta)
        with writing(self.path) as con:
            row = account_named(con, account)
            if budget.epsilon > row.cap.epsilon or budget.delta > row.cap.delta:
                raise UsageError(
                    f"share: {budget} is more than the cap of {account!r}, {row.cap}; give at most "
                    "that"
                )
            before = share_cap(con, row, analyst)
            if before is not None and (before.epsilon, before.delta) == (epsilon, delta):
                return  # no change, so no row of the history
            con.execute(
                "INSERT OR REPLACE INTO shares VALUES (?, ?, ?, ?)",
                (row.id, analyst, budget.epsilon, budget.delta),
            )
            note(con, "share", account, _as_text(before), _as_text(budget), analyst)

    def shares(self, analyst: str | None = None) -> list[Account]:
        """Every share, or one analyst's, in the order of the accounts."""
        found = []
        with reading(self.path) as con:
            for row in accounts_in(con):
                query = "SELECT analyst FROM shares WHERE account = ? ORDER BY analyst"
                for (name,) in con.execute(query, (row.id,)).fetchall():
                    if analyst is None or name == analyst:
                        own, every = prices(con, row.id, name), prices(con, row.id)
                        cap = share_cap(con, row, name)
                        assert cap is not None
                        found.append((row, name, cap, own, every))
        return [
            replace(
                row._replace(cap=cap).account(own),
                left=_left_of_share(row, cap, own, every),
                analyst=name,
            )
            for row, name, cap, own, every in found
        ]

    def give_token(self, analyst: str) -> str:
        """Make a new token for an analyst, in place of an earlier one. Only its hash is stored, so
        it is shown once."""
        _check_analyst(analyst)
        token = secrets.token_urlsafe(32)
        with writing(self.path) as con:
            before = con.execute("DELETE FROM tokens WHERE analyst = ?", (analyst,)).rowcount
            con.execute("INSERT INTO tokens VALUES (?, ?)", (analyst, _hash_of(token)))
            note(con, "token", None, "given" if before else None, "given", analyst)
        return token

    def withdraw_token(self, analyst: str) -> bool:
        """Withdraw an analyst's token; returns whether there was one."""
        with writing(self.path) as con:
            found = con.execute("DELETE FROM tokens WHERE analyst = ?", (analyst,)).rowcount > 0
            if found:
                note(con, "token", None, "given", None, analyst)
        return found

    def analyst_with(self, token: str) -> str | None:
        """The analyst who has this token now, or None. It is looked up by its hash, so the time
        that this takes discloses nothing of the tokens that there are."""
        with reading(self.path) as con:
            query = "SELECT analyst FROM tokens WHERE sha256 = ?"
            found = con.execute(query, (_hash_of(token),)).fetchone()
        return None if found is None else str(found[0])

    def analysts(self) -> list[str]:
        """The analysts who have a token."""
        with reading(self.path) as con:
            query = "SELECT analyst FROM tokens ORDER BY analyst"
            return [name for (name,) in con.execute(query)]


def share_cap(con: sqlite3.Connection, row: AccountRow, analyst: str) -> Cap | None:
    """The analyst's share of an account, kept by the account's rule; None if there is none."""
    query = "SELECT epsilon, delta FROM shares WHERE account = ? AND analyst = ?"
    for epsilon, delta in con.execute(query, (row.id, analyst)):
        return Cap(epsilon, delta, row.cap.kept if delta > 0 else default_rule(delta))
    return None


def share_refusal(
    con: sqlite3.Connection, analyst: str, row: AccountRow, asked: Booking
) -> BudgetRefused | None:
    """Why a request exceeds the analyst's share, if it does."""
    cap = share_cap(con, row, analyst)
    if cap is None:
        return BudgetRefused(
            f"Refused: {analyst} has no share of the account {row.name!r}. Nothing was spent. "
            "Only the account's owner can give one."
        )
    own = prices(con, row.id, analyst)
    if fits([*own, asked], cap):
        return None
    label = f"{analyst}'s share of the account {row.name!r}"
    return BudgetRefused(refusal(label, own, cap, asked))


def _left_of_share(row: AccountRow, cap: Cap, own: list[Booking], every: list[Booking]) -> Budget:
    mine = left(own, cap)
    # At the same delta, so that the smaller of the two is what one more run could have.
    of_all = left(every, row.cap, mine.delta)
    if of_all.epsilon == 0:
        of_all = left(every, row.cap)
        mine = left(own, cap, of_all.delta)
    return min(mine, of_all, key=lambda budget: budget.epsilon)


def _as_text(budget: Budget | None) -> str | None:
    return None if budget is None else f"epsilon {budget.epsilon:g}, delta {budget.delta:g}"


def _hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _check_analyst(name: str) -> None:
    if not (isinstance(name, str) and name.isprintable() and 0 < len(name) <= 100):
        raise UsageError("analyst: give a printable name of 1 to 100 characters")
