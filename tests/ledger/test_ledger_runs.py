"""A run from reservation to release: its states, going on after a crash, what is stored."""

from __future__ import annotations

import math
import os
import re
import sqlite3
from typing import Any

import pytest

from dphh.errors import BudgetRefused, LedgerError, UsageError
from dphh.ledger import Ledger, Source
from dphh.ledger import records as ledger_records
from dphh.ledger import unfinished as ledger_unfinished
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, GaussianEvent
from tests.ledger.asked import ask, tampered


def test_a_run_goes_from_reserved_over_running_to_settled(book: Ledger, reviews: Source) -> None:
    states = []
    hold = ask(book, "a", reviews).hold
    states.append(book.runs()[0].state)
    book.begin(hold)
    states.append(book.runs()[0].state)
    book.settle(hold, {"verb": "items"}, b"PAR1")
    states.append(book.runs()[0].state)
    assert states == ["reserved", "running", "settled"]
    assert book.release("a") == ({"verb": "items"}, b"PAR1")


def test_a_run_that_never_began_can_be_cancelled_and_its_id_used_again(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 0.1, 0.0)
    hold = ask(book, "a", reviews).hold
    book.cancel(hold)
    ask(book, "a", reviews, word="another request")
    assert [entry.state for entry in book.runs()] == ["cancelled", "reserved"]
    with pytest.raises(BudgetRefused):
        ask(book, "b", reviews)


def test_a_run_that_began_stays_spent(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 0.1, 0.0)
    hold = ask(book, "a", reviews).hold
    book.begin(hold)
    with pytest.raises(LedgerError, match="its state is running"):
        book.cancel(hold)
    book.settle(hold, {}, b"")
    with pytest.raises(LedgerError, match="its state is settled"):
        book.cancel(hold)
    with pytest.raises(BudgetRefused):
        ask(book, "b", reviews)


def test_steps_out_of_order_are_refused(book: Ledger, reviews: Source) -> None:
    with pytest.raises(LedgerError, match="no run 'a'"):
        book.release("a")
    hold = ask(book, "a", reviews).hold
    with pytest.raises(LedgerError, match="Cannot settle"):
        book.settle(hold, {}, b"")
    with pytest.raises(LedgerError, match="no release"):
        book.release("a")
    book.begin(hold)
    with pytest.raises(LedgerError, match="Cannot begin"):
        book.begin(hold)


def test_the_file_itself_refuses_to_take_a_price_back(book: Ledger, reviews: Source) -> None:
    hold = ask(book, "a", reviews).hold
    book.begin(hold)
    for statement in (
        "DELETE FROM runs",
        "UPDATE runs SET state = 'cancelled'",
        "UPDATE runs SET state = 'reserved'",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            tampered(book, statement)
    tampered(book, "DELETE FROM holds")  # a run that nobody holds does not go back either
    with pytest.raises(sqlite3.IntegrityError, match="cannot go back"):
        tampered(book, "UPDATE runs SET state = 'cancelled'")


def test_the_same_request_again_returns_the_release_and_spends_nothing(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 0.1, 0.0)
    hold = ask(book, "a", reviews, max_items=3).hold
    book.begin(hold)
    book.settle(hold, {"levels": [1]}, b"rows")
    again = ask(book, "a", reviews, max_items=3)
    assert again.release is not None
    assert again.release.manifest == {"levels": [1]}
    assert again.release.parquet == b"rows"
    assert again.accounts == ("reviews",)
    assert again.capped
    assert len(book.runs()) == 1


def test_another_request_with_a_used_id_is_a_mistake(book: Ledger, reviews: Source) -> None:
    ask(book, "a", reviews, max_items=3)
    others: list[dict[str, Any]] = [
        {"max_items": 4},
        {"max_items": 3, "epsilon": 0.2},
        {"max_items": 3, "delta": 1e-9},
        {"max_items": 3, "events": [EpsilonDeltaEvent(0.05, 0), EpsilonDeltaEvent(0.05, 0)]},
    ]
    for other in others:
        with pytest.raises(UsageError, match="another request"):
            ask(book, "a", reviews, **other)
    with pytest.raises(UsageError, match="another request"):
        ask(book, "a", Source("path", reviews.where, "author", {"column": "title"}), max_items=3)


KEY = bytes(range(32))
SETTING = {"engine": "duckdb 2.0.0", "files": "77"}


@pytest.mark.parametrize("began", [False, True])
def test_the_same_request_for_an_unfinished_run_spends_nothing_and_may_begin(
    book: Ledger, reviews: Source, began: bool
) -> None:
    book.add("reviews", reviews, 0.1, 0.0)
    hold = ask(book, "a", reviews).hold
    if began:
        book.begin(hold, SETTING, KEY)
    again = ask(book, "a", reviews)
    assert again.release is None
    assert (again.accounts, again.capped) == (("reviews",), True)
    begun = book.begin(again.hold, SETTING, bytes(32))
    assert begun is not None
    assert (begun.key, begun.attempt) == ((KEY, 2) if began else (bytes(32), 1))
    assert len(book.runs()) == 1


def test_a_run_goes_on_as_it_began_or_not_at_all(book: Ledger, reviews: Source) -> None:
    hold = ask(book, "a", reviews).hold
    book.begin(hold, SETTING, KEY)
    changed = {**SETTING, "files": "78"}
    with pytest.raises(UsageError, match="its files changed since it began") as refused:
        book.begin(hold, changed, KEY)
    assert not re.search("7[78]", str(refused.value))  # an analyst may see it
    with pytest.raises(UsageError, match=r"its engine changed .*now unknown"):
        book.begin(hold, {"files": "77"}, KEY)
    assert book.begin(hold, SETTING, KEY) == ledger_unfinished.Beginning(KEY, 2)


def test_a_run_that_an_earlier_dphh_began_cannot_go_on(book: Ledger, reviews: Source) -> None:
    hold = ask(book, "a", reviews).hold
    book.begin(hold)
    with pytest.raises(LedgerError, match=r"cannot continue: an older dphh.*new run id"):
        book.begin(hold, SETTING, KEY)


def test_attempts_at_a_run_are_numbered_and_few(book: Ledger, reviews: Source) -> None:
    hold = ask(book, "a", reviews).hold
    begun = [book.begin(hold, SETTING, KEY) for _ in range(ledger_unfinished.MOST_ATTEMPTS)]
    assert [each.attempt for each in begun if each] == list(range(1, len(begun) + 1))
    with pytest.raises(LedgerError, match=f"was begun {len(begun)} times and never finished"):
        book.begin(hold, SETTING, KEY)


def test_a_level_stands_as_it_was_first_stored(
    book: Ledger, reviews: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_records, "CHUNK", 1000)
    rows = os.urandom(4_321)
    hold, other = (ask(book, run, reviews).hold for run in ("a", "b"))
    for each in (hold, other):
        book.begin(each, SETTING, KEY)
    assert book.level(hold, "level 1") is None
    assert book.keep_level(hold, "level 1", rows) == rows
    assert book.keep_level(hold, "level 1", b"drawn by another process") == rows
    assert book.level(hold, "level 1") == rows
    assert book.level(hold, "level 2") is None
    assert book.level(other, "level 1") is None


def test_the_file_itself_refuses_to_lose_a_level(book: Ledger, reviews: Source) -> None:
    hold = ask(book, "a", reviews).hold
    book.begin(hold, SETTING, KEY)
    book.keep_level(hold, "level 1", b"rows")
    for statement in ("DELETE FROM levels", "UPDATE levels SET data = x'00'"):
        with pytest.raises(sqlite3.IntegrityError):
            tampered(book, statement)


def test_a_damaged_level_is_not_used(book: Ledger, reviews: Source) -> None:
    hold = ask(book, "a", reviews).hold
    book.begin(hold, SETTING, KEY)
    book.keep_level(hold, "level 1", b"rows")
    tampered(book, "DROP TRIGGER levels_stand")
    tampered(book, "UPDATE levels SET data = x'00'")
    with pytest.raises(LedgerError, match=r"\(level 1\) is damaged"):
        book.level(hold, "level 1")


def test_levels_are_of_runs_that_have_begun_and_not_settled(book: Ledger, reviews: Source) -> None:
    hold = ask(book, "a", reviews).hold
    for early in (lambda: book.level(hold, "1"), lambda: book.keep_level(hold, "1", b"rows")):
        with pytest.raises(LedgerError, match="its state is reserved"):
            early()
    book.begin(hold, SETTING, KEY)
    book.settle(hold, {}, b"rows")
    for late in (lambda: book.level(hold, "1"), lambda: book.keep_level(hold, "1", b"rows")):
        with pytest.raises(LedgerError, match="its state is settled"):
            late()


def test_a_settled_run_leaves_neither_key_nor_levels_in_the_file(
    book: Ledger, reviews: Source
) -> None:
    level = os.urandom(10_000)
    hold = ask(book, "a", reviews).hold
    book.begin(hold, SETTING, KEY)
    book.keep_level(hold, "level 1", level)
    assert KEY in book.path.read_bytes()
    book.settle(hold, {}, b"rows")
    kept = book.path.read_bytes()
    assert KEY not in kept
    assert level[:100] not in kept


def test_a_release_larger_than_a_chunk_comes_back_whole(
    book: Ledger, reviews: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_records, "CHUNK", 1000)
    rows = os.urandom(12_345)
    hold = ask(book, "a", reviews).hold
    book.begin(hold)
    book.settle(hold, {}, rows)
    assert book.release("a").parquet == rows
    tampered(book, "DELETE FROM chunks WHERE number = 5")
    with pytest.raises(LedgerError, match="damaged"):
        book.release("a")


def test_what_is_not_json_is_refused_before_anything_is_spent(
    book: Ledger, reviews: Source
) -> None:
    with pytest.raises(UsageError, match="JSON"):
        ask(book, "a", reviews, noise=math.nan)
    assert book.runs() == []


def test_a_request_is_the_same_in_other_words(book: Ledger, reviews: Source) -> None:
    """What an event says of itself is for people: no run is another, or drew less, by that."""
    said, others = [GaussianEvent(60.0, "one level"), DeltaEvent(1e-10)], [
        GaussianEvent(60.0, "the only level"), DeltaEvent(1e-10, "its threshold")
    ]  # fmt: skip
    hold = ask(book, "a", reviews, 0.1, 1e-9, events=said).hold
    again = ask(book, "a", reviews, 0.1, 1e-9, events=others)
    assert (again.sequence, len(book.runs())) == (1, 1)
    book.begin(hold)
    book.settle(hold, {}, b"rows", others)
    (run,) = book.runs()
    assert run.drawn is None
    assert [event.note for event in run.events] == ["one level", ""]
    with pytest.raises(UsageError, match="another request"):
        ask(book, "a", reviews, 0.1, 1e-9, events=[GaussianEvent(61.0, "one level")])
