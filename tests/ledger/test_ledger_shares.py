"""An analyst's share of a corpus's cap: kept in the ledger, enforced where runs are reserved."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dphh import BudgetRefused, Ledger, UsageError
from dphh.ledger import Hold, Request, Source

SOURCE = Source("path", ("/nowhere/reviews.parquet",), "who", {"column": "what"})


@pytest.fixture
def shared(ledger: Ledger) -> Ledger:
    ledger.add("reviews", SOURCE, 3.0, 1e-6)
    ledger.set_share("reviews", "alice", 1.0, 1e-6)
    ledger.set_share("reviews", "bob", 2.5, 1e-6)
    return ledger


def spend(ledger: Ledger, analyst: str | None, run_id: str, epsilon: float, **how: Any) -> Hold:
    request = Request(SOURCE, "items", {}, (), epsilon, 1e-8, account="reviews")
    return Ledger(ledger.path, analyst).reserve(run_id, request, **how).hold


def test_a_share_is_spent_and_then_refuses(shared: Ledger) -> None:
    spend(shared, "alice", "a", 0.6)
    with pytest.raises(BudgetRefused, match="alice's share of reviews"):
        spend(shared, "alice", "b", 0.6)
    (alice,) = shared.shares("alice")
    assert alice.spent.epsilon == pytest.approx(0.6, rel=1e-3) and alice.runs == 1
    assert alice.left.epsilon == pytest.approx(0.4, rel=0.05)
    assert len(shared.runs()) == 1


def test_one_analyst_does_not_spend_anothers_share_but_the_cap_holds_for_all(
    shared: Ledger,
) -> None:
    spend(shared, "alice", "a", 1.0)
    spend(shared, "bob", "b", 1.9)
    assert [share.runs for share in shared.shares()] == [1, 1]
    (bob,) = shared.shares("bob")
    assert 0.1 <= bob.left.epsilon < 0.3  # of the corpus, though 0.6 of the share
    with pytest.raises(BudgetRefused, match="'reviews'"):
        spend(shared, "bob", "c", 0.5)


def test_an_analyst_without_a_share_gets_nothing(shared: Ledger) -> None:
    with pytest.raises(BudgetRefused, match="carol has no share"):
        spend(shared, "carol", "a", 0.1)
    with pytest.raises(BudgetRefused, match="must name the account"):
        Ledger(shared.path, "alice").reserve("b", Request(SOURCE, "items", {}, (), 0.1, 1e-8))
    assert shared.runs() == []


def test_the_owner_pays_from_no_share(shared: Ledger) -> None:
    spend(shared, None, "a", 2.0)
    assert [share.runs for share in shared.shares()] == [0, 0]


def test_a_cancelled_run_gives_the_share_back(shared: Ledger) -> None:
    shared.cancel(spend(shared, "alice", "a", 1.0))
    spend(shared, "alice", "b", 1.0)


def test_the_last_share_is_in_force_and_never_above_the_cap(shared: Ledger) -> None:
    shared.set_share("reviews", "alice", 0.1, 1e-6)
    with pytest.raises(BudgetRefused):
        spend(shared, "alice", "a", 0.2)
    with pytest.raises(UsageError, match="more than the cap"):
        shared.set_share("reviews", "alice", 4.0, 1e-6)
    with pytest.raises(UsageError, match="no account"):
        shared.set_share("elsewhere", "alice", 0.1, 1e-6)


def test_a_share_set_to_what_it_was_is_no_change(shared: Ledger) -> None:
    (share,) = shared.shares("alice")
    before = shared.history()
    shared.set_share(share.account, "alice", share.cap.epsilon, share.cap.delta)
    assert shared.history() == before
    shared.set_share(share.account, "alice", share.cap.epsilon / 2, share.cap.delta)
    assert len(shared.history()) == len(before) + 1


def test_many_threads_do_not_pass_a_share(shared: Ledger) -> None:
    def ask(number: int) -> None:
        with suppress(BudgetRefused):
            spend(shared, "alice", f"run {number}", 0.3)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (alice,) = shared.shares("alice")
    assert alice.runs == 3


def test_a_ledger_without_analysts_has_no_shares(tmp_path: Path, ledger: Ledger) -> None:
    assert ledger.shares() == []
    ledger.add("reviews", SOURCE, 3.0, 1e-6)
    assert ledger.shares() == []
    with pytest.raises(BudgetRefused, match="no share"):
        spend(ledger, "alice", "a", 0.1)
