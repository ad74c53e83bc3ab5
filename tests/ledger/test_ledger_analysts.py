"""Analysts: what a share allows, which runs are theirs, and their tokens."""

import hashlib
import re
import sqlite3
from contextlib import suppress
from typing import Any

import pytest

from dphh import BudgetRefused, Corpus, Ledger, UsageError
from dphh.ledger import BookedRun, accounts
from dphh.ledger import tables as ledger_tables
from tests.ledger.asked import ask, asked, items_price

CORPUS = Corpus("/nowhere/reviews.parquet", user="who", text="what")


@pytest.fixture
def shared(ledger):
    ledger.add("reviews", CORPUS, 3.0, 1e-6, "sums")
    ledger.set_share("reviews", "alice", 1.0, 1e-6)
    ledger.set_share("reviews", "bob", 2.5, 1e-6)
    return ledger


def spend(
    ledger: Ledger, analyst: str | None, run_id: str | None, epsilon: float, **how: Any
) -> BookedRun:
    how = {"account": "reviews", **how}
    return ask(Ledger(ledger.path, analyst), run_id, CORPUS, epsilon, 1e-8, **how)


def test_a_share_is_spent_and_then_refuses(shared):
    spend(shared, "alice", "a", 0.6)
    with pytest.raises(BudgetRefused, match="alice's share of the account 'reviews'"):
        spend(shared, "alice", "b", 0.4000001)
    (alice,) = shared.shares("alice")
    assert (alice.runs, alice.name, alice.one_more.epsilon) == (1, "reviews", pytest.approx(0.4))
    spend(shared, "alice", "b", 0.4)
    assert shared.shares("alice")[0].one_more.epsilon == 0
    assert len(shared.runs()) == 2


def test_a_share_is_kept_by_the_accounts_rule(ledger):
    ledger.add("reviews", CORPUS, 1.0, 1e-6, "divergence")
    ledger.set_share("reviews", "alice", 0.5, 5e-7)
    how = {"account": "reviews", "events": items_price(0.1, 1e-8)}
    for number in range(6):  # of which the sums allow five
        ask(Ledger(ledger.path, "alice"), f"run {number}", CORPUS, 0.1, 1e-8, **how)


def test_one_analyst_does_not_spend_anothers_share_but_the_cap_holds_for_all(shared):
    spend(shared, "alice", "a", 1.0)
    spend(shared, "bob", "b", 1.9)
    spend(shared, None, "of the owner", 0.0)
    assert [share.runs for share in shared.shares()] == [1, 1]
    (bob,) = shared.shares("bob")
    assert bob.one_more.epsilon == pytest.approx(0.1)  # of the account, though 0.6 of the share
    (theirs,) = Ledger(shared.path, "bob").accounts()
    assert theirs.one_more.epsilon == pytest.approx(theirs.cap.epsilon - 1.9)  # bob is not told
    with pytest.raises(BudgetRefused, match="for all who may ask"):
        spend(shared, "bob", "c", 0.5)


def test_an_analyst_must_name_an_account(shared):
    with pytest.raises(BudgetRefused, match="must name the account"):
        spend(shared, "alice", "a", 0.1, account=None)


def test_each_share_is_kept_whichever_account_of_the_files_is_named(shared):
    shared.add("wide", CORPUS, 5.0, 1e-6, "sums")
    shared.set_share("wide", "alice", 3.0, 1e-6)
    spend(shared, "alice", "a", 0.7, account="wide")
    assert [share.runs for share in shared.shares("alice")] == [1, 1]
    with pytest.raises(BudgetRefused, match="alice's share of the account 'reviews'"):
        spend(shared, "alice", "b", 0.7, account="wide")
    spend(shared, "bob", "c", 0.7)  # who has no share of the other


def test_the_last_share_is_in_force_and_never_above_the_cap(shared):
    shared.set_share("reviews", "alice", 0.1, 1e-6)
    with pytest.raises(BudgetRefused):
        spend(shared, "alice", "a", 0.2)
    for epsilon, delta in ((4.0, 1e-6), (1.0, 1e-5)):
        with pytest.raises(UsageError, match="more than the cap"):
            shared.set_share("reviews", "alice", epsilon, delta)
    for name in ("", "a\nb", "a" * 101):
        with pytest.raises(UsageError, match="analyst: give a printable"):
            shared.set_share("reviews", name, 0.1, 1e-6)


def test_an_analyst_learns_nothing_of_another_account_of_the_same_files(shared):
    shared.add("secret-project", CORPUS, 0.2, 1e-6, "sums")
    outlook = Ledger(shared.path, "alice").outlook(asked(CORPUS, 0.5, 1e-8, account="reviews"))
    assert outlook.refusal is None
    with pytest.raises(BudgetRefused, match="for all who may ask") as refused:
        spend(shared, "alice", "a", 0.5)
    assert not re.search(r"secret|another|\d", str(refused.value))
    spend(shared, "alice", "b", 0.1)
    assert shared.status("secret-project").runs == 1  # it pays all the same
    assert [account.analyst for account in outlook.accounts] == ["alice"]
    assert [run.accounts for run in Ledger(shared.path, "alice").runs()] == [("reviews",)]
    assert [run.accounts for run in shared.runs()] == [("reviews", "secret-project")]
    assert outlook.scarcest[:2] == ("reviews", pytest.approx(0.5))


# Tokens


def test_a_token_finds_its_analyst_until_it_is_withdrawn_or_replaced(ledger):
    first, bob = ledger.give_token("alice"), ledger.give_token("bob")
    assert ledger.analysts() == ["alice", "bob"]
    assert [ledger.analyst_with(each) for each in (first, bob)] == ["alice", "bob"]
    second = ledger.give_token("alice")
    assert [ledger.analyst_with(each) for each in (first, second)] == [None, "alice"]
    assert ledger.withdraw_token("alice") is True
    assert ledger.withdraw_token("alice") is False
    assert [ledger.analyst_with(each) for each in (first, second, bob)] == [None, None, "bob"]
    assert ledger.analysts() == ["bob"]
    assert [ledger.analyst_with(each) for each in ("", "bob", bob[:-1], bob + "x")] == [None] * 4
    with pytest.raises(UsageError, match="analyst: give a printable"):
        ledger.give_token("a\nb")


def test_a_token_is_random_and_only_its_hash_is_stored(ledger):
    tokens = {ledger.give_token(f"analyst {number}") for number in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) == 43  # 256 bits, six a character
    stored = ledger.path.read_bytes()
    for token in tokens:
        assert token.encode() not in stored
        assert hashlib.sha256(token.encode()).hexdigest().encode() in stored
    assert not any(token in repr(change) for token in tokens for change in ledger.history())


def test_a_change_and_its_note_are_one_transaction(ledger, monkeypatch):
    def fails(*_: object) -> None:
        raise sqlite3.OperationalError("no note")

    token = ledger.give_token("alice")
    monkeypatch.setattr(accounts, "record_change", fails)
    for change in (lambda: ledger.withdraw_token("alice"), lambda: ledger.give_token("alice")):
        with suppress(Exception):
            change()
        assert ledger.analyst_with(token) == "alice"


def test_how_long_an_analysts_look_takes_tells_nothing_of_others_runs(shared, monkeypatch):
    """What is read of the runs of an analyst's shares is their own alone."""
    shared.add("secret", CORPUS, 9.0, 1e-6, "sums")
    for number in range(5):
        spend(shared, "bob", f"run {number}", 0.1)
    spend(shared, "alice", "mine", 0.1)
    read = []
    parse = ledger_tables.events_from_json
    monkeypatch.setattr(ledger_tables, "events_from_json", lambda x: [read.append(x), parse(x)][1])
    book = Ledger(shared.path, "alice")
    book.accounts()
    assert len(read) == 1
    assert book.outlook(asked(CORPUS, 0.1, 1e-8, account="reviews")).refusal is None
    assert len(read) <= 3
