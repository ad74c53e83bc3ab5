"""Analysts and their shares: what each may spend of a corpus's cap, and what each has spent.

A share is a separate cap on the runs of one analyst. It does not add to the corpus's cap, which
holds for all runs: shares may sum to more than the cap, and then the first runs get it. The tables
are created with the first share, so a ledger without analysts has none.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from dphh.corpora.user import UserColumns
from dphh.errors import BudgetRefused, UsageError
from dphh.ledger import records
from dphh.ledger.budget import (
    Booking,
    Budget,
    Cap,
    checked_budget,
    left,
    rule_for_first_run,
    spent,
    used,
)
from dphh.ledger.by_period import CapToFit, caps_to_fit, fullest, refuse_first, without_room
from dphh.ledger.entries import Request, unknown_account
from dphh.ledger.history import note
from dphh.ledger.records import AccountRow
from dphh.ledger.schema import has_cap_rules, reading, writing
from dphh.rows.period import PeriodColumn, Spans, merged

TABLES = (
    """
    CREATE TABLE IF NOT EXISTS shares (     -- the last row of an account and analyst is in force
        id       INTEGER PRIMARY KEY,
        account  INTEGER NOT NULL REFERENCES accounts (id),
        analyst  TEXT NOT NULL,
        epsilon  REAL NOT NULL,
        delta    REAL NOT NULL,
        recorded REAL NOT NULL,
        kept     TEXT NOT NULL DEFAULT 'composed'   -- as of `caps`
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS askers (     -- who asked for a run, where that was an analyst
        run     INTEGER PRIMARY KEY REFERENCES runs (sequence),
        analyst TEXT NOT NULL
    )
    """,
)


@dataclass(frozen=True)
class Share:
    """An analyst's share of a corpus: its cap, what was spent, and what is left for one more
    run."""

    analyst: str
    account: str
    cap: Cap
    spent: Budget
    left: Budget  # what is left of the share, and never more than what the corpus has left
    runs: int
    user: UserColumns
    used: float  # the used fraction of the share, of its scarcer amount
    period: PeriodColumn | None = None
    fullest: str = ""  # as of an account
    fullest_runs: int = 0
    without_room: Spans = ()

    @property
    def label(self) -> str:
        return self.account

    @property
    def name(self) -> str:
        return self.account

    @property
    def given_back(self) -> None:
        """None: a share counts what its analyst reserved, and nothing is given back to it."""


def set_share(path: Path, name: str, analyst: str, epsilon: float, delta: float) -> None:
    """Give an analyst a share of an account, or change it. One below what was spent refuses."""
    cap = checked_budget(epsilon, delta)
    with writing(path) as con:
        account = next((row for row in records.accounts(con) if row.name == name), None)
        if account is None:
            raise unknown_account(name)
        if account.cap is not None and (
            cap.epsilon > account.cap.epsilon or cap.delta > account.cap.delta
        ):
            raise UsageError(
                f"share: {cap} is more than the cap of {name!r}, {account.cap}; give at most that"
            )
        for table in TABLES:
            con.execute(table)
        _upgrade_table(con)
        before = _shares_in_force(con, account.id).get(analyst)
        same = before is not None and (before.epsilon, before.delta) == (cap.epsilon, cap.delta)
        if before is not None and same and before.kept != "composed":
            return  # no change, so no row of the history
        day = records.now(con)
        note(con, day, "share", name, before, cap, analyst)
        con.execute(
            "INSERT INTO shares (account, analyst, epsilon, delta, recorded, kept) "
            "VALUES (?, ?, ?, ?, ?, 'open')",
            (account.id, analyst, cap.epsilon, cap.delta, day),
        )
        _settle_how_kept(con, account.id, analyst)


def shares(path: Path, analyst: str | None = None) -> list[Share]:
    """Every share in force, or one analyst's, in the order of the accounts."""
    found = []
    with reading(path) as con:
        if con is None or not has_shares(con):
            return []
        for account in records.accounts(con):
            for name, cap in _shares_in_force(con, account.id).items():
                if analyst is None or name == analyst:
                    own = records.prices(con, account.id, name)
                    found.append((account, name, cap, own, records.prices(con, account.id)))
    return [_share(*each) for each in found]


def _share(
    account: AccountRow, name: str, cap: Cap, own: list[Booking], every: list[Booking]
) -> Share:
    full, period = fullest(own, cap), account.source.period
    return Share(
        name,
        account.label,
        cap,
        spent(full.prices, cap),
        _left_of_share(account, cap, full.prices, fullest(every, account.cap).prices),
        len(own),
        account.source.user,
        used(full.prices, cap),
        period,
        "" if period is None else full.name(period),
        len(full.prices),
        () if period is None else _without_room(account, cap, own, every),
    )


def _without_room(account: AccountRow, cap: Cap, own: list[Booking], every: list[Booking]) -> Spans:
    """The periods of which the analyst may have no more, because of the share or of the cap."""
    return merged([*without_room(own, cap), *without_room(every, account.cap)])


def check_share(
    con: sqlite3.Connection, analyst: str, account: AccountRow, request: Request
) -> None:
    """Refuse a request that exceeds the analyst's share, inside the transaction that reserves."""
    met = caps_of_share(con, analyst, account, request)
    refuse_first(met, f"{analyst}'s share of {account.label}", request.price)


def caps_of_share(
    con: sqlite3.Connection, analyst: str, account: AccountRow, request: Request
) -> list[CapToFit]:
    """The caps of the analyst's share that the request must fit."""
    cap = _shares_in_force(con, account.id).get(analyst) if has_shares(con) else None
    if cap is None:
        raise BudgetRefused(
            f"Refused: {analyst} has no share of the account {account.label!r}. Nothing was spent. "
            "Only the account's owner can give one."
        )
    own = records.prices(con, account.id, analyst)
    return caps_to_fit(account.source.period, cap, own, None, (), request.price)


def record_asker(con: sqlite3.Connection, run: int, analyst: str) -> None:
    con.execute("INSERT INTO askers VALUES (?, ?)", (run, analyst))
    _upgrade_table(con)
    for (account,) in con.execute("SELECT account FROM charges WHERE run = ?", (run,)).fetchall():
        _settle_how_kept(con, account, analyst)


def askers(con: sqlite3.Connection) -> dict[int, str]:
    """The analyst who asked for a run, by the run's number, for those that an analyst asked for."""
    return dict(con.execute("SELECT run, analyst FROM askers")) if has_shares(con) else {}


def _settle_how_kept(con: sqlite3.Connection, account: int, analyst: str) -> None:
    """Settle the rule of the share's cap by the first run that the analyst requested."""
    query = """
        SELECT shares.id, shares.delta, events, runs.epsilon, runs.delta
        FROM shares JOIN askers USING (analyst) JOIN charges USING (run, account)
        JOIN runs ON run = sequence
        WHERE account = ? AND analyst = ? AND kept = 'open'
        ORDER BY sequence, shares.id DESC LIMIT 1
    """
    for share, most, events, epsilon, delta in con.execute(query, (account, analyst)).fetchall():
        kept = rule_for_first_run(Booking(records.events_of(events), epsilon, delta), most)
        con.execute("UPDATE shares SET kept = ? WHERE id = ?", (kept, share))


def _upgrade_table(con: sqlite3.Connection) -> None:
    """Upgrade a table of an earlier version; its shares keep their rule."""
    if not has_cap_rules(con, "shares"):
        con.execute("ALTER TABLE shares ADD COLUMN kept TEXT NOT NULL DEFAULT 'composed'")


def has_shares(con: sqlite3.Connection) -> bool:
    query = (
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('shares', 'askers')"
    )
    return bool(con.execute(query).fetchone()[0] == 2)


def _shares_in_force(con: sqlite3.Connection, account: int) -> dict[str, Cap]:
    kept = "kept" if has_cap_rules(con, "shares") else "'composed'"
    query = f"SELECT analyst, epsilon, delta, {kept} FROM shares WHERE account = ? ORDER BY id"
    found = con.execute(query, (account,))
    return {name: Cap(epsilon, delta, how) for name, epsilon, delta, how in found}


def _left_of_share(
    account: AccountRow, cap: Cap, own: list[Booking], every: list[Booking]
) -> Budget:
    mine = left(own, cap)
    if account.cap is None:
        return mine
    # At the same delta, so that the smaller of the two is what one more run could have.
    of_all = left(every, account.cap, mine.delta)
    if of_all.epsilon == 0:
        of_all = left(every, account.cap)
        mine = left(own, cap, of_all.delta)
    return min(mine, of_all, key=lambda budget: budget.epsilon)
