"""The ledger's accounts: corpora by name, what caps them, and analysts' shares and tokens.

A share is a separate cap on the runs of one analyst. It does not add to the account's cap, which
holds for all runs: shares may sum to more than the cap, and then the first runs get it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace as replaced
from pathlib import Path

from dphh.columns import checked_groups
from dphh.errors import LedgerError, Notice, UsageError, warn
from dphh.ledger.budget import Rule, checked_budget, checked_cap
from dphh.ledger.changes import Change, changes_in, record_change
from dphh.ledger.edits import edit_in
from dphh.ledger.entries import canonical_json, check_name
from dphh.ledger.paying import corpus_of_files, holds, places_of
from dphh.ledger.schema import absent_message, default_path, exists, reading, writing
from dphh.ledger.spending import Account, accounts_text
from dphh.ledger.tables import account_named, account_names, accounts_in, shares_of
from dphh.reader.corpus import Corpus, as_recorded, corpus_from_json, unit_and_columns
from dphh.reader.paths import local_path_to_write
from dphh.wording.lines import with_noun
from dphh.wording.notebook import InNotebooks
from dphh.wording.options import checked_call


class Accounts(InNotebooks):
    """The accounts of a ledger: how they are read, and how their owner changes them."""

    def __init__(
        self, path: str | Path | None = None, analyst: str | None = None, *, create: bool = False
    ) -> None:
        # The path is resolved once: it must not name another ledger when the process changes its
        # working folder, and SQLite names the journal after the real file.
        file = local_path_to_write("ledger", default_path() if path is None else path)
        self.path = Path(os.path.realpath(file.expanduser()))
        self.analyst = analyst
        #: The ids of the runs that this object booked or continued.
        self.booked_here: set[str] = set()
        if create:
            with writing(self.path, create=True):
                pass

    def __repr__(self) -> str:
        """The ledger's path, and what every account has spent and left."""
        try:
            text = self.absent() or self.edited() or accounts_text(self.accounts())
            return "\n".join([f"Ledger({str(self.path)!r})", text, *self.uncapped_runs()])
        except LedgerError as problem:
            return f"Ledger({str(self.path)!r}): {problem}"

    def _rows(self) -> list[tuple[str, ...]]:
        try:
            refused = self.absent() or self.edited()
            accounts = self.accounts() if refused is None else []
            rows = [row for account in accounts for row in account._rows()]
            rows = rows or [(refused or accounts_text(accounts),)]
            rows += [(line,) for line in self.uncapped_runs()]
        except LedgerError as problem:
            rows = [(str(problem),)]
        return [("ledger", str(self.path)), *rows]

    def uncapped_runs(self) -> list[str]:
        """A line on the runs that no account paid for, if there are any; none for an analyst."""
        if self.analyst is not None or self.absent() is not None:
            return []
        query = "SELECT count(*) FROM runs WHERE sequence NOT IN (SELECT run FROM charges)"
        with reading(self.path) as con:
            ((count,),) = con.execute(query).fetchall()
        runs = with_noun(count, "run")
        return (
            [f"of no account, so that no cap holds: {runs} (`dphh ledger show`)"] if count else []
        )

    @contextmanager
    def _changing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction in which the owner changes something. It refuses a file that somebody
        edited, as the change would hide the edit."""
        with writing(self.path, create=create) as con:
            if (edited := edit_in(con)) is not None:
                raise LedgerError(f"{edited}. Nothing was changed")
            yield con

    @checked_call
    def add(
        self,
        account: str,
        corpus: Corpus,
        epsilon: float,
        delta: float,
        rule: Rule | None = None,
        *,
        if_missing: bool = False,
        replace: bool = False,
    ) -> Account:
        """Add an account: a name and a cap for a corpus. `rule`: the rule of the cap, "divergence"
        (the default: for items, ngrams and counts) or "sums" (for trie and ldp_trie; the default
        at delta 0).

        An account that exists keeps its cap and what it has spent. `if_missing`: it stays as it
        is, if it is for this corpus. `replace`: it is for this corpus from now on, as when its
        data have moved; its user columns may change until it has runs.

        Earlier runs on any of the corpus's files count as spent. Where files are another account's
        too, each run on them pays from both.
        """
        cap = checked_cap(epsilon, delta, rule)
        _check_account_name(account)
        if not isinstance(corpus, Corpus):
            raise UsageError(f"corpus: found a {type(corpus).__name__}; give a dphh.Corpus")
        text = canonical_json(as_recorded(corpus))
        with self._changing(create=True) as con:
            existing = next(iter(accounts_in(con, lambda own: own.account == account)), None)
            if existing is not None:
                if not replace:
                    if if_missing and canonical_json(as_recorded(existing.corpus)) == text:
                        return existing
                    raise _account_exists_error(account)
                _refuse_other_promise(existing, corpus.user, rule or existing.cap.rule)
            if existing is None:
                con.execute(
                    "INSERT INTO accounts (name, source, epsilon, delta, rule) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (account, text, cap.epsilon, cap.delta, cap.rule),
                )
            else:
                con.execute("UPDATE accounts SET source = ? WHERE id = ?", (text, existing.id))
            earlier = _charge_earlier_runs(con, account, corpus)
            if existing is None:
                record_change(con, "account", account, charged=earlier)
                _refuse_rule_unlike_earlier_payers(con, account, cap.rule)
            elif earlier or text != canonical_json(as_recorded(existing.corpus)):
                record_change(con, "corpus", account, charged=earlier)
            unknown = 0 if existing else _runs_on_tables_of_no_account(con)
            added = account_named(con, account)
        if unknown:
            _warn_of_unknown_runs(unknown)
        return added

    @checked_call
    def set_cap(
        self, account: str, epsilon: float, delta: float, rule: Rule | None = None
    ) -> Account:
        """Change a cap. Its rule stays; until the account has runs, `rule` may name another. A cap
        below what was spent is allowed, and refuses all further runs."""
        with self._changing() as con:
            before = account_named(con, account)
            if rule is None and delta > 0:
                rule = before.cap.rule
            cap = checked_cap(epsilon, delta, rule)
            _refuse_other_promise(before, before.corpus.user, cap.rule)
            con.execute(
                "UPDATE accounts SET epsilon = ?, delta = ?, rule = ? WHERE id = ?",
                (cap.epsilon, cap.delta, cap.rule, before.id),
            )
            if cap != before.cap:
                record_change(con, "cap", account)
            return account_named(con, account)

    @checked_call
    def remove(self, account: str) -> None:
        """Remove an account that has no run, with its shares. One that has runs is refused: its
        data would have a fresh cap, although its releases are known."""
        with self._changing() as con:
            removed = account_named(con, account)
            if removed.runs:
                raise UsageError(
                    f"account: {account!r} has paid for {with_noun(removed.runs, 'run')}, and what "
                    "was spent stays spent, so it cannot be removed. Nothing was changed. "
                    "`dphh ledger cap` with epsilon 0 refuses all further runs"
                )
            con.execute("DELETE FROM shares WHERE account = ?", (removed.id,))
            con.execute("DELETE FROM accounts WHERE id = ?", (removed.id,))
            record_change(con, "account", account)

    def declare_groups(self, account: str, column: str, groups: str | Sequence[str]) -> None:
        """Declare which values of a column are public, so that users may be counted within them.
        Without groups, no values of the column are public any more."""
        values = checked_groups(column, groups) if groups else ()
        with self._changing() as con:
            declaring = account_named(con, account)
            if values and column in declaring.corpus.user:
                raise UsageError(
                    f"by: {column!r} identifies the users of {account!r}, so each user would be a "
                    "group: name another column. Nothing was declared"
                )
            before = declaring.groups.get(column, ())
            if not values and not before:
                raise UsageError(
                    f"groups: {account!r} has no declared groups of {column!r} to withdraw"
                )
            declared = (declaring.groups | {column: values}).items()
            now = {name: public for name, public in declared if public}
            con.execute(
                'UPDATE accounts SET "groups" = ? WHERE id = ?',
                (json.dumps(now, sort_keys=True), declaring.id),
            )
            if values != before:
                record_change(con, "groups", account)

    def names(self) -> list[str]:
        with reading(self.path) as con:
            return account_names(con)

    def accounts(self, account: str | None = None) -> list[Account]:
        """All accounts, or the one with this name; for an analyst's ledger, that analyst's shares
        of them."""
        with reading(self.path) as con:
            # Neither what a share has left nor how long this takes may depend on others' runs.
            accounts = accounts_in(
                con, lambda own: account in (None, own.account), with_bookings=self.analyst is None
            )
            if self.analyst is None:
                return accounts
            return [replaced(share, whole=None) for share in shares_of(con, accounts, self.analyst)]

    def status(self, account: str) -> Account:
        """An account: its `cap`, the share of it that is `used`, and what a run may have now
        (`one_more`)."""
        with reading(self.path) as con:
            return account_named(con, account)

    def corpus(self, account: str, *, files: str | Path | Sequence[str | Path] = ()) -> Corpus:
        """The corpus of an account, as its owner described it. Runs on it are paid by the account.

        files: read only these of the account's files."""
        return corpus_of_files(self.status(account).corpus, files)

    def absent(self) -> str | None:
        """A message if the ledger does not exist, else None."""
        return None if exists(self.path) else absent_message(self.path)

    def edited(self) -> str | None:
        """A message if somebody edited the ledger's file, else None; to its owner alone."""
        if self.analyst is not None:
            return None
        with reading(self.path) as con:
            return edit_in(con)

    def history(self, account: str | None = None) -> list[Change]:
        """What owners changed in one account, and in the tokens of its analysts; without
        `account`, in all."""
        with reading(self.path) as con:
            return changes_in(con, account)

    @checked_call
    def set_share(self, account: str, analyst: str, epsilon: float, delta: float) -> None:
        """Give an analyst a share of an account, or change it. One below what was spent refuses all
        further runs of the analyst."""
        check_name("analyst", analyst, 100)
        budget = checked_budget(epsilon, delta)
        with self._changing() as con:
            whole = account_named(con, account)
            if budget.epsilon > whole.cap.epsilon or budget.delta > whole.cap.delta:
                raise UsageError(
                    f"share: {budget} is more than the cap of {account!r}, {whole.cap}; give at "
                    "most that"
                )
            con.execute(
                "INSERT OR REPLACE INTO shares VALUES (?, ?, ?, ?)",
                (whole.id, analyst, budget.epsilon, budget.delta),
            )
            record_change(con, "share", account, analyst)

    def shares(self, analyst: str | None = None, account: str | None = None) -> list[Account]:
        """Every share, or one analyst's, or those of one account, in the order of the accounts."""
        with reading(self.path) as con:
            wholes = accounts_in(con, lambda own: account in (None, own.account))
            return shares_of(con, wholes, analyst)

    def give_token(self, analyst: str) -> str:
        """A new token for an analyst, in place of an earlier one. Only its hash is stored."""
        check_name("analyst", analyst, 100)
        token = secrets.token_urlsafe(32)
        with writing(self.path) as con:
            con.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?)", (analyst, _hash_of(token)))
            record_change(con, "token", None, analyst)
        return token

    def withdraw_token(self, analyst: str) -> bool:
        """Withdraw an analyst's token; returns whether there was one."""
        with writing(self.path) as con:
            existed = con.execute("DELETE FROM tokens WHERE analyst = ?", (analyst,)).rowcount > 0
            if existed:
                record_change(con, "token", None, analyst)
        return existed

    def analyst_with(self, token: str) -> str | None:
        """The analyst who has this token now, or None. It is looked up by its hash, so the time
        that this takes discloses nothing about existing tokens."""
        with reading(self.path) as con:
            query = "SELECT analyst FROM tokens WHERE sha256 = ?"
            row = con.execute(query, (_hash_of(token),)).fetchone()
        return None if row is None else str(row[0])

    def analysts(self) -> list[str]:
        """The analysts who have a token."""
        with reading(self.path) as con:
            return [name for (name,) in con.execute("SELECT analyst FROM tokens ORDER BY 1")]


def _account_exists_error(account: str) -> UsageError:
    return UsageError(
        f"The account {account!r} exists. Choose another name, change its cap with `dphh ledger "
        "cap`, leave it as it is if it is for this corpus: if_missing=True, or say that it is for "
        "this corpus from now on: replace=True"
    )


def _warn_of_unknown_runs(runs: int) -> None:
    """Tell the owner of a new account that it does not pay for these runs."""
    with suppress(Notice):  # where warnings are errors: the account is made all the same
        warn(
            f"{with_noun(runs, 'earlier run')} on tables in memory that no account paid for: the "
            "ledger does not know whether they read these data, and counts none as spent",
            Notice,
        )


# The functions below run inside the caller's transaction, on its connection.


def _refuse_other_promise(account: Account, user: tuple[str, ...], rule: Rule) -> None:
    """Refuse other user columns, or another rule, for an account that has runs."""
    if not account.runs:
        return
    runs = with_noun(account.runs, "run")
    if user != account.corpus.user:
        raise UsageError(
            f"user: the {runs} of {account.name!r} count as spent for "
            f"{unit_and_columns(account.corpus.user)}, and promise nothing to "
            f"{unit_and_columns(user)}. Nothing was changed. Give these user columns to a new "
            "account, for which the runs count as spent too; first this account, unchanged, gets "
            "another place instead of these files, by replace=True"
        )
    if rule != account.cap.rule:
        raise UsageError(
            f"rule: {account.name!r} has {runs}, so its rule stays {account.cap.rule!r}: where "
            f"releases may have led to the change to {rule!r}, neither rule's theorem holds. "
            "Nothing was changed. Leave rule out"
            + (", and give a delta above 0" if account.cap.rule == "divergence" else "")
        )


def _charge_earlier_runs(con: sqlite3.Connection, account: str, corpus: Corpus) -> list[int]:
    """Charge the account with earlier runs on its files that it has not paid for yet; returns their
    sequence numbers."""
    runs: list[int] = []
    for (source,) in con.execute("SELECT DISTINCT source FROM runs").fetchall():
        if holds(corpus, places_of(corpus_from_json(json.loads(source)))):
            charged = con.execute(
                "INSERT OR IGNORE INTO charges SELECT sequence, id FROM runs, accounts "
                "WHERE runs.source = ? AND name = ? RETURNING run",
                (source, account),
            )
            runs += [run for (run,) in charged]
    return runs


def _runs_on_tables_of_no_account(con: sqlite3.Connection) -> int:
    query = "SELECT source FROM runs WHERE sequence NOT IN (SELECT run FROM charges)"
    sources = (json.loads(source) for (source,) in con.execute(query))
    return sum(corpus_from_json(source).kind != "path" for source in sources)


def _refuse_rule_unlike_earlier_payers(con: sqlite3.Connection, account: str, rule: Rule) -> None:
    """Refuse a new account another rule than that of the accounts that paid for its earlier runs:
    it might have been chosen by the outcomes of these runs (docs/composition.md)."""
    query = """
        SELECT DISTINCT payer.rule FROM charges AS own JOIN accounts AS new ON own.account = new.id
        JOIN charges AS paid ON paid.run = own.run JOIN accounts AS payer ON paid.account = payer.id
        WHERE new.name = ? AND payer.id <> new.id
    """
    rules = {earlier_rule for (earlier_rule,) in con.execute(query, (account,))}
    if rules and rule not in rules:
        raise UsageError(
            f"rule: found {rule!r}, but the account that paid for earlier runs on these files has "
            f"{min(rules)!r}: a rule that is chosen after a release promises nothing. Give that "
            "rule. Nothing was changed"
        )


def _check_account_name(name: str) -> None:
    is_name = re.fullmatch(r"\w[\w-]{0,99}(\.[\w-]{1,99})*", name)
    if not is_name or name.endswith(".parquet"):
        raise UsageError(
            f"account: found the name {name!r}; give letters, digits, '_', '-' and '.' "
            "alone, and not the name of a Parquet file: commands take other texts for paths"
        )


def _hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
