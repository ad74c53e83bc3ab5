"""Every order in which the steps of two and three processes can meet, on the ledger's own code.

Beside the ledger goes a model of what should happen, some forty lines without SQL. From an empty
ledger all states that any order of steps can reach are visited; in each, every process tries every
step, allowed or not, and the ledger must do what the model says, or refuse and stay as it is. What
makes it private is then asserted of each state: whatever was drawn was paid for at its own price.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from dphh.errors import BudgetRefused, LedgerError, UsageError
from dphh.ledger import Booked, Ledger, Request, Source
from dphh.ledger import accounts as ledger_accounts
from dphh.ledger import book as ledger_book
from dphh.ledger import schema as ledger_schema
from dphh.privacy.events import EpsilonDeltaEvent
from tests.ledger.asked import ask

SOURCE = Source("path", ("/nowhere/reviews.parquet",), "u")
CAP, DEAR, CHEAP = 2.5, 2.0, 0.5
#: By the files, by a run id that all share, or anew.
BOOKING = ("book", "named", "again")
DRAWING = ("level", "settle", "fail")
ATTEMPTS, MOST_RUNS = 2, 2  # as far as the states are followed


# What should happen


@dataclass(frozen=True)
class Run:
    price: float
    name: bool  # whether it has the run id that all share
    key: int  # who booked it first, whose key its draws are made by
    state: str = "running"
    attempts: int = 1
    level: int | None = None  # who drew the rows that are stored
    release: int | None = None


@dataclass(frozen=True)
class State:
    runs: tuple[Run, ...] = ()  # in the order of booking
    held: tuple[int | None, ...] = ()  # the run that each process has booked and works on


def stepped(state: State, who: int, price: float, step: str) -> State | None:
    """The state after one step of one process; None where it is refused."""
    if step in BOOKING:
        return _booked(state, who, price, step)
    at = state.held[who]
    after = None if at is None else _moved(state.runs[at], who, step)
    return None if after is None or at is None else _with(state, at, after)


def _booked(state: State, who: int, price: float, step: str) -> State | None:
    found = None
    for at, run in enumerate(state.runs):
        if (step == "named" and run.name) or (step == "book" and run.price == price):
            found = at
    if found is None:
        if sum(run.price for run in state.runs) + price > CAP:
            return None
        run = Run(price, step == "named", who)
        return _holding(replace(state, runs=(*state.runs, run)), who, len(state.runs))
    run = state.runs[found]
    if run.price != price:
        return None
    if run.state == "settled":
        return _holding(state, who, None)
    if run.attempts == ATTEMPTS:
        return None
    going_on = replace(run, state="running", attempts=run.attempts + 1)
    return _holding(_with(state, found, going_on), who, found)


def _moved(run: Run, who: int, step: str) -> Run | None:
    if run.state == "settled":
        return None if step == "level" else run  # the release that is stored
    match step:
        case "level":
            return replace(run, level=who if run.level is None else run.level)
        case "settle":
            return replace(run, state="settled", release=who, attempts=0, key=-1, level=None)
    return replace(run, state="failed")


def _with(state: State, at: int, run: Run) -> State:
    return replace(state, runs=(*state.runs[:at], run, *state.runs[at + 1 :]))


def _holding(state: State, who: int, run: int | None) -> State:
    return replace(state, held=(*state.held[:who], run, *state.held[who + 1 :]))


# What happens


class Memory:
    """The ledger's file, kept in memory so that every state of it can be gone back to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.con = sqlite3.connect(":memory:", isolation_level=None)
        self.con.execute("PRAGMA page_size = 512")  # a small file, which is copied often
        self.con.execute("PRAGMA foreign_keys = ON")
        ledger_schema._create_tables(self.con)
        for part in (ledger_accounts, ledger_book):
            monkeypatch.setattr(part, "reading", self._transaction)
            monkeypatch.setattr(part, "writing", self._transaction)

    @contextmanager
    def _transaction(self, _: Path, **how: bool) -> Iterator[sqlite3.Connection]:
        self.con.execute("BEGIN IMMEDIATE")
        try:
            yield self.con
            self.con.execute("COMMIT")
        except BaseException:
            self.con.execute("ROLLBACK")
            raise

    def runs(self) -> tuple[Run, ...]:
        found = self._rows("SELECT sequence FROM runs ORDER BY sequence")
        return tuple(self._run(sequence) for (sequence,) in found)

    def _run(self, run: int) -> Run:
        ((name, price, state),) = self._rows(
            "SELECT run_id, epsilon, state FROM runs WHERE sequence = ?", run
        )
        ((charged,),) = self._rows("SELECT count(*) FROM charges WHERE run = ?", run)
        assert charged == 1
        begun = self._rows("SELECT attempts, key FROM unfinished WHERE run = ?", run)
        drawn = dict(self._rows("SELECT step, CAST(data AS TEXT) FROM pieces WHERE run = ?", run))
        level, release = (drawn.pop(step, None) for step in ("level 1", "the release"))
        assert not drawn
        return Run(
            price,
            name == "shared",
            int(begun[0][1]) if begun else -1,
            state,
            begun[0][0] if begun else 0,
            None if level is None else int(level),
            None if release is None else int(release),
        )

    def _rows(self, query: str, *values: int) -> list[tuple]:
        return self.con.execute(query, values).fetchall()


@cache
def asked(price: float) -> Request:
    return Request(SOURCE, "items", {}, [EpsilonDeltaEvent(price, 0.0)], price, 0.0)


def do(who: int, price: float, step: str, at: int | None) -> int | None:
    """One step of a process, whose rows are its number; gives the run that it then works on."""
    book, rows = Ledger("in memory"), b"%d" % who
    if step in BOOKING:
        name = "shared" if step == "named" else None
        booked = book.book(
            asked(price), {"engine": "one"}, files="f", run_id=name, again=step == "again"
        )
        return None if booked.release is not None else booked.sequence - 1
    if at is None:
        raise UsageError("nothing was booked")  # no process comes so far
    run = working_on(book, at + 1)
    match step:
        case "level":
            stored = book.level(run, "level 1")
            assert stored in (None, book.keep_level(run, "level 1", rows))
        case "settle":
            book.settle(run, {}, rows)
        case "fail":
            book.failed(run)
    return at


def working_on(book: Ledger, sequence: int) -> Booked:
    query = "SELECT run_id, key FROM runs LEFT JOIN unfinished ON run = sequence WHERE sequence = ?"
    with ledger_book.reading(book.path) as con:
        run_id, key = con.execute(query, (sequence,)).fetchone()
    return Booked(run_id, sequence, (), new=False, key=key or b"it had one")


@pytest.mark.parametrize(
    ("prices", "booking"),
    [
        ((DEAR, CHEAP), BOOKING),
        ((CHEAP, CHEAP), ("book", "named")),
        ((CHEAP, CHEAP), ("book", "again")),
        ((DEAR, CHEAP, CHEAP), ("book", "again")),
        ((DEAR, DEAR, CHEAP), ("book", "again")),
    ],
)
def test_in_every_order_what_is_drawn_was_paid_for_at_its_own_price(prices, booking, monkeypatch):
    monkeypatch.setattr(ledger_book, "MOST_ATTEMPTS", ATTEMPTS)
    ledger = Memory(monkeypatch)
    Ledger("in memory").add("corpus", SOURCE, CAP, 0.0)
    files: dict[tuple[Run, ...], bytes] = {(): ledger.con.serialize()}

    @cache  # what a process works on is not in the file, and most steps do not depend on it
    def done(runs: tuple[Run, ...], who: int, step: str, at: int | None) -> State | None:
        """The runs after a step, and what its process works on; None where it is refused."""
        ledger.con.deserialize(files[runs])
        ledger.con.execute("PRAGMA foreign_keys = ON")
        key = SimpleNamespace(urandom=lambda _: b"%d" % who)
        monkeypatch.setattr(ledger_book, "os", key)
        try:
            held = do(who, prices[who], step, at)
        except (LedgerError, UsageError, BudgetRefused):
            assert ledger.runs() == runs
            return None
        after = ledger.runs()
        files.setdefault(after, ledger.con.serialize())
        return State(after, (held,))

    empty = State((), (None,) * len(prices))
    seen, waiting, steps = {empty}, [empty], 0
    while waiting:
        before = waiting.pop()
        _is_private(before, prices)
        for who, price in enumerate(prices):
            for step in (*booking, *DRAWING):
                expected = stepped(before, who, price, step)
                if expected is not None and len(expected.runs) > MOST_RUNS:
                    continue
                steps += 1
                at = None if step in BOOKING else before.held[who]
                found = done(before.runs, who, step, at)
                if found is None:
                    assert expected is None, (before, who, step)
                    continue
                after = _holding(State(found.runs, before.held), who, found.held[0])
                assert after == expected, (before, who, step)
                _goes_forward(before, after)
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    assert {run.state for runs in files for run in runs} == {"running", "failed", "settled"}
    print(f"{len(prices)} processes: {len(seen)} states, {steps} steps")


def _is_private(state: State, prices: tuple[float, ...]) -> None:
    assert sum(run.price for run in state.runs) <= CAP
    for at, run in enumerate(state.runs):
        drew = {who for who in (run.key, run.level, run.release) if who not in (None, -1)}
        works = {who for who, held in enumerate(state.held) if held == at}
        assert {prices[who] for who in drew | works} <= {run.price}


def _goes_forward(before: State, after: State) -> None:
    """What was booked and what was drawn is never taken back."""
    assert len(after.runs) >= len(before.runs)
    for was, now in zip(before.runs, after.runs, strict=False):
        assert (was.price, was.name) == (now.price, now.name)
        assert was.state != "settled" or now == was
        assert now.state == "settled" or was.level in (None, now.level)
        assert now.state == "settled" or was.key == now.key


def test_a_run_that_is_booked_while_an_account_is_made_is_charged(book, reviews, monkeypatch):
    """The files of earlier runs are listed before the ledger is locked."""
    listed = Ledger._sources_held

    def booked_meanwhile(self: Ledger, source: Source) -> dict[str, bool]:
        found = listed(self, source)
        ask(Ledger(book.path), "meanwhile", replace(reviews, content={"column": "title"}), 0.4)
        return found

    ask(book, "before", reviews, 0.4)
    monkeypatch.setattr(Ledger, "_sources_held", booked_meanwhile)
    assert book.add("reviews", reviews, 1.0, 0.0).runs == 2
