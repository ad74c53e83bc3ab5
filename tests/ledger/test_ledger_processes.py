"""The ledger under many processes: none overspends, and killing any of them loses nothing."""

from __future__ import annotations

import math
import os
import resource
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dphh.ledger import Hold, Ledger, Source
from dphh.ledger.exact import allowed
from dphh.rows.period import PeriodColumn

pytestmark = pytest.mark.slow
SOURCE = Source("path", ("/data/reviews.parquet",), "author")
WEEKS = replace(SOURCE, period=PeriodColumn("date", "week"))
FULL = os.environ.get("DPHH_FULL") == "1"

START = """
import sys
from dphh.errors import BudgetRefused, LedgerError
from dphh.privacy.events import GaussianEvent
from dphh.ledger import Ledger, Request, Source
book = Ledger(sys.argv[1])
source = Source("path", ("/data/reviews.parquet",), "author")
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
        hold = book.reserve(me, Request(source, "items", {}, events, 0.1, 1e-9)).hold
    except BudgetRefused:
        note("refused")
        return
    book.begin(hold)
    book.settle(hold, {}, b"rows of " + me.encode())
    note("granted")
children = [fork(ask, f"run {n}") for n in range(32)]
os.close(opener)
for child in children:
    os.waitpid(child, 0)
"""

GIVE_BACK = """
def ask(me):
    booked = [GaussianEvent(float(sys.argv[3]))] * 4
    while True:
        six_are_granted = open(sys.argv[2]).read().count("granted") == 6
        try:
            hold = book.reserve(me, Request(source, "ngrams", {}, booked, 0.9, 9e-7)).hold
        except BudgetRefused:
            if six_are_granted:
                note("refused")
                return
            time.sleep(random.uniform(0, 0.02))
            continue
        book.begin(hold)
        book.settle(hold, {}, b"rows", booked[:1])
        note("granted")
children = [fork(ask, f"run {n}") for n in range(32)]
os.close(opener)
for child in children:
    os.waitpid(child, 0)
"""

# Of weeks 0 to 3 each child asks one, or two at once, with room for three runs in a week.
ASK_PERIODS = """
from dataclasses import replace
from dphh.rows.period import PeriodColumn
def ask(me):
    number = int(me)
    first = number % 4
    weeks = replace(
        source, period=PeriodColumn("date", "week"), periods=((first, first + (number % 8 == 1)),)
    )
    events = [GaussianEvent(float(sys.argv[3]))]
    try:
        hold = book.reserve(me, Request(weeks, "items", {}, events, 0.2, 1e-9)).hold
    except BudgetRefused:
        note(f"refused {me}")
        return
    book.begin(hold)
    book.settle(hold, {}, b"rows")
    note(f"granted {me}")
children = [fork(ask, f"{n}") for n in range(32)]
os.close(opener)
for child in children:
    os.waitpid(child, 0)
"""

KILLED_OVER_PERIODS = """
from dataclasses import replace
from dphh.rows.period import PeriodColumn
def forever(me):
    for number in range(10**9):
        run, first = f"{me}-{number}", random.randrange(6)
        weeks = replace(
            source, period=PeriodColumn("date", "week"),
            periods=((first, first + random.randrange(2)),),
        )
        try:
            hold = book.reserve(run, Request(weeks, "trie", {}, [], 0.1, 1e-9)).hold
        except BudgetRefused:
            continue
        if number % 7 == 3:
            book.cancel(hold)
            continue
        book.begin(hold)
        note(f"drawn {run}")
        book.settle(hold, {"run": run}, run.encode())
        note(f"released {run}")
os.write(opener, bytes(10_000))
for first in range(0, int(sys.argv[3]), 4):
    children = [fork(forever, f"child {first + n}") for n in range(4)]
    for child in children:
        time.sleep(random.uniform(0.0, 0.3))
        os.kill(child, signal.SIGKILL)
    assert [os.WTERMSIG(os.waitpid(child, 0)[1]) for child in children] == [signal.SIGKILL] * 4
    print("killed", flush=True)
    sys.stdin.readline()
"""

KILLED = """
def forever(me):
    for number in range(10**9):
        run = f"{me}-{number}"
        booked = [GaussianEvent(60.0)] * 2
        hold = book.reserve(run, Request(source, "items", {}, booked, 0.2, 1e-9)).hold
        if number % 7 == 3:
            book.cancel(hold)
            continue
        book.begin(hold)
        note(f"drawn {run}")
        book.settle(hold, {"run": run}, run.encode() * 2000, booked[:1])
        note(f"released {run}")
os.write(opener, bytes(10_000))  # the gate stands open
for first in range(0, int(sys.argv[3]), 4):
    children = [fork(forever, f"child {first + n}") for n in range(4)]
    while first == 0 and "released" not in open(sys.argv[2]).read():
        time.sleep(0.05)  # however busy the machine is, some run is released
    for child in children:
        time.sleep(random.uniform(0.0, 0.4))
        os.kill(child, signal.SIGKILL)
    assert [os.WTERMSIG(os.waitpid(child, 0)[1]) for child in children] == [signal.SIGKILL] * 4
    print("killed", flush=True)
    sys.stdin.readline()
"""


def start(body: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START + body, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def hear(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{line}\n"


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as con:
        intact = con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return intact and con.execute("PRAGMA foreign_key_check").fetchall() == []


QUIET = math.sqrt(6.5) * allowed(0.25, 1e-9).sigma  # six of these fit (0.25, 1e-9), not seven


@pytest.mark.parametrize(
    ("cap", "sigma", "fitting"),
    [
        ((0.7, 7e-9), None, 7),  # by the sums
        ((0.25, 1e-9), QUIET, 6),  # by their noise: the sums would allow one
        (None, QUIET, 32),  # nobody named it, and all race to make the file
    ],
)
def test_32_processes_that_ask_at_once_get_exactly_what_the_cap_holds(
    tmp_path: Path, cap: tuple[float, float] | None, sigma: float | None, fitting: int
) -> None:
    book = Ledger(tmp_path / "new" / "ledger.sqlite")
    if cap is not None:
        book.add("reviews", SOURCE, *cap)
    notes = tmp_path / "notes"
    process = start(FORK + ASK_ONCE, str(book.path), str(notes), repr(sigma) if sigma else "")
    hear(process, "ready")
    began = time.monotonic()
    process.communicate("\n", timeout=250)
    print(f"32 processes, {fitting} granted: {time.monotonic() - began:.2f} s")
    said = notes.read_text().splitlines()
    asked = 32
    assert sound(book.path)
    assert said.count("granted") == fitting, said
    assert said.count("refused") == asked - fitting
    runs = book.runs()
    assert len(runs) == fitting
    assert {run.state for run in runs} == {"settled"}
    assert [run.sequence for run in runs] == list(range(1, fitting + 1))
    for run in runs:
        assert book.release(run.run_id).parquet == b"rows of " + run.run_id.encode()


def test_32_processes_that_give_back_get_exactly_what_the_cap_holds_of_what_was_drawn(
    tmp_path: Path,
) -> None:
    """Of nine and a half, each reserves four and draws one: six find room, however they meet."""
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("reviews", SOURCE, 1.0, 1e-6)
    sigma = math.sqrt(9.5) * allowed(1.0, 1e-6).sigma
    notes = tmp_path / "notes"
    process = start(FORK + GIVE_BACK, str(book.path), str(notes), repr(sigma))
    hear(process, "ready")
    process.communicate("\n", timeout=250)
    said = notes.read_text().splitlines()
    assert sound(book.path)
    assert (said.count("granted"), said.count("refused")) == (6, 26), said
    assert [(run.state, len(run.drawn or ())) for run in book.runs()] == [("settled", 1)] * 6
    given_back = book.status("reviews").given_back
    assert given_back is not None
    assert given_back.runs == 6


def weeks_of(book: Ledger) -> Counter[int]:
    """How many runs read each week: all but the cancelled."""
    return Counter(
        week
        for run in book.runs()
        if run.state != "cancelled"
        for first, last in run.source.periods or ()
        for week in range(first, last + 1)
    )


def test_32_processes_that_ask_at_once_get_exactly_what_each_period_holds(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("weeks", WEEKS, 0.25, 1e-9)
    sigma = math.sqrt(3.5) * allowed(0.25, 1e-9).sigma
    notes = tmp_path / "notes"
    process = start(FORK + ASK_PERIODS, str(book.path), str(notes), repr(sigma))
    hear(process, "ready")
    process.communicate("\n", timeout=250)
    said = [line.split() for line in notes.read_text().splitlines()]
    assert len(said) == 32
    assert {what for what, _ in said} == {"granted", "refused"}
    assert sound(book.path)
    read = weeks_of(book)
    assert {int(run.run_id) for run in book.runs()} == {int(n) for w, n in said if w == "granted"}
    assert max(read.values()) == 3
    # Nothing came back, so what was refused does not fit now either.
    for number in (int(number) for what, number in said if what == "refused"):
        first = number % 4
        assert max(read[first], read[first + 1] if number % 8 == 1 else 0) == 3


def test_killed_processes_leave_each_period_within_its_cap(tmp_path: Path) -> None:
    kills = 200 if FULL else 24
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("weeks", WEEKS, 0.7, 7e-9, person=(1e6, 0.5))
    notes = tmp_path / "notes"
    process = start(FORK + KILLED_OVER_PERIODS, str(book.path), str(notes), str(kills))
    hear(process, "ready")
    for _ in range(4, kills + 1, 4):
        go(process)
        hear(process, "killed")
        runs = {run.run_id: run.state for run in book.runs() if run.state != "cancelled"}
        for what, run in (line.split(" ", 1) for line in notes.read_text().splitlines()):
            assert runs[run] in {"drawn": {"running", "settled"}, "released": {"settled"}}[what]
        assert sound(book.path)
        read = weeks_of(book)
        assert max(read.values()) <= 7
        for week in range(7):
            left = book.status("weeks", ((week, week),)).left
            assert left is not None
            assert left.epsilon == pytest.approx(0.7 - 0.1 * read[week], abs=1e-9)
    process.communicate("\n", timeout=250)
    assert max(read.values()) == 7  # it came to refusals


def test_killed_processes_leave_a_ledger_that_shows_all_that_was_released(tmp_path: Path) -> None:
    kills = 200 if FULL else 40
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("reviews", SOURCE, 1e6, 0.5)
    notes = tmp_path / "notes"
    process = start(FORK + KILLED, str(book.path), str(notes), str(kills))
    hear(process, "ready")
    journals = 0
    for killed in range(4, kills + 1, 4):
        go(process)
        hear(process, "killed")
        journals += Path(f"{book.path}-journal").exists()
        runs = book.runs()
        assert all((run.drawn is not None) == (run.state == "settled") for run in runs)
        states = {run.run_id: run.state for run in runs if run.state != "cancelled"}
        said = [line.split(" ", 1) for line in notes.read_text().splitlines()]
        for what, run in said:
            allowed = {"drawn": {"running", "settled"}, "released": {"settled"}}[what]
            assert states[run] in allowed, (what, run)
        unfinished = [run for run, state in states.items() if state != "settled"]
        assert len(unfinished) <= killed  # each kill leaves one run unfinished at most
        assert sound(book.path)
    process.communicate("\n", timeout=250)
    released = [run for what, run in said if what == "released"]
    assert released
    for run in released[:: max(1, len(released) // 100)]:
        assert book.release(run) == ({"run": run}, run.encode() * 2000)
    assert book.status("reviews").runs == len(states)
    print(
        f"{kills} kills: {len(released)} released, {len(unfinished)} left unfinished and spent, "
        f"a journal to roll back after {journals} of {kills // 4} rounds"
    )


def test_a_process_killed_in_the_middle_of_its_write_is_rolled_back(tmp_path: Path) -> None:
    """Not at random: inside the transaction, with part of it already in the file."""
    book = Ledger(tmp_path / "ledger.sqlite")
    body = """
from dphh.ledger import records as ledger_records
book = Ledger(sys.argv[1], attempt="the child's")
booked = [GaussianEvent(60.0)] * 2
hold = book.reserve("a", Request(source, "items", {}, booked, 0.2, 1e-9)).hold
book.begin(hold)
insert = ledger_records.insert_release
def half(con, *release):
    con.execute("PRAGMA cache_size = 1")
    insert(con, *release)
    print("written", flush=True)
    sys.stdin.readline()
ledger_records.insert_release = half
book.settle(hold, {}, bytes(10**7), booked[:1])
"""
    process = start(body, str(book.path), "a")
    hear(process, "ready")
    go(process)
    hear(process, "written")
    assert book.path.stat().st_size > 5e6
    process.kill()
    process.wait()
    assert [(run.state, run.drawn) for run in book.runs()] == [("running", None)]
    assert sound(book.path)
    assert book.path.stat().st_size < 1e6
    book.settle(Hold("a", "the child's"), {}, b"rows")


def test_a_limit_on_the_size_of_files_loses_nothing(tmp_path: Path) -> None:
    """The nearest to a full disk that a test may bring about: real writes that really fail."""
    book = Ledger(tmp_path / "ledger.sqlite")
    body = """
import resource
book = Ledger(sys.argv[1], attempt="the child's")
hold = book.reserve("a", Request(source, "items", {}, [GaussianEvent(60.0)], 0.1, 1e-9)).hold
book.begin(hold)
resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
try:
    book.settle(hold, {}, bytes(10**7))
except LedgerError as error:
    print(error)
"""
    process = start(body, str(book.path), "a")
    said, _ = process.communicate("\n", timeout=250)
    assert "Could not write the ledger" in said
    assert "limit on the size of files" in said or "disk is full" in said
    assert sound(book.path)
    assert [run.state for run in book.runs()] == ["running"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 10**6
    book.settle(Hold("a", "the child's"), {}, b"rows")
