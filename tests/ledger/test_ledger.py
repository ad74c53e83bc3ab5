"""The ledger in one process: caps, states, what is stored, and what goes wrong with its file."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from dphh.errors import BudgetRefused, DphhError, LedgerError, UsageError
from dphh.ledger import Ledger, Request, Reservation, Source
from dphh.ledger import records as ledger_records
from dphh.ledger import schema as ledger_schema
from dphh.ledger import unfinished as ledger_unfinished
from dphh.ledger.budget import Budget, Cap
from dphh.ledger.exact import allowed
from dphh.ledger.schema import SCHEMA_VERSION, default_path, writing
from dphh.privacy.events import ApproximateEvent, Event, GaussianEvent, SetUnionEvent
from dphh.privacy.gaussian import gaussian_epsilon, gaussian_sigma
from dphh.privacy.set_union import GAUSSIAN_SHARE, NEW_ITEMS_SHARE


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def reviews(tmp_path: Path) -> Source:
    (tmp_path / "reviews.parquet").touch()
    return Source("path", (str(tmp_path / "reviews.parquet"),), "author", {"column": "body"})


def ask(
    book: Ledger,
    run_id: str,
    source: Source,
    epsilon: float = 0.1,
    delta: float = 0.0,
    *,
    events: Sequence[Event] | None = None,
    account: str | None = None,
    **parameters: Any,
) -> Reservation:
    done = [ApproximateEvent(epsilon, delta)] if events is None else events
    request = Request(source, "items", parameters, done, epsilon, delta, account=account)
    return book.reserve(run_id, request)


def items_price(epsilon: float, delta: float) -> list[Event]:
    sigma = gaussian_sigma(epsilon, GAUSSIAN_SHARE * delta)
    return [SetUnionEvent(sigma, NEW_ITEMS_SHARE * delta)]


def tampered(book: Ledger, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(book.path)) as con, con:
        return con.execute(statement).fetchall()


# Caps


def test_decimal_prices_add_up_to_their_decimal_sum(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 0.3, 0.0)
    for run in "abc":
        ask(book, run, reviews, 0.1)
    with pytest.raises(BudgetRefused):
        ask(book, "d", reviews, 1e-12)


@pytest.mark.parametrize(("asked", "granted"), [(0.4999999, True), (0.5, True), (0.5000001, False)])
def test_a_near_miss_in_epsilon(book: Ledger, reviews: Source, asked: float, granted: bool) -> None:
    book.add("reviews", reviews, 1.0, 0.0)
    ask(book, "first", reviews, 0.5)
    if granted:
        ask(book, "second", reviews, asked)
        return
    with pytest.raises(BudgetRefused):
        ask(book, "second", reviews, asked)


@pytest.mark.parametrize(("asked", "granted"), [(5e-31, True), (5.000001e-31, False)])
def test_a_near_miss_in_a_tiny_delta(
    book: Ledger, reviews: Source, asked: float, granted: bool
) -> None:
    book.add("reviews", reviews, 1.0, 1e-30)
    ask(book, "first", reviews, 0.5, 5e-31)
    if granted:
        ask(book, "second", reviews, 0.5, asked)
        return
    with pytest.raises(BudgetRefused):
        ask(book, "second", reviews, 0.5, asked)


@pytest.mark.parametrize(("times", "granted"), [(1.0001, True), (0.9999, False)])
def test_gaussian_runs_are_composed_tightly(
    book: Ledger, reviews: Source, times: float, granted: bool
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    sigma = math.sqrt(10) * allowed(1.0, 1e-6).sigma
    claim = gaussian_epsilon(1e-7, sigma * 0.9)
    assert 10 * claim > 1.5  # the sums alone would refuse
    for run in range(9):
        ask(book, f"run {run}", reviews, claim, 1e-7, events=[GaussianEvent(sigma)])
    last = [GaussianEvent(sigma * (1 + 10 * (times - 1)))]
    if granted:
        ask(book, "last", reviews, claim, 1e-7, events=last)
        return
    with pytest.raises(BudgetRefused):
        ask(book, "last", reviews, claim, 1e-7, events=last)


def test_a_refusal_says_what_was_asked_spent_and_left_and_records_nothing(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    ask(book, "a", reviews, 0.75, 1e-7)
    with pytest.raises(BudgetRefused) as refused:
        ask(book, "b", reviews, 0.5, 1e-7)
    said = str(refused.value)
    assert "asks for epsilon 0.5, delta 1e-07" in said
    assert "'reviews'" in said
    assert "Spent: epsilon 0.7" in said
    assert "in 1 run." in said
    assert "Left: about epsilon 0.2" in said
    assert refused.value.exit_code == 3
    assert [entry.run_id for entry in book.runs()] == ["a"]


@pytest.mark.parametrize("before", [0, 1, 6])
def test_what_is_left_is_granted_and_no_more(book: Ledger, reviews: Source, before: int) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    for run in range(before):
        ask(book, f"run {run}", reviews, 0.2, 1e-7, events=items_price(0.2, 1e-7))
    left = book.status("reviews").left
    assert left is not None
    assert left.epsilon > 0
    more = left.epsilon * 1.001
    with pytest.raises(BudgetRefused):
        ask(book, "over", reviews, more, left.delta, events=items_price(more, left.delta))
    less = left.epsilon * (1 - 1e-5)
    ask(book, "under", reviews, less, left.delta, events=items_price(less, left.delta))


def test_nothing_spent_leaves_the_whole_cap(book: Ledger, reviews: Source) -> None:
    account = book.add("reviews", reviews, 1.0, 1e-6)
    assert account.left == Budget(1.0, 1e-6)
    assert account.cap == Cap(1.0, 1e-6, "open")
    assert account.spent.epsilon == 0
    assert account.runs == 0


def test_spent_is_never_more_than_the_sum(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    for run in range(3):
        ask(book, f"run {run}", reviews, 0.1, 1e-7)
    assert book.status("reviews").spent.epsilon <= 0.3


def test_a_cap_below_what_was_spent_refuses_all_and_can_be_raised(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 0.0)
    ask(book, "a", reviews, 0.5)
    account = book.set_cap("reviews", 0.2, 0.0)
    assert account.left is not None
    assert account.left.epsilon == 0
    with pytest.raises(BudgetRefused, match="nothing"):
        ask(book, "b", reviews, 1e-9)
    book.set_cap("reviews", 1.0, 0.0)
    ask(book, "c", reviews, 0.5)


def test_runs_without_events_cost_their_claim(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-5)
    ask(book, "a", reviews, 0.9, 1e-6, events=[])
    with pytest.raises(BudgetRefused):
        ask(book, "b", reviews, 0.9, 1e-6, events=[])


def test_runs_without_events_cost_their_claim_beside_noise_too(
    book: Ledger, reviews: Source
) -> None:
    """The first run decides how the cap is kept: here by what noise tells."""
    book.add("reviews", reviews, 1.0, 1e-5)
    ask(book, "noise", reviews, 0.5, 1e-6, events=items_price(0.5, 1e-6))
    with pytest.raises(BudgetRefused):
        for run in range(5):
            ask(book, f"none {run}", reviews, 0.9, 1e-6, events=[])


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(-0.1, 0.0), (math.nan, 0.0), (math.inf, 0.0), (0.1, -1e-9), (0.1, math.nan), (0.1, 1.0)],
)
def test_no_price_can_give_something_back(
    book: Ledger, reviews: Source, epsilon: float, delta: float
) -> None:
    with pytest.raises(UsageError):
        ask(book, "a", reviews, epsilon, delta, events=[])
    with pytest.raises(UsageError):
        book.add("reviews", reviews, epsilon, delta)


def test_a_claim_far_below_its_events_is_a_mistake(book: Ledger, reviews: Source) -> None:
    with pytest.raises(UsageError, match="claims epsilon 0"):
        ask(book, "a", reviews, 0.0, 1e-6, events=[GaussianEvent(0.5)])


def test_an_unnamed_corpus_is_recorded_without_a_cap(book: Ledger, reviews: Source) -> None:
    reservation = ask(book, "a", reviews, 50.0)
    assert not reservation.capped
    (account,) = book.accounts()
    assert (account.name, account.cap, account.left) == (None, None, None)
    assert account.label == reviews.label
    assert account.spent.epsilon == 50.0
    assert book.status(reviews.label) == account
    assert len(book.runs(reviews.label)) == 1


def test_naming_a_corpus_charges_it_with_its_earlier_runs(
    book: Ledger, reviews: Source, tmp_path: Path
) -> None:
    ask(book, "exactly here", reviews, 0.25)
    ask(book, "the whole folder", Source("path", (str(tmp_path),), "author"), 0.25)
    ask(book, "elsewhere", Source("path", ("/nowhere/at/all.parquet",), "author"), 0.25)
    hold = ask(book, "cancelled", reviews, 0.25).hold
    book.cancel(hold)
    account = book.add("reviews", reviews, 1.0, 0.0)
    assert account.runs == 2
    assert account.spent.epsilon == 0.5
    assert [a.name for a in book.accounts()].count("reviews") == 1
    assert reviews.label not in {a.label for a in book.accounts()}


@pytest.mark.parametrize("name", ["", "a/b", "a*", "x.parquet", "~me", "..", "two words", "a\nb"])
def test_a_name_cannot_be_taken_for_a_path(book: Ledger, reviews: Source, name: str) -> None:
    with pytest.raises(UsageError, match="name"):
        book.add(name, reviews, 1.0, 0.0)


def test_a_name_is_given_once(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 0.0)
    with pytest.raises(UsageError, match="exists"):
        book.add("reviews", reviews, 9.0, 0.0)
    with pytest.raises(UsageError, match="no account 'other'"):
        book.set_cap("other", 1.0, 0.0)
    with pytest.raises(UsageError, match="no account 'other'"):
        ask(book, "a", reviews, account="other")


# States


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
        {"max_items": 3, "events": [ApproximateEvent(0.05, 0), ApproximateEvent(0.05, 0)]},
    ]
    for other in others:
        with pytest.raises(UsageError, match="another request"):
            ask(book, "a", reviews, **other)
    with pytest.raises(UsageError, match="another request"):
        ask(book, "a", Source("path", reviews.where, "author", {"column": "title"}), max_items=3)


# Runs that go on


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
    with pytest.raises(LedgerError, match=r"cannot go on: an earlier dphh.*new run id"):
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


BACK_TO_SCHEMA_5 = "DROP TABLE asked; ALTER TABLE unfinished DROP failed; PRAGMA user_version = 5"


def test_runs_of_schema_5_stay_what_they_were_and_are_nobodys_answer(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    begun = ask(book, "a", reviews, 0.1, 1e-8).hold
    book.begin(begun, {"engine": "one"}, b"key")
    with closing(sqlite3.connect(book.path)) as con, con:
        con.executescript(BACK_TO_SCHEMA_5)
    before = book.status("reviews"), book.runs()  # readers change nothing
    (request,) = before[1]
    same = Request(reviews, request.verb, request.parameters, request.events, 0.1, 1e-8)
    assert book.asked_before(same, files="") is None
    assert book.reserve("b", same, files="beef", once=True).run_id == "b"
    assert (book.status("reviews").cap, book.runs()[0]) == (before[0].cap, before[1][0])
    assert book.asked_before(same, files="beef").run_id == "b"
    assert book.begin(begun, {"engine": "one"}, b"other").key == b"key"
    book.failed(begun)
    assert [run.state for run in book.runs()] == ["failed", "reserved"]


def written_by_schema_3(book: Ledger, source: Source) -> None:
    """An account of cap (1, 1e-6) with one run, which began and ended to the microsecond."""
    book.add("reviews", source, 1.0, 1e-6)
    hold = ask(book, "a", source, 0.2, 1e-7, events=items_price(0.2, 1e-7)).hold
    book.begin(hold)
    book.settle(hold, {}, b"rows")
    with closing(sqlite3.connect(book.path)) as con, con:
        con.executescript(BACK_TO_SCHEMA_5)
        con.executescript(
            "DROP TRIGGER charges_stand; ALTER TABLE charges DROP cap; DROP TABLE drawn;"
            "DROP TRIGGER caps_are_kept_as_settled; ALTER TABLE caps DROP kept"
        )
        con.execute("UPDATE runs SET recorded = 1000000.25, changed = 1000007.5")
        con.execute("PRAGMA user_version = 3")


def test_an_earlier_ledgers_caps_keep_what_they_promised_until_they_are_set_anew(
    book: Ledger, reviews: Source
) -> None:
    written_by_schema_3(book, reviews)
    before = book.status("reviews")
    assert before.cap == Cap(1.0, 1e-6, "composed")
    # Granted by composition alone: the sums and a cap that is kept exactly would refuse it.
    ask(book, "b", reviews, 0.99, 8.9e-7, events=items_price(0.99, 4.0e-7))
    assert book.status("reviews").cap == before.cap
    assert book.set_cap("reviews", 1.0, 1e-6).cap == Cap(1.0, 1e-6, "divergence")
    assert book.set_cap("reviews", 2.0, 1e-6).cap == Cap(2.0, 1e-6, "divergence")


def test_a_ledger_holds_days_and_no_hours(book: Ledger, reviews: Source) -> None:
    written_by_schema_3(book, reviews)
    (entry,) = book.runs()
    assert entry.when == entry.changed
    ask(book, "b", reviews)
    for table, column in (("runs", "recorded"), ("runs", "changed"), ("clock", "latest")):
        assert {t % 86_400 for (t,) in tampered(book, f"SELECT {column} FROM {table}")} == {0.0}


def test_how_a_cap_is_kept_is_settled_once(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    book.cancel(ask(book, "a", reviews, 0.1, 1e-8).hold)
    assert book.status("reviews").cap == Cap(1.0, 1e-6, "sums")  # by what was asked for first
    ask(book, "b", reviews, 0.1, 1e-8, events=items_price(0.1, 1e-8))
    assert book.status("reviews").cap == Cap(1.0, 1e-6, "sums")
    with pytest.raises(sqlite3.IntegrityError):
        tampered(book, "UPDATE caps SET kept = 'divergence'")
    assert book.set_cap("reviews", 2.0, 1e-6).cap == Cap(2.0, 1e-6, "sums")


def test_a_ledger_of_the_first_schema_is_brought_to_this_one(book: Ledger, reviews: Source) -> None:
    with closing(sqlite3.connect(book.path)) as con:
        con.executescript(ledger_schema.TABLES)
        con.execute(f"PRAGMA application_id = {ledger_schema.APPLICATION_ID}")
        con.execute("PRAGMA user_version = 1")
    assert book.runs() == []  # readers change nothing
    assert tampered(book, "PRAGMA user_version") == [(1,)]
    hold = ask(book, "a", reviews).hold
    assert tampered(book, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    book.begin(hold, SETTING, KEY)
    assert book.keep_level(hold, "level 1", b"rows") == b"rows"


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


# What it shows


def test_entries_say_what_was_asked_in_order(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-5)
    events = items_price(0.2, 1e-6)
    ask(book, "a", reviews, 0.2, 1e-6, events=events, max_items=3)
    ask(book, "b", reviews, 0.1, account="reviews")
    first, second = book.runs("reviews")
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.events == tuple(events)
    assert first.parameters == {"max_items": 3}
    assert first.source == reviews
    assert first.accounts == ("reviews",)
    assert (first.verb, first.epsilon, first.delta) == ("items", 0.2, 1e-6)


def test_time_never_goes_back(
    book: Ledger, reviews: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 86_400.0
    for run, clock in (("a", 2.5 * day), ("b", 1.5 * day), ("c", 3.9 * day)):
        monkeypatch.setattr(ledger_records, "time", SimpleNamespace(time=lambda now=clock: now))
        ask(book, run, reviews)
    assert [entry.run_id for entry in book.runs()] == ["a", "b", "c"]
    assert [entry.when.timestamp() for entry in book.runs()] == [2 * day, 2 * day, 3 * day]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_export_writes_every_run(
    book: Ledger, reviews: Source, tmp_path: Path, suffix: str
) -> None:
    ask(book, "a", reviews, 0.25)
    ask(book, 'b, "quoted"', reviews)
    target = tmp_path / f"out{suffix}"
    book.export(target)
    if suffix == ".csv":
        with target.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = pl.read_parquet(target).to_dicts()
    assert [row["run_id"] for row in rows] == ["a", 'b, "quoted"']
    assert float(rows[0]["epsilon"]) == 0.25
    assert json.loads(rows[0]["accounts"]) == [reviews.label]
    assert list(tmp_path.glob(".out*")) == []


@pytest.mark.parametrize("run", ["=1+1", "+49", "-x", "@a", "＝1"])
def test_no_run_id_is_a_formula_in_a_spreadsheet(
    book: Ledger, reviews: Source, tmp_path: Path, run: str
) -> None:
    ask(book, run, reviews)
    for ending, told in ((".csv", f"'{run}"), (".parquet", run)):
        path = tmp_path / f"runs{ending}"
        book.export(path)
        read = pl.read_csv if ending == ".csv" else pl.read_parquet
        assert read(path)["run_id"].to_list() == [told]


def test_export_to_another_ending_or_a_missing_folder(book: Ledger, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.parquet or \.csv"):
        book.export(tmp_path / "out.xlsx")
    with pytest.raises(LedgerError, match="Could not export"):
        book.export(tmp_path / "missing" / "out.csv")
    book.export(tmp_path / "empty.parquet")
    assert pl.read_parquet(tmp_path / "empty.parquet").is_empty()


# The file


def test_the_path_comes_from_the_argument_then_the_environment_then_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPHH_LEDGER", str(tmp_path / "env.sqlite"))
    assert Ledger(tmp_path / "given.sqlite").path == tmp_path / "given.sqlite"
    assert Ledger().path == tmp_path / "env.sqlite"
    monkeypatch.delenv("DPHH_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_path() == tmp_path / "data" / "dphh" / "ledger.sqlite"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local" / "share" / "dphh" / "ledger.sqlite"


def test_folders_and_file_are_made_for_their_owner_alone(tmp_path: Path, reviews: Source) -> None:
    book = Ledger(tmp_path / "one" / "two" / "ledger.sqlite")
    ask(book, "a", reviews)
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (book.path, *list(book.path.parents)[:2])]
    assert modes == [0o600, 0o700, 0o700]
    assert [p.name for p in book.path.parent.iterdir()] == ["ledger.sqlite"]


def test_looking_makes_no_file(book: Ledger, reviews: Source) -> None:
    assert book.accounts() == []
    assert book.runs() == []
    assert book.accounts_touched(reviews) == ()
    with pytest.raises(UsageError):
        book.status("reviews")
    assert not book.path.exists()


def test_a_ledger_of_a_newer_dphh(book: Ledger, reviews: Source) -> None:
    ask(book, "a", reviews)
    tampered(book, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer = (
        f"newer dphh .schema {SCHEMA_VERSION + 1}; this one knows {SCHEMA_VERSION}.: upgrade dphh"
    )
    with pytest.raises(LedgerError, match=newer):
        book.runs()
    with pytest.raises(LedgerError, match=newer):
        ask(book, "b", reviews)


def test_an_event_of_a_newer_dphh_is_not_passed_over(book: Ledger, reviews: Source) -> None:
    ask(book, "a", reviews)
    tampered(book, "DROP TRIGGER requests_stand")
    tampered(book, """UPDATE runs SET events = '[{"kind":"quantum"}]'""")
    with pytest.raises(LedgerError, match="cannot price"):
        book.accounts()


def test_files_that_are_no_ledgers(tmp_path: Path, reviews: Source) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"user,item\n" * 1000)
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as con:
        con.execute("CREATE TABLE mine (x)")
    for path in (text, other, tmp_path):
        before = None if path.is_dir() else path.read_bytes()
        for verb in (Ledger(path).runs, lambda p=path: ask(Ledger(p), "a", reviews)):
            with pytest.raises(LedgerError, match=r"not a dphh ledger|cannot be opened"):
                verb()
        assert before is None or path.read_bytes() == before


def test_a_damaged_file_is_said_to_be_damaged(book: Ledger, reviews: Source) -> None:
    for run in range(30):
        ask(book, f"run {run}", reviews)
    with book.path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(os.urandom(book.path.stat().st_size - 2 * 4096))
    with pytest.raises(LedgerError, match="damaged"):
        book.runs()


def test_a_full_disk_loses_nothing(
    book: Ledger, reviews: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = ask(book, "a", reviews).hold
    book.begin(hold)
    connect = ledger_schema._connect

    def small(path: Path) -> sqlite3.Connection:
        con = connect(path)
        con.execute("PRAGMA max_page_count = 30")
        return con

    with monkeypatch.context() as full:
        full.setattr(ledger_schema, "_connect", small)
        with pytest.raises(LedgerError, match="disk is full"):
            book.settle(hold, {}, os.urandom(10**6))
    assert book.runs()[0].state == "running"
    book.settle(hold, {}, b"there is space again")
    assert book.release("a").parquet == b"there is space again"


def test_a_lock_held_too_long(
    book: Ledger, reviews: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(book, "a", reviews)
    monkeypatch.setattr(ledger_schema, "TIMEOUT", 0.1)
    with closing(sqlite3.connect(book.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            ask(book, "b", reviews)
        assert len(book.runs()) == 1  # readers do not wait for it
        other.execute("ROLLBACK")
    ask(book, "b", reviews)


@contextmanager
def nobody() -> Iterator[None]:
    """Permissions do not bind root, so leave root for a while."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(65534)
    except OSError:
        pytest.skip("root may not become another user here")
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that other users may enter; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


def test_a_read_only_ledger_can_be_read_and_not_written(public: Path, reviews: Source) -> None:
    book = Ledger(public / "ledger.sqlite")
    hold = ask(book, "a", reviews).hold
    book.begin(hold)
    book.settle(hold, {}, b"rows")
    book.path.chmod(0o444)
    public.chmod(0o555)
    with nobody():
        assert [entry.run_id for entry in book.runs()] == ["a"]
        assert book.release("a").parquet == b"rows"
        assert len(book.accounts()) == 1
        with pytest.raises(LedgerError, match="read-only"):
            book.reserve("b", Request(Source("frame", ("f",), "u"), "items", {}, [], 0.1, 0.0))
    assert len(book.runs()) == 1


def test_a_folder_that_may_not_be_written(public: Path) -> None:
    public.chmod(0o555)
    with nobody(), pytest.raises(LedgerError, match=r"ermission denied.*--ledger or DPHH_LEDGER"):
        Ledger(public / "new" / "ledger.sqlite").add("x", Source("frame", ("f",), "u"), 1, 0)


def test_a_ledger_that_may_not_be_read(public: Path, reviews: Source) -> None:
    book = Ledger(public / "ledger.sqlite")
    ask(book, "a", reviews)
    with nobody():
        if os.access(book.path, os.R_OK, effective_ids=True):
            pytest.skip("runs as the owner of the file")
        with pytest.raises(LedgerError, match="may read it"):
            book.runs()


def test_an_interrupted_transaction_leaves_nothing(book: Ledger, reviews: Source) -> None:
    ask(book, "a", reviews)
    with pytest.raises(KeyboardInterrupt), writing(book.path) as con:
        con.execute("UPDATE runs SET state = 'running'")
        raise KeyboardInterrupt
    assert book.runs()[0].state == "reserved"


def test_a_journal_left_by_a_crash_is_rolled_back_by_a_reader(
    book: Ledger, reviews: Source, tmp_path: Path
) -> None:
    ask(book, "a", reviews)
    with closing(sqlite3.connect(book.path, isolation_level=None)) as con:
        con.execute("PRAGMA cache_size = 1")
        con.execute("BEGIN IMMEDIATE")
        con.execute("UPDATE runs SET state = 'running'")
        for number in range(200):  # more than the cache holds, so that the file itself changes
            con.execute("INSERT INTO chunks VALUES (1, ?, ?)", (number, os.urandom(4000)))
        crashed = tmp_path / "crashed.sqlite"
        for ending in ("", "-journal"):
            copy = Path(f"{crashed}{ending}")
            copy.write_bytes(Path(f"{book.path}{ending}").read_bytes())
        con.execute("ROLLBACK")
    assert [entry.state for entry in Ledger(crashed).runs()] == ["reserved"]


def test_a_commit_waits_for_the_disk(
    book: Ledger, no_power_cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for its folder, where the journal's end is the commit: 3 is SQLite's EXTRA."""
    monkeypatch.setattr(ledger_schema, "SYNCHRONOUS", no_power_cut)
    with writing(book.path) as con:
        assert con.execute("PRAGMA synchronous").fetchone() == (3,)
        assert con.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_a_transaction(book: Ledger, reviews: Source) -> None:
    ask(book, "a", reviews)
    inside, leaving = threading.Event(), threading.Event()

    def slow() -> None:
        with writing(book.path) as con:
            con.execute("UPDATE runs SET state = 'running'")
            inside.set()
            time.sleep(0.2)
            leaving.set()

    thread = threading.Thread(target=slow)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(0)
    waited = leaving.is_set()
    os.waitpid(child, 0)
    thread.join()
    assert waited
    assert book.runs()[0].state == "running"


def test_every_error_is_one_of_ours(book: Ledger) -> None:
    with pytest.raises(DphhError):
        book.reserve("", Request(Source("frame", ("f",), "u"), "items", {}, [], 0.1, 0.0))


def test_an_owner_may_say_how_a_cap_is_kept(book: Ledger, reviews: Source) -> None:
    account = book.add("reviews", reviews, 1.0, 1e-6, "divergence")
    assert account.cap == Cap(1.0, 1e-6, "divergence")
    ask(book, "a", reviews, 0.1, 1e-8)  # alone, the first run would have settled for the sums
    assert book.status("reviews").cap == Cap(1.0, 1e-6, "divergence")
    assert book.set_cap("reviews", 1.0, 1e-6, "sums").cap == Cap(1.0, 1e-6, "sums")
    assert book.set_cap("reviews", 1.0, 1e-6).cap == Cap(
        1.0, 1e-6, "sums"
    )  # as the first run has it
    with pytest.raises(UsageError, match="kept: found 'composed'"):
        book.set_cap("reviews", 1.0, 1e-6, "composed")
    with pytest.raises(UsageError, match="give a delta, or say 'sums'"):
        book.set_cap("reviews", 1.0, 0.0, "divergence")
