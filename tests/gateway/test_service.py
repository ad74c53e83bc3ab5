"""The service, without quack and without processes: whose reservation it lets go of."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dphh.errors import BudgetRefused, ElsewhereRefused, LedgerError, NotHeldError, UsageError
from dphh.gateway import service
from dphh.gateway.service import Service, Terms
from dphh.ledger import Hold, Ledger, Request, Source
from dphh.privacy.events import EpsilonDeltaEvent

SOURCE = Source("path", ("/nowhere/reviews.parquet",), "who", {"column": "what"})
Work = Callable[[Ledger, str, float], None]


class _Worker:
    """In a worker's place: does to the ledger what a test says, at the moment that it says."""

    def __init__(self, *_: Any) -> None:
        self.pipe = self

    def work(self, ledger: Ledger, run_id: str, epsilon: float) -> None:
        reserve(ledger, run_id, epsilon)

    def send(self, order: dict[str, Any]) -> None:
        run_id, token = order["hold"]
        ledger = Ledger(order["ledger"], order["analyst"], token)
        try:
            self.work(ledger, run_id, order["arguments"]["epsilon"])
            self.said: dict[str, Any] = {"failed": "its process ended"}
        except (UsageError, LedgerError, BudgetRefused) as problem:
            elsewhere = isinstance(problem, ElsewhereRefused)
            self.said = {"refused": str(problem), **({"elsewhere": True} if elsewhere else {})}

    def receive(self) -> tuple[dict[str, Any], pa.Table | None]:
        return self.said, None

    def alive(self) -> bool:
        return True

    def end(self, patience: float = 0.0) -> None: ...

    def close(self) -> None: ...


def reserve(ledger: Ledger, run_id: str, epsilon: float) -> Hold:
    event = EpsilonDeltaEvent(epsilon, 1e-8)
    asked = "items", {}, [event], epsilon, 1e-8, "reviews"
    return ledger.reserve(run_id, Request(ledger.status("reviews").source, *asked)).hold


@pytest.fixture
def shared(ledger: Ledger) -> Ledger:
    ledger.add("reviews", SOURCE, 4.0, 1e-5)
    ledger.set_share("reviews", "alice", 4.0, 1e-5)
    return ledger


@pytest.fixture
def working(monkeypatch: pytest.MonkeyPatch) -> type[_Worker]:
    monkeypatch.setattr(service, "Child", _Worker)
    return _Worker


def ask(ledger: Ledger, epsilon: float, run_id: str = "t0") -> str:
    asked = {"corpus": "reviews", "epsilon": epsilon, "run_id": run_id}
    with pytest.raises((UsageError, LedgerError)) as refused:
        _service(ledger.path).answer("alice", "items", asked)
    return str(refused.value)


@cache
def _service(path: Path) -> Service:
    return Service(Ledger(path), Terms())


def test_a_refused_request_lets_go_of_nothing_that_another_reserved(
    shared: Ledger, working: type[_Worker]
) -> None:
    dear = reserve(Ledger(shared.path, "alice"), "alice/t0", 2.0)  # its worker stands still here
    for _ in range(2):
        assert "another request" in ask(shared, 0.5)
        assert [(run.epsilon, run.state) for run in shared.runs()] == [(2.0, "reserved")]
    shared.begin(dear)
    shared.settle(dear, {}, b"drawn at 2.0")
    assert [(run.epsilon, run.state) for run in shared.runs()] == [(2.0, "settled")]


def test_a_worker_that_died_having_only_reserved_costs_nothing(
    shared: Ledger, working: type[_Worker]
) -> None:
    ask(shared, 0.5)
    assert [run.state for run in shared.runs()] == ["cancelled"]


def test_a_worker_that_died_under_another_at_the_same_run_leaves_it_the_run(
    shared: Ledger, working: type[_Worker]
) -> None:
    other = reserve(Ledger(shared.path, "alice"), "alice/t0", 0.5)
    ask(shared, 0.5)
    assert [run.state for run in shared.runs()] == ["reserved"]
    shared.begin(other)


def test_a_worker_cannot_go_on_with_what_was_given_back_and_reserved_again(
    shared: Ledger, working: type[_Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands still after it reserved, longer than its service waits for it."""
    stood: list[tuple[Ledger, Hold]] = []

    def stands_still(self: _Worker, ledger: Ledger, run_id: str, epsilon: float) -> None:
        stood.append((ledger, reserve(ledger, run_id, epsilon)))

    monkeypatch.setattr(working, "work", stands_still)
    ask(shared, 2.0)
    ask(shared, 0.5)
    cheap = reserve(Ledger(shared.path, "alice"), "alice/t0", 0.5)
    for ledger, hold in stood:
        with pytest.raises(NotHeldError):
            ledger.begin(hold)
    shared.begin(cheap)


def test_what_another_corpus_has_left_is_not_found_by_asking_ever_less(
    shared: Ledger, working: type[_Worker]
) -> None:
    """Each refusal is free, and the first that is granted would tell: so few are tried."""
    shared.add("layoffs", SOURCE, 0.6, 1e-6)
    for step in range(5):
        said = ask(shared, 0.9 - step / 100, f"t{step}")
        assert "another corpus of the ledger" in said and "layoffs" not in said
    said = ask(shared, 0.5, "t5")
    assert "has refused 5 of your requests today" in said
    assert shared.runs() == []


def test_the_share_is_asked_before_what_an_analyst_is_not_to_know_of(
    shared: Ledger, working: type[_Worker]
) -> None:
    shared.add("layoffs", SOURCE, 0.6, 1e-6)
    shared.set_share("reviews", "alice", 0.7, 1e-5)
    assert "alice's share of reviews" in ask(shared, 0.9)
    shared.set_share("reviews", "alice", 4.0, 1e-5)
    shared.set_cap("reviews", 0.7, 1e-5)
    assert "'reviews'" in ask(shared, 0.9)


def test_an_older_copy_of_the_ledger_is_not_spent_from(
    shared: Ledger, working: type[_Worker]
) -> None:
    older = shared.path.read_bytes()
    hold = reserve(Ledger(shared.path, "alice"), "alice/before", 0.5)
    ask(shared, 0.5)
    shared.path.write_bytes(older)
    assert "an older copy has replaced it" in ask(shared, 0.5, "t1")
    with pytest.raises(NotHeldError):
        shared.begin(hold)
    assert shared.runs() == []


def test_a_link_to_an_older_copy_is_an_older_copy(
    shared: Ledger, working: type[_Worker], tmp_path: Path
) -> None:
    older = tmp_path / "yesterday.sqlite"
    older.write_bytes(shared.path.read_bytes())
    ask(shared, 0.5)
    shared.path.unlink()
    shared.path.symlink_to(older)
    assert "an older copy has replaced it" in ask(shared, 0.5, "t1")
    assert shared.runs() == []


@pytest.mark.parametrize("years", [10, -10])
def test_a_moved_clock_gives_nobody_a_new_share(
    shared: Ledger, working: type[_Worker], monkeypatch: pytest.MonkeyPatch, years: int
) -> None:
    analyst = Ledger(shared.path, "alice")
    hold = reserve(analyst, "alice/before", 3.8)
    analyst.begin(hold)
    analyst.settle(hold, {}, b"drawn")
    moved = time.time() + years * 365 * 86400
    monkeypatch.setattr(time, "time", lambda: moved)
    assert "alice's share of reviews" in ask(shared, 0.5)
    assert [(run.epsilon, run.state) for run in shared.runs()] == [(3.8, "settled")]


def test_a_name_cannot_stand_for_a_request_that_did_not_give_it(
    shared: Ledger, working: type[_Worker]
) -> None:
    own = service._run_id("alice", "items", {"corpus": "reviews", "epsilon": 0.5, "run_id": None})
    given = own.removeprefix("alice/")
    assert "reserved for the gateway" in ask(shared, 2.0, given)
    assert shared.runs() == []
    assert "process ended" not in ask(shared, 0.5, given)
    assert [run.run_id for run in shared.runs()] == [own]


def test_the_owner_is_told_how_to_add_a_file(shared: Ledger, working: type[_Worker]) -> None:
    asked = {"corpus": "new.parquet", "epsilon": 1.0, "run_id": "t0"}
    for name, told in (("owner", True), ("alice", False)):
        with pytest.raises(UsageError, match=r"found no corpus 'new\.parquet'") as refused:
            _service(shared.path).answer(name, "items", asked)
        assert ("dphh ledger add NAME FILE --user" in str(refused.value)) == told


def test_the_same_items_in_another_order_are_the_same_request() -> None:
    asked = {"corpus": "reviews", "epsilon": 0.5}
    same = ["new york", "good morning"], ["good morning", "new york"]
    assert len({service._run_id("alice", "counts", {**asked, "of": each}) for each in same}) == 1


def test_the_same_groups_in_another_order_are_the_same_request() -> None:
    asked = {"corpus": "reviews", "by": "country", "run_id": None}
    same = (["DE", "US"], ["US", "DE"], "US, DE,US")
    (one,) = {service._run_id("alice", "counts", {**asked, "groups": each}) for each in same}
    for other in (["DE"], [["DE"], "US"], None, 5):
        assert service._run_id("alice", "counts", {**asked, "groups": other}) != one


def test_a_run_is_an_analysts_by_who_asked_for_it_and_not_by_its_name(
    shared: Ledger, working: type[_Worker]
) -> None:
    shared.add("all", Source("path", ("/nowhere/*.parquet",), "who", {"column": "what"}), 9, 1e-5)
    for ledger, run_id in [(shared, "alice/owners"), (Ledger(shared.path, "alice"), "alice/own")]:
        reserve(ledger, run_id, 0.1)
    assert all(set(run.accounts) == {"reviews", "all"} for run in shared.runs())
    hers = _service(shared.path)._visible_runs("alice", {"reviews"})
    assert [(run.run_id, run.analyst) for run in hers] == [("alice/own", "alice")]
