"""The ledger's accounts: corpora by name, what caps them, and what each has spent and has left."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace as replaced
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dphh.columns import checked_groups
from dphh.corpus import Corpus, corpus_from_json, replace_corpus
from dphh.errors import LedgerError, UsageError
from dphh.files.paths import absolute, written_here
from dphh.ledger.budget import Booking, Cap, Kept, checked_cap, default_rule, left, spent, used
from dphh.ledger.entries import Change, Groups, canonical
from dphh.ledger.schema import default_path, exists, reading, writing
from dphh.ledger.source import Source, holds, places_of, source_of
from dphh.ledger.spending import Account, accounts_text
from dphh.privacy.events import Event, events_from_json
from dphh.rows.user import columns_of, counted_by
from dphh.wording.options import named_in_words

DAY = 24 * 60 * 60  # seconds


class Accounts:
    """The accounts of a ledger: how they are read, and how their owner changes them."""

    def __init__(self, path: str | Path | None = None) -> None:
        if path is not None and not isinstance(path, (str, Path)):
            raise UsageError(
                f"ledger: found a {type(path).__name__}; give the path of the ledger's file"
            )
        # Resolved once: a later change of folder must not lead to another ledger, and SQLite names
        # the journal after the real file.
        named = written_here("ledger", path or default_path())
        self.path = Path(os.path.realpath(named.expanduser()))

    def __repr__(self) -> str:
        """The ledger's path, and what every account has spent and left."""
        try:
            said = self.absent() or accounts_text(self.accounts())
            return f"Ledger({str(self.path)!r})\n{said}"
        except LedgerError as problem:
            return f"Ledger({str(self.path)!r}): {problem}"

    @named_in_words
    def add(
        self,
        account: str,
        source: Source | Corpus,
        epsilon: float,
        delta: float,
        kept: Kept | None = None,
        *,
        if_missing: bool = False,
        replace: bool = False,
    ) -> Account:
        """Name a corpus and cap it. `kept`: the rule of the cap, "divergence" (the default: for
        items, ngrams and counts) or "sums" (for trie and ldp_trie; the default at delta 0).

        An account that exists keeps its cap and what it has spent. `if_missing`: it stays as it
        is, if it is of this corpus. `replace`: it is of this corpus from now on, as when its data
        have moved or its user column was wrong.

        Earlier runs on any of the corpus's files count as spent.
        """
        cap = checked_cap(epsilon, delta, kept)
        _check_name(account)
        if not isinstance(source, (Source, Corpus)):
            raise UsageError(f"source: found a {type(source).__name__}; give a dphh.Corpus")
        if isinstance(source, Corpus):
            source = source_of(source)
        text = canonical(source.to_json(), "the source's content")
        held = self._sources_held(source)
        with writing(self.path) as con:
            there = next((row for row in accounts_in(con) if row.name == account), None)
            if there is None:
                con.execute(
                    "INSERT INTO accounts (name, source, epsilon, delta, kept) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (account, text, cap.epsilon, cap.delta, cap.kept),
                )
                note(con, "cap", account, None, cap_as_text(cap))
            elif replace:
                con.execute("UPDATE accounts SET source = ? WHERE id = ?", (text, there.id))
                note(con, "corpus", account, _corpus_as_text(there.source), _corpus_as_text(source))
            elif if_missing and _is_same(there.source, source):
                return there.account(prices(con, there.id))
            else:
                raise UsageError(
                    f"The account {account!r} exists. Choose another name, change its cap with "
                    "`dphh ledger cap`, or say that it is of this corpus from now on: replace=True"
                )
            _charge_earlier_runs(con, account_named(con, account).id, source, held)
        return self.status(account)

    @named_in_words
    def set_cap(
        self, account: str, epsilon: float, delta: float, kept: Kept | None = None
    ) -> Account:
        """Change a cap; its rule stays, unless `kept` is given. A cap below what was spent is
        allowed, and refuses all further runs."""
        with writing(self.path) as con:
            row = account_named(con, account)
            if kept is None and delta > 0:
                kept = row.cap.kept
            cap = checked_cap(epsilon, delta, kept)
            con.execute(
                "UPDATE accounts SET epsilon = ?, delta = ?, kept = ? WHERE id = ?",
                (cap.epsilon, cap.delta, cap.kept, row.id),
            )
            note(con, "cap", account, cap_as_text(row.cap), cap_as_text(cap))
        return self.status(account)

    def declare_groups(self, account: str, column: str, groups: str | Sequence[str]) -> None:
        """Declare which values of a column are public, so that users may be counted within them.
        No groups: none are public any more."""
        values = checked_groups(column, groups) if groups else ()
        with writing(self.path) as con:
            row = account_named(con, account)
            if values and column in columns_of(row.source.user):
                raise UsageError(
                    f"by: {column!r} identifies the users of {account!r}, and each user would be a "
                    "group: name another column. Nothing was declared"
                )
            before = declared_in(con).get(account, {}).get(column)
            if not values and before is None:
                raise UsageError(f"groups: none are declared of {column!r} in {account!r}")
            con.execute("DELETE FROM declared WHERE account = ? AND by = ?", (row.id, column))
            if values:
                as_list = json.dumps(list(values))
                con.execute("INSERT INTO declared VALUES (?, ?, ?)", (row.id, column, as_list))
            said = [f"{column}: {', '.join(each)}" if each else None for each in (before, values)]
            note(con, "groups", account, *said)

    def declared_groups(self) -> dict[str, Groups]:
        """The declared columns and values of every account that has any, by the account's name."""
        with reading(self.path) as con:
            return declared_in(con)

    def names(self) -> list[str]:
        with reading(self.path) as con:
            return [row.name for row in accounts_in(con)]

    def accounts(self) -> list[Account]:
        with reading(self.path) as con:
            found = [(row, prices(con, row.id)) for row in accounts_in(con)]
        return [row.account(paid) for row, paid in found]

    def status(self, account: str) -> Account:
        with reading(self.path) as con:
            row = account_named(con, account)
            paid = prices(con, row.id)
        return row.account(paid)

    def corpus(self, account: str, *, files: str | Path | Sequence[str | Path] = ()) -> Corpus:
        """The corpus of an account, read as its owner said when it was added; its account pays.

        files: read these alone. They must be the account's."""
        with reading(self.path) as con:
            source = account_named(con, account).source
        if source.kind != "path":
            raise UsageError(
                f"corpus: the account {account!r} is of a table in memory ({source.label}); pass "
                f"that table with account={account!r}"
            )
        corpus = corpus_from_json(source.to_json(), account=account)
        some = [files] if isinstance(files, (str, Path)) else list(files)
        if not some:
            return corpus
        chosen = replaced(source, where=tuple(map(absolute, some)))
        if not all(holds(source, places_of(replaced(chosen, where=(w,)))) for w in chosen.where):
            raise not_of_account(account, source, chosen)
        return replace_corpus(corpus, where=chosen.where)

    def absent(self) -> str | None:
        """A message if the ledger does not exist, else None."""
        if exists(self.path):
            return None
        return (
            f"There is no ledger at {self.path}. If there was one, put it back, or name its file "
            "(--ledger, DPHH_LEDGER). If there was none, `dphh ledger add ACCOUNT CORPUS` makes it."
        )

    def refuse_absent(self) -> None:
        if (why := self.absent()) is not None:
            raise UsageError(why)

    def history(self, account: str | None = None) -> list[Change]:
        """Owners' changes of one account, or of all and of analysts' tokens."""
        with reading(self.path) as con:
            query = """
                SELECT recorded, who, what, account, analyst, was, now FROM history
                WHERE :account IS NULL OR account = :account ORDER BY id
            """
            found = con.execute(query, {"account": account})
            return [Change(day_of(day), *rest) for day, *rest in found]

    def _sources_held(self, source: Source) -> dict[str, bool]:
        """The sources of all runs, and whether this one holds them. Files are listed, so this is
        done before a transaction for which others wait."""
        with reading(self.path) as con:
            texts = [text for (text,) in con.execute("SELECT DISTINCT source FROM runs")]
        return {text: _is_on_files_of(source, text) for text in texts}


class AccountRow(NamedTuple):
    """An account as the ledger stores it."""

    id: int
    name: str
    source: Source
    cap: Cap

    def account(self, runs: list[Booking]) -> Account:
        """The account with what its runs have spent."""
        return Account(
            name=self.name,
            source=self.source,
            runs=len(runs),
            cap=self.cap,
            spent=spent(runs, self.cap),
            left=left(runs, self.cap),
            used=used(runs, self.cap),
        )


# What follows works inside the caller's transaction.


def accounts_in(con: sqlite3.Connection) -> list[AccountRow]:
    query = "SELECT id, name, source, epsilon, delta, kept FROM accounts ORDER BY id"
    return [
        AccountRow(number, name, Source.from_json(json.loads(source)), Cap(epsilon, delta, kept))
        for number, name, source, epsilon, delta, kept in con.execute(query)
    ]


def account_named(con: sqlite3.Connection, name: str) -> AccountRow:
    for row in accounts_in(con):
        if row.name == name:
            return row
    raise UsageError(
        f"The ledger has no account {name!r}: `dphh ledger show` lists those there are; "
        f"`dphh ledger add {name} ...`, or "
        f"dphh.Ledger().add({name!r}, corpus, epsilon, delta), makes one"
    )


def prices(con: sqlite3.Connection, account: int, analyst: str | None = None) -> list[Booking]:
    """The prices of an account's runs in their order, of all or of one analyst."""
    query = f"""
        SELECT events, epsilon, delta FROM charges JOIN runs ON run = sequence
        WHERE account = :account {"" if analyst is None else "AND analyst = :analyst"}
        ORDER BY sequence
    """
    found = con.execute(query, {"account": account, "analyst": analyst})
    return [Booking(events_of(events), epsilon, delta) for events, epsilon, delta in found]


def declared_in(con: sqlite3.Connection) -> dict[str, Groups]:
    found: dict[str, Groups] = {}
    query = 'SELECT name, by, "groups" FROM declared JOIN accounts ON id = account ORDER BY id, by'
    for name, column, groups in con.execute(query):
        found.setdefault(name, {})[column] = tuple(json.loads(groups))
    return found


def events_of(text: str) -> tuple[Event, ...]:
    try:
        return events_from_json(json.loads(text))
    except UsageError as error:
        raise LedgerError(f"The ledger holds a run that this dphh cannot price: {error}") from error


def note(
    con: sqlite3.Connection,
    what: str,
    account: str | None,
    was: str | None,
    now: str | None,
    analyst: str | None = None,
) -> None:
    """Record an owner's change, inside the transaction that makes it."""
    con.execute(
        "INSERT INTO history (account, analyst, what, was, now, who, recorded) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (account, analyst, what, was, now, system_user(), today()),
    )


def _charge_earlier_runs(
    con: sqlite3.Connection, account: int, source: Source, held: dict[str, bool]
) -> None:
    """Charge an account for the runs that were made on its files before it was named."""
    for run, text in con.execute("SELECT sequence, source FROM runs").fetchall():
        if text not in held:  # booked since the files were listed
            held[text] = _is_on_files_of(source, text)
        if held[text]:
            con.execute("INSERT OR IGNORE INTO charges VALUES (?, ?)", (run, account))


def _is_on_files_of(source: Source, text: str) -> bool:
    return holds(source, places_of(Source.from_json(json.loads(text))))


def today() -> float:
    """The present day. Hours and seconds are not recorded: a run's duration discloses how much data
    it read, and thus a user with very many rows."""
    return time.time() // DAY * DAY


def day_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def system_user() -> str:
    """The operating system's name of the user, which is a note and not a proof."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # no such table here, or a container's number without a name
        return os.environ.get("USERNAME") or f"user {getattr(os, 'getuid', lambda: 'unknown')()}"


def cap_as_text(cap: Cap) -> str:
    kept = "" if cap.kept == default_rule(cap.delta) else f", kept by {cap.kept}"
    return f"epsilon {cap.epsilon:g}, delta {cap.delta:g}{kept}"


def not_of_account(name: str, account: Source, asked: Source) -> UsageError:
    return UsageError(
        f"account: {name!r} is of {account.label}, not of {asked.label}. Nothing was spent. Leave "
        "account out, or let its owner say where its data are now (`dphh ledger add NAME CORPUS "
        "... --replace`)"
    )


def _corpus_as_text(source: Source) -> str:
    return f"{source.label}, {counted_by(source.user)}"


def _is_same(one: Source, other: Source) -> bool:
    """Whether two sources name the same paths and the same users."""
    return (one.kind, set(one.where), one.user) == (other.kind, set(other.where), other.user)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"\w[\w-]{0,99}(\.[\w-]{1,99})*", name) or name.endswith(".parquet"):
        raise UsageError(
            f"An account's name is letters, digits, '_', '-' and '.', not {name!r}: a path or a "
            "glob would be taken for a file."
        )
