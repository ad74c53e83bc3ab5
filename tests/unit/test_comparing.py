"""`dphh.compare` prices plans side by side; what it says of a cap is what the ledger does."""

from __future__ import annotations

import pytest

import dphh
from dphh import BudgetRefused, UsageError
from dphh.ledger import Request, source_of

ROWS = [(person, "hello there") for person in range(50)]


@pytest.fixture
def corpus(written, ledger):
    corpus = written(ROWS)
    ledger.add("survey", source_of(corpus), 1.0, 1e-6)
    return corpus


def test_options_given_as_lists_are_crossed(corpus, ledger):
    found = dphh.compare(
        dphh.items, corpus, ledger=ledger, delta=1e-8, epsilon=[0.1, 0.5], max_items=[5, 50]
    )
    assert [tuple(dict(each.options).values()) for each in found] == [
        (0.1, 5), (0.1, 50), (0.5, 5), (0.5, 50),
    ]  # fmt: skip
    for each in found:
        alone = dphh.items(corpus, delta=1e-8, **dict(each.options))
        assert each.plan == alone
        assert each.users == alone.finds.users
    assert found.to_polars()["users"].to_list() == [each.users for each in found]
    assert ledger.runs() == []


@pytest.mark.parametrize("verb", ["items", "trie"])
def test_as_many_runs_are_left_as_the_ledger_grants(corpus, ledger, verb):
    more = {"max_length": 2} if verb == "trie" else {}
    (each,) = dphh.compare(verb, corpus, ledger=ledger, delta=1e-7, epsilon=0.3, **more)
    granted = 0
    source, privacy = source_of(each.plan.corpus), each.plan.privacy
    with pytest.raises(BudgetRefused):
        while True:
            asked = (verb, {}, each.plan.events, privacy.booked_epsilon, privacy.delta)
            ledger.reserve(f"run {granted}", Request(source, *asked))
            granted += 1
    assert each.ahead.runs_left == granted > 1
    assert 1 / (granted + 1) < each.ahead.share <= 1 / granted
    (after,) = dphh.compare(verb, corpus, ledger=ledger, delta=1e-7, epsilon=0.3, **more)
    assert after.ahead.runs_left == 0
    assert "Refused" in after.refused


def test_a_run_that_fits_alone_takes_all_and_one_that_never_fits_takes_more(corpus, ledger):
    whole, never = dphh.compare(
        "items", corpus, ledger=ledger, delta=1e-6, epsilon=[1.0, 2.0]
    )  # fmt: skip
    assert (whole.ahead.share, whole.ahead.runs_left, whole.refused) == (1.0, 1, None)
    assert never.ahead.share > 1
    assert never.ahead.runs_left == 0


def test_what_cannot_be_is_said_beside_what_can(corpus, ledger):
    found = dphh.compare("items", corpus, ledger=ledger, delta=1e-8, epsilon=[0.5, -1])
    text = repr(found)
    assert "cannot be" in text
    assert "epsilon: found -1" in text
    assert "cannot be" in found._repr_html_()
    with pytest.raises(UsageError, match="epsilon: found -1"):
        dphh.compare("items", corpus, ledger=ledger, delta=1e-8, epsilon=-1)


def test_a_list_that_is_one_value_stays_one(corpus, ledger):
    found = dphh.compare("counts", corpus, ledger=ledger, of=["a", "b"], epsilon=[1, 2], delta=1e-8)
    assert found.varied == ("epsilon",)


def test_refused_plans_are_hatched_and_numbers_written(corpus, ledger):
    page = dphh.compare(
        "items", corpus, ledger=ledger, delta=1e-8, epsilon=[0.5, 5], max_items=[5, 50]
    )._repr_html_()
    assert page.count("repeating-linear-gradient") == 2
    assert page.count("refused; ") == 2 and page.count("% of the cap, 0 left") == 2
    assert "epsilon \\ max_items" in page


def test_without_a_corpus_prices_alone_are_compared():
    found = dphh.compare(dphh.items, delta=1e-8, epsilon=[0.5, 1])
    assert [each.ahead for each in found] == [None, None]
    with pytest.raises(UsageError, match="verb: found 'item'; give one of items"):
        dphh.compare("item", delta=1e-8)
    with pytest.raises(UsageError, match="epsilon: found an empty list"):
        dphh.compare("items", delta=1e-8, epsilon=[])
