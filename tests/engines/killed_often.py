"""A process of its own that runs every verb and kills it, again and again, at moments of chance.

`python -m tests.engines.killed_often ENGINE KILLS FOLDER` writes what it saw to FOLDER/seen.json.
It imports once and forks for each run; nothing of an engine is started before a fork.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path

from dphh import Corpus, Ledger, Plan, counts, ldp_trie, trie
from tests.engines.cut_short import VERBS, forked

ASKED: dict[str, Callable[[Corpus], Plan]] = {
    **{name: asked for name, asked in VERBS.items() if not name.startswith("trie")},
    "counts": lambda corpus: counts(corpus, of=["w0", "w1 w1"], epsilon=1, delta=1e-6),
    "trie": lambda corpus: trie(corpus, epsilon=8, delta=1e-3, max_length=4),
    "trie-paper": lambda corpus: trie(
        corpus, epsilon=8, delta=1e-3, max_length=3, accounting="paper", users=400
    ),
    "ldp_trie": lambda corpus: ldp_trie(
        corpus, local_epsilon=6, delta=1e-3, users_per_level=100, contributions=1, max_length=3,
        keep=20, character_set="w0123456 ",
    ),
}  # fmt: skip


def corpus_of(verb: str, folder: Path) -> Corpus:
    path = folder / "texts.parquet"
    if verb.startswith(("trie", "ldp")):
        return Corpus(path, user="who", item="what")
    return Corpus(path, user="who", text="what")


def write_texts(folder: Path) -> None:
    import pyarrow as pa  # no engine: those start threads
    import pyarrow.parquet as pq

    rows = [(user, f"w{user % n} w{user % (n + 1)} w0") for n in range(1, 6) for user in range(400)]
    who, what = zip(*rows, strict=True)
    pq.write_table(pa.table({"who": who, "what": what}), folder / "texts.parquet")


def add_account(ledger: Path) -> None:
    """An account that pays for any number of runs on the texts."""
    texts = Corpus(ledger.parent / "texts.parquet", user="who", text="what")
    Ledger(ledger).add("texts", texts, 1e6, 0.5, kept="sums")


def begin(verb: str, engine: str, ledger: Path) -> int:
    """A child that runs the verb and writes what it shows at once."""

    def work() -> None:
        os.setpgid(0, 0)  # so that what it starts goes with it
        notes = os.open(ledger.with_suffix(".said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def shown(line: str) -> None:
            os.write(notes, f"{line}\n".encode())

        shown("begins")
        plan = ASKED[verb](corpus_of(verb, ledger.parent))
        plan.run(ledger=ledger, engine=engine, run_id="killed", progress=shown)

    return forked(work)


def ended(child: int, seconds: float) -> int | None:
    """The child's exit code, or None if it was still running then and was killed."""
    late = time.monotonic() + seconds
    while time.monotonic() < late:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def levels_shown(ledger: Path) -> list[list[str]]:
    """What each attempt said of its levels."""
    attempts: list[list[str]] = []
    for line in ledger.with_suffix(".said").read_text().splitlines():
        if line == "begins":
            attempts.append([])
        elif line.startswith("level"):
            attempts[-1].append(line)
    return attempts


def state(ledger: Path) -> tuple[str, list[str], int]:
    """SQLite's own check, the runs' states, and how many charges there are."""
    with closing(sqlite3.connect(ledger)) as con:
        sound = con.execute("PRAGMA integrity_check").fetchone()[0]
        states = [row[0] for row in con.execute("SELECT state FROM runs").fetchall()]
        return sound, states, con.execute("SELECT count(*) FROM charges").fetchone()[0]


def one_run(verb: str, engine: str, number: int, kills: int, folder: Path) -> tuple[int, list[str]]:
    """Kill one run so often, at moments between its beginning and its end; what went wrong."""
    ledger = folder / f"{number}.sqlite"
    add_account(ledger)
    wrong, killed = [], 0
    for _ in range(kills):
        code = ended(begin(verb, engine, ledger), random.uniform(0.0, 0.5))
        killed += code is None
        if code not in (None, 0):
            wrong.append(f"an attempt ended with {code}")
        sound, states, charges = state(ledger)
        if sound != "ok" or len(states) > 1 or charges != len(states):
            wrong.append(f"after a kill: {sound}, {states}, {charges} charges")
    if (code := ended(begin(verb, engine, ledger), 120.0)) != 0:
        wrong.append(f"the last attempt ended with {code}")
    if state(ledger) != ("ok", ["settled"], 1):
        wrong.append(f"at the end: {state(ledger)}")
    *before, last = levels_shown(ledger)
    whole = max([*before, last], key=len)
    if any(attempt != whole[: len(attempt)] for attempt in before):
        wrong.append("a level that was shown came out otherwise later")
    return killed, wrong


def main() -> None:
    engine, kills, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    import_module(f"dphh.engines.{engine}.host")
    write_texts(folder)
    seen: dict[str, int] = dict.fromkeys(ASKED, 0)
    wrong: list[str] = []
    number = 0
    while sum(seen.values()) < kills:
        verb = list(ASKED)[number % len(ASKED)]
        killed, mistakes = one_run(verb, engine, number, random.randint(1, 4), folder)
        seen[verb] += killed
        wrong += [f"{verb}: {mistake}" for mistake in mistakes]
        number += 1
    # A folder whose process was killed before it had its name has no rows, and is removed later.
    left = [
        path.name
        for path in Path(tempfile.gettempdir()).glob("dphh-*")
        if not path.name.startswith("dphh-new-")
        or any(each.name != ".lock" for each in path.iterdir())
    ]
    (folder / "seen.json").write_text(json.dumps({"killed": seen, "wrong": wrong, "left": left}))


if __name__ == "__main__":
    main()
