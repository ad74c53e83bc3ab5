"""The ledger under many processes: none overspends, and killing any of them loses nothing."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from dphh import Corpus
from dphh.ledger import Ledger, Request
from dphh.ledger.budget import Cap, allowed, checked_booking

pytestmark = pytest.mark.slow
CORPUS = Corpus("/data/reviews.parquet", user="author", text="body")

START = """
import sys
from dphh.errors import BudgetRefused, LedgerError
from dphh.privacy.events import GaussianEvent
from tests.ledger.asked import tampered
from dphh import Corpus
from dphh.ledger import Ledger, Request
from dphh.ledger.budget import checked_booking
book = Ledger(sys.argv[1])
corpus = Corpus("/data/reviews.parquet", user="author", text="body")
def asked(word, price=(0.1, 1e-9), events=()):
    return Request(corpus, "items", {"word": word}, checked_booking(events, *price))
print("ready", flush=True)
sys.stdin.readline()
"""

# Children are forked from a process that has done its imports, and wait at a gate, so that they
# really ask at once; a child's note is one write, so that it is there after a SIGKILL.
FORK = """
import os, random, signal, time
gate, opener = os.pipe()
def fork(work, name):
    child = os.fork()
    if child:
        return child
    try:
        os.close(opener)
        os.read(gate, 1)
        work(name)
    except BaseException as error:
        note(f"{name} failed: {error!r}")
    finally:
        os._exit(0)
notes = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(line):
    os.write(notes, (line + "\\n").encode())
"""

ASK_ONCE = """
def ask(me):
    events = [GaussianEvent(float(sys.argv[3]))] if sys.argv[3] else []
    try:
        run = book.book(asked(me, events=events), {}, files="f1", run_id=me)
    except BudgetRefused:
        note("refused")
        return
    book.settle(run, {}, b"rows of " + me.encode())
    note("granted")
children = [fork(ask, f"run {n}") for n in range(32)]
os.close(opener)
for child in children:
    os.waitpid(child, 0)
"""

# All ask the same, and each would have drawn something else.
ASK_THE_SAME = """
def ask(me):
    booked = book.book(asked("the same"), {}, files="f1")
    release = booked.release
    if release is None:
        run, drawn = booked, me.encode()
        try:
            stored = book.keep_level(run, "level 1", drawn)
            assert book.level(run, "level 1") == stored
            time.sleep(random.uniform(0, 0.02))
            release = book.settle(run, {}, b"made of " + stored)
        except LedgerError:  # another was first
            release = book.release(booked.run_id)
    note(f"{'paid' if booked.new else 'found'} {release.parquet.decode()}")
children = [fork(ask, f"process {n}") for n in range(16)]
os.close(opener)
for child in children:
    os.waitpid(child, 0)
"""

KILLED = """
def forever(me):
    for number in range(10**9):
        run = f"{me}-{number}"
        booked = book.book(asked(run), {}, files="f1", run_id=run)
        drawn = book.keep_level(booked, "level 1", run.encode() * 2000)
        note(f"drawn {run}")
        if number % 2:
            book.settle(booked, {}, drawn)
            note(f"released {run}")
os.write(opener, bytes(10_000))  # the gate stands open
for first in range(0, 40, 4):
    children = [fork(forever, f"child {first + n}") for n in range(4)]
    while first == 0 and "released" not in open(sys.argv[2]).read():
        time.sleep(0.05)  # however busy the machine is, some run is released
    for child in children:
        time.sleep(random.uniform(0.0, 0.4))
        os.kill(child, signal.SIGKILL)
    assert [os.WTERMSIG(os.waitpid(child, 0)[1]) for child in children] == [signal.SIGKILL] * 4
"""


def start(body: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START + body, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def hear(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout.readline() == f"{line}\n"


def go(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


def asked(word: str) -> Request:
    return Request(CORPUS, "items", {"word": word}, checked_booking((), 0.1, 1e-9))


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as con:
        intact = con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return intact and con.execute("PRAGMA foreign_key_check").fetchall() == []


CAP = Cap(0.25, 1e-9, "divergence")
QUIET = math.sqrt(6.5) * allowed(CAP).sigma  # six of these fit, not seven


@pytest.mark.parametrize(
    ("cap", "sigma", "fitting"),
    [
        ((0.7, 7e-9, "sums"), None, 7),
        ((0.25, 1e-9), QUIET, 6),  # the sums would allow two
        (None, QUIET, 32),  # no account, and all race to make the file
    ],
)
def test_32_processes_at_once_get_exactly_what_the_cap_holds(tmp_path, cap, sigma, fitting):
    book = Ledger(tmp_path / "new" / "ledger.sqlite")
    if cap is not None:
        book.add("reviews", CORPUS, *cap)
    notes = tmp_path / "notes"
    process = start(FORK + ASK_ONCE, str(book.path), str(notes), repr(sigma) if sigma else "")
    hear(process, "ready")
    began = time.monotonic()
    process.communicate("\n", timeout=250)
    print(f"32 processes, {fitting} granted: {time.monotonic() - began:.2f} s")
    said = Counter(notes.read_text().splitlines())
    assert said == +Counter(granted=fitting, refused=32 - fitting)
    assert sound(book.path)
    runs = book.runs()
    assert {run.state for run in runs} == {"settled"}
    assert [run.sequence for run in runs] == list(range(1, fitting + 1))
    for run in runs:
        assert book.release(run.run_id).parquet == b"rows of " + run.run_id.encode()


def test_16_processes_that_ask_the_same_pay_once_and_show_one_release(tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("reviews", CORPUS, 0.1, 1e-9, "sums")
    notes = tmp_path / "notes"
    process = start(FORK + ASK_THE_SAME, str(book.path), str(notes))
    hear(process, "ready")
    process.communicate("\n", timeout=250)
    said = [line.split(" ", 1) for line in notes.read_text().splitlines()]
    assert Counter(what for what, _ in said) == {"paid": 1, "found": 15}
    assert len({release for _, release in said}) == 1
    (run,) = book.runs()
    assert book.release(run.run_id).parquet.decode() == said[0][1]


def test_killed_processes_leave_a_ledger_that_shows_all_that_was_drawn(tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("reviews", CORPUS, 1e6, 0.5, "sums")
    notes = tmp_path / "notes"
    process = start(FORK + KILLED, str(book.path), str(notes))
    hear(process, "ready")
    process.communicate("\n", timeout=250)
    assert process.returncode == 0
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
        again = book.book(asked(run), {}, files="f1", run_id=run)
        assert (again.new, again.attempt) == (False, 2)
        assert book.level(again, "level 1") == run.encode() * 2000
    assert {"released", "drawn"} == {*last.values()}
    assert len(book.runs()) == len(runs)


#: Each is killed with part of its transaction in the file: what was there before is there again.
IN_THE_MIDDLE = """
import os
from dphh.ledger import book as ledger_book
store = ledger_book._store
def half(*all):
    store(*all)
    print("written", flush=True)
    sys.stdin.readline()
run = book.book(asked("a"), {}, files="f1", run_id="a")
book.keep_level(run, "level 0", b"kept")
if sys.argv[2] == "book":
    insert = Ledger._insert
    def inserted(self, con, *all):
        con.execute("PRAGMA cache_size = 1")
        con.execute("INSERT INTO drawn VALUES (1, '', zeroblob(10000000))")
        booked = insert(self, con, *all)
        print("written", flush=True)
        sys.stdin.readline()
    Ledger._insert = inserted
    book.book(asked("b"), {}, files="f1", run_id="b")
ledger_book._store = half
if sys.argv[2] == "keep_level":
    book.keep_level(run, "level 1", os.urandom(10**7))
book.settle(run, {}, os.urandom(10**7))
"""


@pytest.mark.parametrize("step", ["book", "keep_level", "settle"])
def test_a_process_killed_in_the_middle_of_its_write_is_rolled_back(tmp_path, step):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("reviews", CORPUS, 0.25, 1e-8, "sums")
    process = start(IN_THE_MIDDLE, str(book.path), step)
    hear(process, "ready")
    go(process)
    hear(process, "written")
    assert book.path.stat().st_size > 5e6
    process.kill()
    process.wait()
    assert [(run.run_id, run.state) for run in book.runs()] == [("a", "running")]
    assert sound(book.path)
    assert book.path.stat().st_size < 1e6
    run = book.book(asked("a"), {}, files="f1", run_id="a")
    assert [book.level(run, level) for level in ("level 0", "level 1")] == [b"kept", None]
    assert book.keep_level(run, "level 1", b"drawn anew") == b"drawn anew"
    book.settle(run, {}, b"rows")
    assert book.status("reviews").runs == 1
