"""The ledger under many processes: none overspends, and killing any of them loses nothing."""

import gc
import math
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dphh import BudgetRefused, Corpus
from dphh.errors import LedgerError
from dphh.ledger import Ledger, Request
from dphh.ledger import book as ledger_book
from dphh.ledger.budget import Cap, allowed, checked_booking
from dphh.privacy.events import Event, GaussianEvent
from tests.ledger.asked import DATA

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
CORPUS = Corpus("/data/reviews.parquet", user="author", text="body")
CAP = Cap(0.25, 1e-9, "divergence")
ALLOWED = allowed(CAP)
#: Six of these fit, not seven.
QUIET = [GaussianEvent(math.sqrt(6.5 * ALLOWED.order / 2 / ALLOWED.loss))]

#: Children have done their imports when they begin, so that they really ask at once. They use
#: nothing that has threads.
FORKING = multiprocessing.get_context("fork")


def asked(word: str, events: list[Event] | None = None) -> Request:
    return Request(CORPUS, "items", {"word": word}, checked_booking(events or [], 0.1, 1e-9))


def note(notes: Path, line: str) -> None:
    """One write, so that it is there after a SIGKILL."""
    with notes.open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def begun(work: Callable[..., None], *given: Any) -> Any:
    child = FORKING.Process(target=work, args=given, daemon=True)
    # A child collects nothing that other tests left: objects of DuckDB and Arrow, whose threads are
    # not there in a child. That ended one by a segmentation fault.
    gc.freeze()
    child.start()
    gc.unfreeze()
    return child


def at_once(number: int, work: Callable[..., None], *given: Any) -> None:
    """This work in so many processes, which wait for each other before they begin."""
    gate = FORKING.Barrier(number)
    children = [begun(behind, gate, work, f"run {n}", *given) for n in range(number)]
    for child in children:
        child.join(250)
    assert {child.exitcode for child in children} == {0}


def behind(gate: Any, work: Callable[..., None], *given: Any) -> None:
    gate.wait(250)
    work(*given)


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as con:
        intact = con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return intact and con.execute("PRAGMA foreign_key_check").fetchall() == []


def ask_once(me: str, path: Path, notes: Path, events: list[Event] | None) -> None:
    book = Ledger(path)
    try:
        run = book.book(asked(me, events), {}, DATA, run_id=me)
    except BudgetRefused:
        note(notes, "refused")
        return
    book.settle(run, {}, b"rows of " + me.encode())
    note(notes, "granted")


@pytest.mark.parametrize(
    ("cap", "events", "fitting"),
    [
        ((0.7, 7e-9, "sums"), None, 7),
        ((0.25, 1e-9), QUIET, 6),  # the sums would allow two
        (None, QUIET, 32),  # no account, and all race to make the file
    ],
)
def test_32_processes_at_once_get_exactly_what_the_cap_holds(tmp_path, cap, events, fitting):
    book, notes = Ledger(), tmp_path / "notes"
    if cap is not None:
        book.add("reviews", CORPUS, *cap)
    at_once(32, ask_once, book.path, notes, events)
    said = Counter(notes.read_text().splitlines())
    assert said == +Counter(granted=fitting, refused=32 - fitting)
    assert sound(book.path)
    runs = book.runs()
    assert {run.state for run in runs} == {"settled"}
    assert [run.sequence for run in runs] == list(range(1, fitting + 1))
    for run in runs:
        assert book.release(run.run_id).parquet == b"rows of " + run.run_id.encode()


def ask_the_same(me: str, path: Path, notes: Path) -> None:
    """Each would have drawn something else."""
    book = Ledger(path)
    run = book.book(asked("the same"), {}, DATA)
    if run.settled:
        release = book.release(run.run_id)
    else:
        try:
            stored = book.keep_drawn(run, "level 1", me.encode())
            assert book.drawn(run, "level 1") == stored
            time.sleep(random.uniform(0, 0.02))
            release = book.settle(run, {}, b"made of " + stored)
        except LedgerError:  # another was first
            release = book.release(run.run_id)
    note(notes, f"{'paid' if run.new else 'found'} {release.parquet.decode()}")


def test_16_processes_that_ask_the_same_pay_once_and_show_one_release(tmp_path):
    book, notes = Ledger(tmp_path / "ledger.sqlite"), tmp_path / "notes"
    book.add("reviews", CORPUS, 0.1, 1e-9, "sums")
    at_once(16, ask_the_same, book.path, notes)
    said = [line.split(" ", 1) for line in notes.read_text().splitlines()]
    assert Counter(what for what, _ in said) == {"paid": 1, "found": 15}
    assert len({release for _, release in said}) == 1
    (run,) = book.runs()
    assert book.release(run.run_id).parquet.decode() == said[0][1]


def ask_forever(me: str, path: Path, notes: Path) -> None:
    book = Ledger(path)
    for number in range(10**9):
        run = f"{me}-{number}"
        booked = book.book(asked(run), {}, DATA, run_id=run)
        drawn = book.keep_drawn(booked, "level 1", run.encode() * 2000)
        note(notes, f"drawn {run}")
        if number % 2:
            book.settle(booked, {}, drawn)
            note(notes, f"released {run}")


def test_killed_processes_leave_a_ledger_that_shows_all_that_was_drawn(tmp_path):
    book, notes = Ledger(tmp_path / "ledger.sqlite"), tmp_path / "notes"
    book.add("reviews", CORPUS, 1e6, 0.5, "sums")
    notes.touch()
    for first in range(0, 40, 4):
        children = [begun(ask_forever, f"child {first + n}", book.path, notes) for n in range(4)]
        while "released" not in notes.read_text():
            time.sleep(0.05)  # however busy the machine is, some run is released
        for child in children:
            time.sleep(random.uniform(0.0, 0.4))
            child.kill()
            child.join()
        assert {child.exitcode for child in children} == {-signal.SIGKILL}
    assert sound(book.path)
    runs = {run.run_id: run.state for run in book.runs()}
    assert book.status("reviews").runs == len(runs)  # every one is paid for
    said = [line.split(" ", 1) for line in notes.read_text().splitlines()]
    last = {run: what for what, run in said}
    for run, what in last.items():  # a process may be killed between its step and its note
        assert what != "released" or runs[run] == "settled"
        if runs[run] == "settled":
            assert book.release(run).parquet == run.encode() * 2000
            continue
        # It goes on by the same key, without a price, past what was drawn.
        again = book.book(asked(run), {}, DATA, run_id=run)
        assert (again.new, again.attempt) == (False, 2)
        assert book.drawn(again, "level 1") == run.encode() * 2000
    assert {"released", "drawn"} == {*last.values()}
    assert len(book.runs()) == len(runs)


def stop_in_the_middle(step: str, path: Path, written: Any) -> None:
    """Wait with part of this step's transaction in the file."""
    book, store, insert = Ledger(path), ledger_book.store, Ledger._insert_run

    def half_stored(*given: Any) -> None:
        store(*given)
        written.set()
        time.sleep(600)

    def half_inserted(self: Ledger, con: sqlite3.Connection, *given: Any) -> None:
        insert(self, con, *given)
        con.execute("PRAGMA cache_size = 1")
        half_stored(con, 1, "", bytes(10**7))

    run = book.book(asked("a"), {}, DATA, run_id="a")
    book.keep_drawn(run, "level 0", b"kept")
    Ledger._insert_run = half_inserted
    ledger_book.store = half_stored
    if step == "book":
        book.book(asked("b"), {}, DATA, run_id="b")
    elif step == "keep_drawn":
        book.keep_drawn(run, "level 1", os.urandom(10**7))
    else:
        book.settle(run, {}, os.urandom(10**7))


@pytest.mark.parametrize("step", ["book", "keep_drawn", "settle"])
def test_a_process_killed_in_the_middle_of_its_write_is_rolled_back(tmp_path, step):
    """What was there before is there again."""
    book, written = Ledger(tmp_path / "ledger.sqlite"), FORKING.Event()
    book.add("reviews", CORPUS, 0.25, 1e-8, "sums")
    child = begun(stop_in_the_middle, step, book.path, written)
    assert written.wait(250)
    assert book.path.stat().st_size > 5e6
    child.kill()
    child.join()
    assert [(run.run_id, run.state) for run in book.runs()] == [("a", "running")]
    assert sound(book.path)
    assert book.path.stat().st_size < 1e6
    run = book.book(asked("a"), {}, DATA, run_id="a")
    assert [book.drawn(run, level) for level in ("level 0", "level 1")] == [b"kept", None]
    assert book.keep_drawn(run, "level 1", b"drawn anew") == b"drawn anew"
    book.settle(run, {}, b"rows")
    assert book.status("reviews").runs == 1
