"""The ledger's accounts: corpora by name, what caps them, and what each has spent and has left."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from dphh.columns import checked_groups
from dphh.corpora.user import columns_of
from dphh.corpus import Corpus, corpus_from_json, in_groups
from dphh.errors import LedgerError, Notice, UsageError
from dphh.files.paths import written_here
from dphh.files.whole_files import write_whole
from dphh.ledger import records
from dphh.ledger.analyst_shares import Share, has_shares, set_share, shares
from dphh.ledger.bars import accounts_html
from dphh.ledger.budget import Budget, Cap, Kept, checked_budget, checked_cap
from dphh.ledger.columns_there import refuse_missing_columns_of_files
from dphh.ledger.declared import Groups, declare, declared
from dphh.ledger.entries import Account, unknown_account
from dphh.ledger.history import Change, caps_as_text, changes, note
from dphh.ledger.marks import Marks, copy_marks, marks
from dphh.ledger.moved import Earlier, earlier_runs_on, is_there, moved_to, refuse_unmoved_data
from dphh.ledger.older_copy import behind, lower_note, refuse_newer_copy
from dphh.ledger.origins import source_of
from dphh.ledger.paying import SharingAccounts, account_by_name, find_sharing_accounts, moved_here
from dphh.ledger.records import AccountRow, Prices
from dphh.ledger.schema import default_path, reading, writing
from dphh.ledger.sources import Source
from dphh.ledger.wording import accounts_text
from dphh.rows.period import ALWAYS, PeriodColumn, Spans
from dphh.wording.options import named_in_words
from dphh.wording.warned import warn


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

    def _repr_html_(self) -> str:
        if (said := self.absent()) is not None:
            return f"<p>{escape(said)}</p>"
        return accounts_html(self.accounts())

    @named_in_words
    def add(
        self,
        name: str,
        source: Source | Corpus,
        epsilon: float,
        delta: float,
        kept: Kept = "open",
        person: tuple[float, float] | None = None,
        *,
        if_missing: bool = False,
    ) -> Account:
        """Name a corpus and cap it. `kept`: the rule of the cap, if not the one that the first run
        settles ("divergence" for releases with Gaussian noise, "sums" for all others). If the unit
        is a user in one period, each period has this cap, and `person`, (epsilon, delta), caps the
        total for a person over all periods. `if_missing`: a corpus that has this name already keeps
        its cap.

        Earlier runs on any of its files, under any path, count as spent, also if they had another
        user column (then at their claimed price).
        """
        cap = checked_cap(epsilon, delta, kept)
        checked_name(name)
        if not isinstance(source, (Source, Corpus)):
            raise UsageError(f"source: found a {type(source).__name__}; give a dphh.Corpus")
        if isinstance(source, Corpus):
            refuse_missing_columns_of_files(source, "Nothing was added")
            source = source_of(source)
        if source.periods is not None:
            raise UsageError(
                "periods: an account is of all periods of its corpus, and each run names its own; "
                "leave periods out. Nothing was added"
            )
        of_a_person = checked_person(person, cap, source.period)
        source = source.absolute()
        fingerprint = source.fingerprint()
        earlier = self._earlier_runs_on(source)
        with writing(self.path) as con:
            rows = records.accounts(con)
            there = next((row for row in rows if row.name == name), None)
            if there is not None and if_missing and there.fingerprint == fingerprint:
                return there.account(records.unit_and_person_prices(con, there.id))
            if there is not None:
                raise UsageError(
                    f"The account {name!r} exists. Choose another name, or change its cap with "
                    "`dphh ledger cap`. How its corpus is read is changed by `dphh ledger remove` "
                    "and adding it again, while nothing is charged to it."
                )
            same = [row.id for row in rows if row.name is None and row.fingerprint == fingerprint]
            account = records.insert_account(con, name, source, fingerprint).id
            records.insert_cap(con, account, cap, of_a_person)
            note(con, records.now(con), "cap", name, None, caps_as_text(cap, of_a_person))
            for unnamed in same:  # the corpus has a name now
                con.execute("UPDATE charges SET account = ? WHERE account = ?", (account, unnamed))
                copy_marks(con, unnamed, account)
                con.execute("DELETE FROM accounts WHERE id = ?", (unnamed,))
            earlier.charge(con, account)
            others = {row.id: row.label for row in rows if row.name is not None}
        for other, file in earlier.moved.items():
            if other in others:
                warn(moved_here(others[other], file), Notice)
        return self.status(name)

    @named_in_words
    def move(
        self, name: str, where: str | Path | Sequence[str | Path], *, sure: bool = False
    ) -> Account:
        """Record the new location of an account's data. Its cap and its costs stay.

        Refused, unless `sure`, if no file there is known as a file of the account, or if some of
        its files are still at the old location.
        """
        with reading(self.path) as con:
            row = account_by_name([] if con is None else records.accounts(con), name)
        source = moved_to(row.source, where, name)
        earlier = self._earlier_runs_on(source)
        if not sure:
            refuse_unmoved_data(row, source, earlier)
        with writing(self.path) as con:
            if account_by_name(records.accounts(con), name).source != row.source:
                raise LedgerError(
                    f"The account {name!r} was moved by another process: repeat the request."
                )
            records.move_account(con, row.id, source)
            places = [", ".join(each.where) for each in (row.source, source)]
            note(con, records.now(con), "place", name, *places)
            earlier.charge(con, row.id)
        return self.status(name)

    def deleted(self, name: str) -> Account:
        """Record that the data of an account are deleted, so that runs no longer warn of missing
        files. For a copy with the same file times the account still pays."""
        with reading(self.path) as con:
            row = account_by_name([] if con is None else records.accounts(con), name)
        if row.source.kind != "path" or is_there(row.source):
            raise UsageError(
                f"The account {name!r} still has files at {', '.join(row.source.where)}, or this "
                "cannot be checked. Delete the files first. Nothing was changed."
            )
        with writing(self.path) as con:
            con.execute("INSERT OR IGNORE INTO deleted VALUES (?)", (row.id,))
            note(con, records.now(con), "place", name, ", ".join(row.source.where), None)
        return self.status(name)

    def remove(self, name: str) -> None:
        """Forget an account that nothing was ever charged to, such as one with a wrong column."""
        with writing(self.path) as con:
            account = self._never_charged(con, name, "removed")
            shares = ["shares"] if has_shares(con) else []
            for table in ("caps", "marks", "deleted", "declared", *shares):
                con.execute(f"DELETE FROM {table} WHERE account = ?", (account.id,))
            con.execute("DELETE FROM accounts WHERE id = ?", (account.id,))
            note(
                con, records.now(con), "cap", name, caps_as_text(account.cap, account.person), None
            )
            lower_note(con, self.path)

    def rename(self, name: str, new: str) -> Account:
        """Rename an account that nothing was ever charged to."""
        checked_name(new)
        with writing(self.path) as con:
            account = self._never_charged(con, name, "renamed")
            if any(row.name == new for row in records.accounts(con)):
                raise UsageError(f"The account {new!r} exists. Choose another name.")
            con.execute("UPDATE accounts SET name = ? WHERE id = ?", (new, account.id))
            note(con, records.now(con), "name", new, name, new)
        return self.status(new)

    def _never_charged(self, con: sqlite3.Connection, name: str, what: str) -> AccountRow:
        account = account_by_name(records.accounts(con), name)
        # A cancelled run's charge stays: its request names the account.
        charged = con.execute("SELECT count(*) FROM charges WHERE account = ?", (account.id,))
        if (runs := charged.fetchone()[0]) > 0:
            raise UsageError(
                f"The account {name!r} was charged {runs:,} times, so it cannot be {what}: its "
                "spending must be kept. To stop it, lower its cap with `dphh ledger cap`."
            )
        return account

    @named_in_words
    def set_cap(
        self,
        name: str,
        epsilon: float,
        delta: float,
        kept: Kept = "open",
        person: tuple[float, float] | None = None,
    ) -> Account:
        """Change a cap and its rule (`kept`). A cap below what was spent is allowed, and refuses
        all further runs. Without `person`, the cap of a person stays as it is."""
        cap = checked_cap(epsilon, delta, kept)
        with writing(self.path) as con:
            row = account_by_name(records.accounts(con), name)
            before = None if row.person is None else (row.person.epsilon, row.person.delta)
            of_a_person = checked_person(person or before, cap, row.source.period)
            records.insert_cap(con, row.id, cap, of_a_person)
            records.settle_cap_rule(con, row.id)
            changed = caps_as_text(row.cap, row.person), caps_as_text(cap, of_a_person)
            note(con, records.now(con), "cap", name, *changed)
        return self.status(name)

    def accounts_touched(self, source: Source | str) -> tuple[str, ...]:
        """The named accounts that share data with a source (or with an account, by its name)."""
        if isinstance(source, str):
            source = self.status(source).source
        return tuple(each.account.label for each in self._look_at_accounts(source).shared)

    def moved_here(self, source: Source) -> tuple[str, ...]:
        """Sentences that say which account pays for a source because its files were moved from
        there."""
        shared = self._look_at_accounts(source).shared
        return tuple(moved_here(each.account.label, each.moved) for each in shared if each.moved)

    def absent(self) -> str | None:
        """A message if the ledger does not exist, else None."""
        with reading(self.path) as con:
            if con is not None:
                return None
        if (lost := behind(None, self.path)) is not None:
            return lost
        return (
            f"There is no ledger at {self.path}. If there was one it was moved or removed, and "
            "what was spent is in it alone: put it back, or name its file (--ledger, DPHH_LEDGER). "
            "If there was none, `dphh ledger add NAME CORPUS ...` makes it."
        )

    def refuse_absent(self) -> None:
        """Refuse a ledger that does not exist: of one that was lost, the request is not wrong."""
        if (why := self.absent()) is not None:
            raise LedgerError(why) if self.behind() is not None else UsageError(why)

    def behind(self) -> str | None:
        """A message if the ledger was lost or replaced by an older copy, as far as that can be
        detected, else None."""
        with reading(self.path) as con:
            return behind(con, self.path)

    def gone(self) -> tuple[Account, ...]:
        """Named accounts that had files, none of which exists any more."""
        with reading(self.path) as con:
            have = set() if con is None else records.accounts_with_files(con)
        rows = [
            row for row in self._named_accounts()[0] if row.id in have and not is_there(row.source)
        ]
        return tuple(self.status(row.label) for row in rows)

    def caps_corpora(self) -> bool:
        """Whether any corpus is capped here. If so, a corpus whose files cannot be traced must name
        its account."""
        named, _ = self._named_accounts()
        return bool(named)

    def accounts(self) -> list[Account]:
        """Every corpus, in the order of the first run or naming."""
        return [row.account(prices) for row, prices in self._accounts_with_prices()]

    def status(self, name: str, periods: Spans | None = None) -> Account:
        """One corpus by its name or, if it has none, by its path or label. What is left is for one
        more run over these periods, if the unit is a user in one period."""
        found = [(row, prices) for row, prices in self._accounts_with_prices(name)]
        if not found:
            raise unknown_account(name)
        row, prices = min(found, key=lambda each: each[0].name is None)
        return row.account(prices, ALWAYS if periods is None else periods)

    def label_of(self, asked: str) -> str:
        """The label of a corpus by its name, its label, or its path from this folder."""
        with reading(self.path) as con:
            rows = [] if con is None else records.accounts(con)
        accounts = sorted(rows, key=lambda account: account.name is None)
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
        """Analysts' shares of all accounts: what they may spend and have spent."""
        return shares(self.path, analyst)

    def declare_groups(self, name: str, column: str, groups: str | Sequence[str]) -> None:
        """Declare which values of a column are public, so that users may be counted within them."""
        values = checked_groups(column, groups) if groups else ()
        source = self.status(name).source
        if values and column in columns_of(source.user):
            raise UsageError(
                f"by: {column!r} says who the users of {name!r} are, and each user would be a "
                "group: name another column. Nothing was declared"
            )
        if source.kind == "path":
            grouped = in_groups(corpus_from_json(source.to_json()), column)
            refuse_missing_columns_of_files(grouped, "Nothing was declared")
        with writing(self.path) as con:
            declare(con, name, column, values)

    def declared_groups(self) -> dict[str, Groups]:
        """The declared columns and values of every account that has any, by the account's name."""
        with reading(self.path) as con:
            return {} if con is None else declared(con)

    def note_token(self, analyst: str, was: str | None, now: str | None) -> None:
        """Record that an analyst got a token, or that the token was revoked."""
        with writing(self.path) as con:
            note(con, records.now(con), "token", None, was, now, analyst)

    def history(self, name: str | None = None) -> list[Change]:
        """Owners' changes of one account or of all: caps, shares, tokens, groups, names and
        locations; each with the user, the day, the old and the new value."""
        with reading(self.path) as con:
            return [] if con is None else changes(con, name)

    def backup(self, path: str | Path) -> None:
        """Copy the ledger atomically, as it is at one moment, even while other processes write."""
        target = written_here("backup", path)
        if Path(os.path.realpath(target)) == self.path:
            raise UsageError(f"{target} is the ledger itself. Name another file.")
        self.refuse_absent()
        with reading(self.path) as con:
            if con is None:
                raise LedgerError(f"The ledger {self.path} has gone meanwhile. Nothing was copied")
            if (older := behind(con, self.path)) is not None:
                raise LedgerError(f"{older} Nothing was copied")
            refuse_newer_copy(con, target)
            found = con.execute("PRAGMA integrity_check (1)").fetchone()[0]
            if found != "ok":
                raise LedgerError(
                    f"The ledger {self.path} is damaged, and was not copied over {target}. Restore "
                    "it from the last copy (docs/lost-ledger.md)."
                )
            copy = con.serialize()
        try:
            write_whole(target, copy, mode=0o600)
        except OSError as error:
            raise LedgerError(
                f"Could not write {target}: {error.strerror or error}. See that its folder exists, "
                "has space and may be written to."
            ) from error

    def _look_at_accounts(self, source: Source) -> SharingAccounts:
        return find_sharing_accounts(source.absolute(), *self._named_accounts())

    def _earlier_runs_on(self, source: Source) -> Earlier:
        while True:
            with reading(self.path) as con:
                if con is not None and (known := marks(con)).key is not None:
                    runs = [run["source"] for run in records.runs(con)]
                    rows = records.accounts(con)
                    break
            with writing(self.path):
                pass  # a new ledger, or an earlier dphh's: it has a key from now on
        return earlier_runs_on(source, rows, runs, known)

    def _named_accounts(self) -> tuple[list[AccountRow], Marks]:
        """The named accounts, and the marks of all."""
        with reading(self.path) as con:
            rows = [] if con is None else records.accounts(con)
            known = Marks() if con is None else marks(con)
        return [row for row in rows if row.name is not None], known

    def _accounts_with_prices(self, label: str | None = None) -> list[tuple[AccountRow, Prices]]:
        """Accounts and what their runs cost, read at one moment."""
        with reading(self.path) as con:
            rows = [] if con is None else records.accounts(con)
            wanted = [row for row in rows if label is None or row.label == label]
            if con is None:
                return []
            return [(row, records.unit_and_person_prices(con, row.id)) for row in wanted]


def checked_name(name: str) -> None:
    if not re.fullmatch(r"\w[\w-]{0,99}(\.[\w-]{1,99})*", name) or name.endswith(".parquet"):
        raise UsageError(
            f"An account's name is letters, digits, '_', '-' and '.', not {name!r}: a path or a "
            "glob would be taken for a file."
        )


def checked_person(
    person: tuple[float, float] | None, cap: Cap, period: PeriodColumn | None
) -> Budget | None:
    """The cap of a person over all periods, beside that of a unit."""
    if person is None:
        return None
    if period is None:
        raise UsageError(
            "person: goes with a corpus whose unit is a user in one period; of any other the cap "
            "is for a person as it is"
        )
    found = checked_budget(*person)
    if found.epsilon < cap.epsilon or found.delta < cap.delta:
        raise UsageError(
            f"person: found {found}, less than the cap of one period, {cap}, which nobody could "
            "then have; give at least that"
        )
    return found
