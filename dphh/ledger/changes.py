"""Changes that owners made: each is recorded as the state that it left, and described in words."""

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

#: The present state of all that owners may change: accounts, shares and analysts' tokens.
STATES = """
    SELECT name AS account, NULL AS analyst,
        json_array(json_array(epsilon, delta, rule), source, "groups") AS state FROM accounts
    UNION ALL SELECT name, analyst, json_array(shares.epsilon, shares.delta)
        FROM shares JOIN accounts ON account = id
    UNION ALL SELECT NULL, analyst, sha256 FROM tokens
"""
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
    was: str | None  # what was in force before, in words; None: nothing
    now: str | None  # what is in force since; None: nothing
    after: int  # the sequence of the ledger's last run before it; 0 without one
    runs: int  # how many of the account's runs were asked for before it
    before: str | None  # the state, as in `STATES`, before it
    state: str | None  # and since
    earlier: tuple[int, ...]  # the earlier runs on its data that count as spent since

    @property
    def lowers_cap(self) -> bool:
        """Whether it made a cap smaller, so that what was promised before still holds."""
        was, now = _account(self.before), _account(self.state)
        if self.what != "cap" or was is None or now is None:
            return False
        both = [(was.cap.epsilon, now.cap.epsilon), (was.cap.delta, now.cap.delta)]
        return all(new <= old for old, new in both) and any(new < old for old, new in both)

    def is_of_groups_by(self, column: str | None) -> bool:
        """Whether it declared or withdrew groups of this column."""
        return self.what == "groups" and f"{self.now or self.was}".startswith(f"{column}: ")

    def to_json(self) -> dict[str, Any]:
        fields = {**self._asdict(), "when": self.when.isoformat()}
        internal = ("before", "state", "earlier")
        return {name: value for name, value in fields.items() if name not in internal}

    def __str__(self) -> str:
        before = f", after {with_noun(self.runs, 'run')}" if self.runs else ", before any run"
        did = f"{'made' if self.what == 'account' else 'given'}: {self.now}"
        if self.was is not None:
            did = f"changed from {self.was} to {self.now}"
        if self.now is None:
            did = f"withdrawn; it was {self.was}"
        return (
            f"{self.when:%Y-%m-%d}{before if self.account else ''}: "
            f"{_CHANGED[self.what].format(self.analyst)} {did}; by {self.who}"
        )


def _in_words(what: str, before: str | None, state: str | None, earlier: int) -> list[str | None]:
    """In words: what was in force before a change, and since; None: nothing."""
    if what == "token":
        return [before and "an earlier one", state and "a new one"]
    if what == "share":
        return [share and str(Budget(*json.loads(share))) for share in (before, state)]
    was, now = accounts = [_account(before), _account(state)]
    texts: list[str | None] = [account and str(account) for account in accounts]
    if what == "cap":
        texts = [account and _cap_in_words(account.cap) for account in accounts]
    elif was and now and what == "groups":
        texts = _groups_in_words(was.groups, now.groups)
    elif was and now:
        # The same path may lead elsewhere, as a link does, or may be recorded in another form.
        where = label_of(now.corpus)
        texts = [*(corpus_change(was.corpus, now.corpus) or (where, where))]
    if earlier:
        runs = with_noun(earlier, "earlier run")
        texts[1] = f"{texts[1]}; counted as spent: {runs} on its data"
    return texts


def _groups_in_words(was: dict[str, list[str]], now: dict[str, list[str]]) -> list[str | None]:
    """The groups of the one column that changed, before and since."""
    (column,) = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    before_and_since = [groups.get(column) for groups in (was, now)]
    return [f"{column}: {', '.join(names)}" if names else None for names in before_and_since]


def _cap_in_words(cap: Cap) -> str:
    return str(cap) + ("" if cap.rule == default_rule(cap.delta) else f", rule {cap.rule}")


def replayed(
    con: sqlite3.Connection,
) -> tuple[list[Change], dict[tuple[str | None, str | None], str]]:
    """All changes in their order; and the state that they have left for each account and analyst,
    which `STATES` must also give."""
    query = """
        SELECT recorded, who, what, account, analyst, state, earlier, after, (
            SELECT count(*) FROM charges JOIN accounts ON accounts.id = charges.account
            WHERE name = history.account AND run <= after
        )
        FROM history ORDER BY id
    """
    states: dict[tuple[str | None, str | None], str] = {}
    changes = []
    for day, who, what, name, analyst, state, earlier, after, runs in con.execute(query):
        when, before = datetime.fromtimestamp(day, UTC), states.pop((name, analyst), None)
        charged = tuple(json.loads(earlier))
        was, now = _in_words(what, before, state, len(charged))
        raw = before, state, charged
        changes.append(Change(when, who, what, name, analyst, was, now, after, runs, *raw))
        if what == "account":  # its shares go with it
            states = {key: left for key, left in states.items() if key[0] != name}
        if state is not None:
            states[name, analyst] = state
    return changes, states


def changes_in(con: sqlite3.Connection, account: str | None = None) -> list[Change]:
    """What owners changed in one account, and in the tokens of its analysts; or in all."""
    changes, _ = replayed(con)
    # A token opens all shares of its analyst, so it belongs to each account that gave one.
    analysts = {change.analyst for change in changes if change.account == account}
    return [
        change
        for change in changes
        if account in (None, change.account)
        or (change.account is None and change.analyst in analysts)
    ]


def record_change(
    con: sqlite3.Connection,
    what: str,
    account: str | None,
    analyst: str | None = None,
    charged: Sequence[int] = (),
) -> None:
    """Record an owner's change, inside the transaction that has just made it, with the earlier
    runs that it `charged`."""
    number = con.execute(
        "INSERT INTO history (account, analyst, what, earlier, who, recorded, after, state) "
        "SELECT :account, :analyst, :what, :earlier, :who, :day, coalesce(max(sequence), 0), "
        f"(SELECT state FROM ({STATES}) WHERE account IS :account AND analyst IS :analyst) "
        "FROM runs",
        {"account": account, "analyst": analyst, "what": what,
         "earlier": canonical_json(charged), "who": login_name(), "day": start_of_today()},
    ).lastrowid  # fmt: skip
    seal(con, "history", number)
