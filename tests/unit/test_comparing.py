"""`dphh.compare` prices plans side by side; what it says of a cap is what the ledger does."""

from __future__ import annotations

import pytest

import dphh
from dphh import BudgetRefused, UsageError
from dphh.ledger import Request

ROWS = [(person, "hello there") for person in range(50)]


@pytest.fixture
def corpus(written, ledger):
    corpus = written(ROWS)
    ledger.add("survey", corpus, 1.0, 1e-6)
    return corpus


def test_options_given_as_lists_are_crossed(corpus, ledger):
    found = dphh.compare(
        dphh.items, corpus, ledger=ledger, delta=1e-8, epsilon=[0.1, 0.5], max_items=[5, 50]
    )
    asked = found.select("epsilon", "max_items").rows()
    assert asked == [(0.1, 5), (0.1, 50), (0.5, 5), (0.5, 50)]
    alone = [dphh.items(corpus, delta=1e-8, epsilon=e, max_items=m).finds.users for e, m in asked]
    assert found["users"].to_list() == alone
    assert ledger.runs() == []


def test_a_run_that_fits_alone_takes_all_and_one_that_never_fits_takes_more(corpus, ledger):
    whole, never = dphh.compare(
        "items", corpus, ledger=ledger, delta=1e-6, epsilon=[1.0, 2.0]
    ).iter_rows(named=True)
    assert (whole["share"], whole["runs_left"], whole["refused"]) == (1.0, 1, None)
    assert never["share"] > 1
    assert never["runs_left"] == 0


def test_what_cannot_be_is_said_beside_what_can(corpus, ledger):
    found = dphh.compare("items", corpus, ledger=ledger, delta=1e-8, epsilon=[0.5, -1])
    can, cannot = found.iter_rows(named=True)
    assert can["users"] and not can["refused"]
    assert cannot["users"] is None and "epsilon: found -1" in cannot["refused"]
    with pytest.raises(UsageError, match="epsilon: found -1"):
        dphh.compare("items", corpus, ledger=ledger, delta=1e-8, epsilon=-1)


def test_without_a_corpus_prices_alone_are_compared():
    found = dphh.compare(dphh.items, delta=1e-8, epsilon=[0.5, 1])
    assert found["share"].to_list() == found["refused"].to_list() == [None, None]


@pytest.mark.parametrize("verb", ["items", "trie"])
def test_as_many_runs_are_left_as_the_ledger_grants(corpus, ledger, verb):
    more = {"max_length": 2} if verb == "trie" else {}
    if verb == "trie":
        ledger.set_cap("survey", 1.0, 1e-6, kept="sums")

    def row():
        asked = {"delta": 1e-7, "epsilon": 0.3, **more}
        return dphh.compare(verb, corpus, ledger=ledger, **asked).row(0, named=True)

    before, granted = row(), 0
    plan = getattr(dphh, verb)(corpus, delta=1e-7, epsilon=0.3, **more)
    with pytest.raises(BudgetRefused):
        while True:
            ledger.book(Request.of(plan.price, plan.corpus), {}, again=True)
            granted += 1
    assert before["runs_left"] == granted > 1
    assert 1 / (granted + 1) < before["share"] <= 1 / granted
    after = row()
    assert after["runs_left"] == 0
    assert "Refused" in after["refused"]
