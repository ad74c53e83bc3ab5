"""Every order in which two and three requests for one run id can meet, on the ledger's own code.

Beside the ledger goes a model of what should happen, a dozen lines without SQL. From an empty
ledger all states that any order of steps can reach are visited; in each, every request tries every
step, allowed or not, and the ledger must do what the model says, or refuse and stay as it is. What
makes it private is then asserted of each state: whatever was drawn was paid for at its own price.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dphh.errors import DphhError, LedgerError, NotHeldError, UsageError
from dphh.ledger import Hold, Ledger, Request, Source
from dphh.ledger import accounts as ledger_accounts
from dphh.ledger import book as ledger_book
from dphh.ledger import schema as ledger_schema
from dphh.ledger import unfinished as ledger_unfinished
from dphh.privacy.events import EpsilonDeltaEvent

SOURCE = Source("frame", ("f",), "u")
CAP, DEAR, CHEAP = 2.5, 2.0, 0.5
STEPS = ("reserve", "begin", "level", "settle", "cancel")
ATTEMPTS, RUNS = 2, 3  # as far as the states are followed


# What should happen


@dataclass(frozen=True)
class Run:
    price: float
    state: str = "reserved"
    holders: frozenset[int] = frozenset()
    attempts: int = 0
    key: int | None = None  # whose words the run draws again
    level: int | None = None  # who drew the rows that stand
    release: int | None = None


State = tuple[Run, ...]  # in the order of reservation


def stepped(state: State, who: int, price: float, step: str) -> State | None:
    """The state after one step of one request; None where it is refused."""
    if step == "reserve":
        return _reserved(state, who, price)
    mine = next((run for run in state if who in run.holders), None)
    after = None if mine is None else _moved(mine, who, step)
    return None if after is None else tuple(after if run is mine else run for run in state)


def _reserved(state: State, who: int, price: float) -> State | None:
    """At most one run that is not cancelled has the id: the same request joins it."""
    for at, run in enumerate(state):
        if run.state != "cancelled":
            if run.price != price:
                return None
            joined = run if run.state == "settled" else replace(run, holders=run.holders | {who})
            return (*state[:at], joined, *state[at + 1 :])
    return (*state, Run(price, holders=frozenset({who})))


def _moved(run: Run, who: int, step: str) -> Run | None:
    match step, run.state:
        case "begin", "reserved":
            return replace(run, state="running", attempts=1, key=who)
        case "begin", "running" if run.attempts < ATTEMPTS:
            return replace(run, attempts=run.attempts + 1)
        case "level", "running":
            return replace(run, level=who if run.level is None else run.level)
        case "settle", "running":
            return replace(run, state="settled", release=who, attempts=0, key=None, level=None)
        case "cancel", "reserved":
            left = run.holders - {who}
            return replace(run, holders=left, state="reserved" if left else "cancelled")
    return None


# What happens


class Memory:
    """The ledger's file, kept in memory so that every state of it can be gone back to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.con = sqlite3.connect(":memory:", isolation_level=None)
        ledger_schema._create_or_upgrade_tables(self.con, 0)
        for part in (ledger_accounts, ledger_book):
            monkeypatch.setattr(part, "reading", self._transaction)
            monkeypatch.setattr(part, "writing", self._transaction)

    @contextmanager
    def _transaction(self, _: Path) -> Iterator[sqlite3.Connection]:
        self.con.execute("BEGIN IMMEDIATE")
        try:
            yield self.con
            self.con.execute("COMMIT")
        except BaseException:
            self.con.execute("ROLLBACK")
            raise

    def state(self) -> State:
        return tuple(self._run(sequence) for (sequence,) in self._rows("SELECT sequence FROM runs"))

    def _run(self, run: int) -> Run:
        ((price, state),) = self._rows("SELECT epsilon, state FROM runs WHERE sequence = ?", run)
        begun = self._rows("SELECT attempts, key FROM unfinished WHERE run = ?", run)
        levels = self._rows("SELECT data FROM levels WHERE run = ?", run)
        chunks = self._rows("SELECT data FROM chunks WHERE run = ?", run)
        return Run(
            price,
            state,
            frozenset(int(t) for (t,) in self._rows("SELECT token FROM holds WHERE run = ?", run)),
            begun[0][0] if begun else 0,
            int(begun[0][1]) if begun else None,
            int(levels[0][0]) if levels else None,
            int(chunks[0][0]) if chunks else None,
        )

    def _rows(self, query: str, *values: int) -> list[tuple]:  # type: ignore[type-arg]
        return self.con.execute(query, values).fetchall()


def do(who: int, price: float, step: str) -> None:
    """One step of one request; its rows, its key and its token are its number."""
    book, hold, rows = Ledger("in memory", attempt=str(who)), Hold("t0", str(who)), b"%d" % who
    match step:
        case "reserve":
            events = [EpsilonDeltaEvent(price, 0.0)]
            book.reserve("t0", Request(SOURCE, "items", {}, events, price, 0.0, account="corpus"))
        case "begin":
            book.begin(hold, {"engine": "one"}, rows)
        case "level":
            assert book.level(hold, "level 1") in (None, book.keep_level(hold, "level 1", rows))
        case "settle":
            book.settle(hold, {}, rows)
        case "cancel":
            book.cancel(hold)


@pytest.mark.parametrize(
    "prices",
    [(DEAR, CHEAP), (CHEAP, CHEAP), (DEAR, CHEAP, CHEAP), (DEAR, DEAR, CHEAP), (CHEAP,) * 3],
)
def test_in_every_order_what_is_drawn_was_paid_for_at_its_own_price(
    prices: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_unfinished, "MOST_ATTEMPTS", ATTEMPTS)
    ledger = Memory(monkeypatch)
    Ledger("in memory").add("corpus", SOURCE, CAP, 0.0)
    files: dict[State, bytes] = {(): ledger.con.serialize()}
    waiting: list[State] = [()]
    while waiting:
        before = waiting.pop()
        _private(before, prices)
        for who, price in enumerate(prices):
            for step in STEPS:
                expected = stepped(before, who, price, step)
                if expected is not None and len(expected) > RUNS:
                    continue
                ledger.con.deserialize(files[before])
                try:
                    do(who, price, step)
                except (LedgerError, UsageError):
                    assert expected is None, (before, who, step)
                after = ledger.state()
                assert after == (before if expected is None else expected), (before, who, step)
                _forward(before, after)
                if after not in files:
                    files[after] = ledger.con.serialize()
                    waiting.append(after)
    found = {run.state for state in files for run in state}
    assert found == {"reserved", "running", "settled", "cancelled"}
    print(f"{len(prices)} requests: {len(files)} states, {len(files) * 5 * len(prices)} steps")


def _private(state: State, prices: tuple[float, ...]) -> None:
    spending = [run.price for run in state if run.state != "cancelled"]
    assert len(spending) <= 1 and sum(spending) <= CAP
    for run in state:
        drew = {who for who in (run.key, run.level, run.release) if who is not None}
        assert {prices[who] for who in drew | run.holders} <= {run.price}
        assert not drew or run.state in ("running", "settled")
        assert run.holders or run.state == "cancelled"


def _forward(before: State, after: State) -> None:
    """What was drawn, and what was begun, is never taken back."""
    for was, now in zip(before, after, strict=False):
        assert was.price == now.price
        assert was.state == now.state or (was.state, now.state) in {
            ("reserved", "running"),
            ("reserved", "cancelled"),
            ("running", "settled"),
        }
        assert now.state == "settled" or was.level in (None, now.level)
        assert was.release in (None, now.release)
    assert len(after) >= len(before)


# The order that once gave a dear release at a cheap price


def test_a_reservation_cannot_be_traded_for_a_cheaper_one(ledger: Ledger) -> None:
    ledger.add("corpus", SOURCE, CAP, 0.0)

    def ask(epsilon: float) -> Hold:
        events = [EpsilonDeltaEvent(epsilon, 0.0)]
        request = Request(SOURCE, "items", {}, events, epsilon, 0.0, account="corpus")
        return ledger.reserve("t0", request).hold

    dear = ask(DEAR)
    for _ in range(2):
        with pytest.raises(UsageError, match="another request"):
            ask(CHEAP)
        with pytest.raises(NotHeldError):  # as whoever cleans up behind the refused request
            ledger.cancel(Hold("t0", "of the refused request"))
        assert ledger.status("corpus").spent.epsilon == DEAR
    ledger.cancel(dear)
    cheap = ask(CHEAP)
    for step in (ledger.begin, lambda hold: ledger.settle(hold, {}, b""), ledger.cancel):
        with pytest.raises(NotHeldError, match="not reserved by this attempt"):
            step(dear)
    ledger.begin(cheap)
    ledger.settle(cheap, {}, b"cheap")
    with pytest.raises(NotHeldError):
        ledger.release(dear)
    assert ledger.status("corpus").spent.epsilon == CHEAP


def test_the_file_itself_keeps_what_was_asked_and_what_is_held(ledger: Ledger) -> None:
    ledger.reserve("t0", Request(SOURCE, "items", {}, [EpsilonDeltaEvent(DEAR, 0.0)], DEAR, 0.0))
    for change in ("epsilon = 0.5", "events = '[]'", "run_id = 't1'", "state = 'cancelled'"):
        with closing(sqlite3.connect(ledger.path)) as con, pytest.raises(sqlite3.IntegrityError):
            con.execute(f"UPDATE runs SET {change}")


def test_a_hold_does_not_show_its_token(ledger: Ledger) -> None:
    events = [EpsilonDeltaEvent(CHEAP, 0.0)]
    request = Request(SOURCE, "items", {}, events, CHEAP, 0.0)
    first, again = (ledger.reserve("t0", request) for _ in range(2))
    assert first.hold != again.hold and first.sequence == again.sequence
    assert first.hold.token not in repr(first)
    with pytest.raises(DphhError) as refused:
        ledger.begin(Hold("t1", first.hold.token))
    assert first.hold.token not in str(refused.value)
