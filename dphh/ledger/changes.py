"""What owners changed: each change is recorded as the state that it left, and told in words."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dphh.ledger.asked import corpus_change, corpus_in_words
from dphh.ledger.budget import Budget, Cap, default_rule
from dphh.ledger.entries import canonical_json
from dphh.ledger.paying import label_of
from dphh.ledger.tables import login_name, seal, start_of_today
from dphh.reader.corpus import Corpus, corpus_from_json
from dphh.wording.lines import with_noun

#: All that owners may change, as it is now: of accounts, of shares and of analysts' tokens.
STATES = """
    SELECT name AS account, NULL AS analyst,
        json_array(json_array(epsilon, delta, rule), source, "groups") AS state FROM accounts
    UNION ALL SELECT name, analyst, json_array(shares.epsilon, shares.delta)
        FROM shares JOIN accounts ON account = id
    UNION ALL SELECT NULL, analyst, sha256 FROM tokens
"""
#: The parts of an account's state, as changes of them are called.
PARTS = ("cap", "corpus", "groups")
#: What owners change, in words.
_CHANGED = {
    "account": "account",
    "cap": "cap",
    "corpus": "data and columns",
    "groups": "public groups",
    "share": "share of the analyst {}",
    "token": "token of the analyst {}",
}


class _Account(NamedTuple):
    """What owners may change of an account."""

    cap: Cap
    corpus: Corpus
    groups: dict[str, list[str]]

    def __str__(self) -> str:
        return f"a cap of {_cap_in_words(self.cap)}, for {corpus_in_words(self.corpus)}"


def _account(state: str | None) -> _Account | None:
    if state is None:
        return None
    cap, source, groups = json.loads(state)
    return _Account(Cap(*cap), corpus_from_json(json.loads(source)), json.loads(groups))


class Change(NamedTuple):
    """One change that an owner made: of an account, its cap, its corpus, its declared groups, an
    analyst's share or token."""

    when: datetime  # the day of the change
    who: str  # the login name under which it was made
    what: str
    account: str | None  # None for a token, which is for all of an analyst's shares
    analyst: str | None
    before: str | None  # the state, of `STATES`, that was in force before; None: nothing
    state: str | None  # what is in force since; None: nothing
    earlier: tuple[int, ...]  # the earlier runs on its data that count as spent since
    after: int  # the sequence of the ledger's last run before it; 0 without one
    runs: int  # how many of the account's runs were asked for before it

    @property
    def lowers_cap(self) -> bool:
        """Whether it made a cap smaller: what was promised before then holds all the same."""
        was, now = _account(self.before), _account(self.state)
        if self.what != "cap" or was is None or now is None:
            return False
        both = [(was.cap.epsilon, now.cap.epsilon), (was.cap.delta, now.cap.delta)]
        return all(new <= old for old, new in both) and any(new < old for old, new in both)

    def is_of_groups_by(self, column: str | None) -> bool:
        """Whether it declared or withdrew groups of this column."""
        return self.what == "groups" and column in self._columns()

    def _columns(self) -> list[str]:
        """The columns whose declared groups it changed."""
        was, now = (
            each.groups if each else {} for each in map(_account, (self.before, self.state))
        )
        return [each for each in {**was, **now} if was.get(each) != now.get(each)]

    @property
    def was(self) -> str | None:
        """What was in force before, in words; None: nothing."""
        return self._in_words()[0]

    @property
    def now(self) -> str | None:
        """What is in force since, in words; None: nothing."""
        return self._in_words()[1]

    def _in_words(self) -> list[str | None]:
        if self.what == "token":
            return [self.before and "an earlier one", self.state and "a new one"]
        if self.what == "share":
            return [each and str(Budget(*json.loads(each))) for each in (self.before, self.state)]
        was, now = both = [_account(self.before), _account(self.state)]
        if self.what == "cap":
            said = [each and _cap_in_words(each.cap) for each in both]
        elif self.what == "groups":
            said = [each and _groups_in_words(each.groups, self._columns()) for each in both]
        elif self.what == "corpus" and was and now:
            # The same path leads elsewhere, as a link may; or is recorded otherwise.
            where = label_of(now.corpus)
            said = [*(corpus_change(was.corpus, now.corpus) or (where, where))]
        else:
            said = [each and str(each) for each in both]
        if self.earlier:
            runs = with_noun(len(self.earlier), "earlier run")
            said[1] = f"{said[1]}; {runs} on its data count as spent"
        return said

    def to_json(self) -> dict[str, Any]:
        names = ("who", "what", "account", "analyst", "was", "now", "after", "runs")
        return {"when": self.when.isoformat(), **{name: getattr(self, name) for name in names}}

    def __str__(self) -> str:
        was, now = self._in_words()
        before = f", after {with_noun(self.runs, 'run')}" if self.runs else ", before any run"
        did = f"{'made' if self.what == 'account' else 'given'}: {now}"
        if was is not None:
            did = f"changed from {was} to {now}" if now is not None else f"withdrawn; it was {was}"
        return (
            f"{self.when:%Y-%m-%d}{before if self.account else ''}: "
            f"{_CHANGED[self.what].format(self.analyst)} {did}; by {self.who}"
        )


def _groups_in_words(groups: dict[str, list[str]], columns: list[str]) -> str | None:
    said = [f"{each}: {', '.join(groups[each])}" for each in columns if each in groups]
    return "; ".join(said) or None


def _cap_in_words(cap: Cap) -> str:
    return str(cap) + ("" if cap.rule == default_rule(cap.delta) else f", rule {cap.rule}")


def replayed(
    con: sqlite3.Connection,
) -> tuple[list[Change], dict[tuple[str | None, str | None], str]]:
    """All changes in their order; and what they have left, as `STATES`: of each account and analyst
    the state."""
    query = """
        SELECT recorded, who, what, account, analyst, state, earlier, after, (
            SELECT count(*) FROM charges JOIN accounts ON accounts.id = charges.account
            WHERE name = history.account AND run <= after
        )
        FROM history ORDER BY id
    """
    states: dict[tuple[str | None, str | None], str] = {}
    changes = []
    for day, who, what, name, analyst, state, earlier, *rest in con.execute(query):
        when, before = datetime.fromtimestamp(day, UTC), states.pop((name, analyst), None)
        charged = tuple(json.loads(earlier))
        changes.append(Change(when, who, what, name, analyst, before, state, charged, *rest))
        if what == "account":  # its shares go with it
            states = {of: left for of, left in states.items() if of[0] != name}
        if state is not None:
            states[name, analyst] = state
    return changes, states


def changes_in(con: sqlite3.Connection, account: str | None = None) -> list[Change]:
    """What owners changed in one account, and in the tokens of its analysts; or in all."""
    changes, _ = replayed(con)
    # A token opens all shares of its analyst: it is of each account that gave one.
    analysts = {each.analyst for each in changes if each.account == account}
    return [
        each
        for each in changes
        if account in (None, each.account) or (each.account is None and each.analyst in analysts)
    ]


def record_change(
    con: sqlite3.Connection,
    what: str,
    account: str | None,
    analyst: str | None = None,
    charged: Sequence[int] = (),
) -> None:
    """Record an owner's change, inside the transaction that has just made it, and which earlier
    runs were `charged` with it."""
    number = con.execute(
        "INSERT INTO history (account, analyst, what, earlier, who, recorded, after, state) "
        "SELECT :account, :analyst, :what, :earlier, :who, :day, coalesce(max(sequence), 0), "
        f"(SELECT state FROM ({STATES}) WHERE account IS :account AND analyst IS :analyst) "
        "FROM runs",
        {"account": account, "analyst": analyst, "what": what,
         "earlier": canonical_json(charged), "who": login_name(), "day": start_of_today()},
    ).lastrowid  # fmt: skip
    seal(con, "history", number)
