"""The command line on Spark: its driver, Java and Python workers are killed at moments of chance.

`python -m tests.engines.spark_killed KILLS FOLDER` writes what it saw to FOLDER/seen.json. Each
kill starts another Java, in a temporary directory of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from tests.conftest import HERE, SPARK_JAVA
from tests.engines.killed_often import add_account, state, write_texts

ASKED = {
    "items": ["items", "--text", "what", "--max-items", "10", "--epsilon", "2"],
    "ngrams": ["ngrams", "--text", "what", "--max-n", "3", "--max-items", "10", "--epsilon", "20"],
    "trie": ["trie", "--item", "what", "--max-length", "4", "--epsilon", "8"],
}
#: What is killed, and how. Java and workers belong to the run, which goes on from what it stored.
VICTIMS = {
    "driver, SIGTERM": ("driver", signal.SIGTERM),
    "driver, SIGKILL": ("driver", signal.SIGKILL),
    "Java, SIGKILL": ("java", signal.SIGKILL),
    "a worker, SIGKILL": ("pyspark", signal.SIGKILL),
    "all at once, SIGKILL": ("all", signal.SIGKILL),
}
#: An attempt is struck so many seconds after Java has started, at the latest.
MOMENTS = 12.0
#: What stays behind under these names may hold rows.
PRIVATE = ("dphh-run-*", "blockmgr-*")
#: Seconds until Java, which may be starting still, has seen that its driver is gone.
PATIENCE = 120


def begin(verb: str, folder: Path) -> subprocess.Popen[str]:
    """One attempt."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    name, *options = ASKED[verb]
    asked = [name, str(folder / "texts.parquet"), "--user", "who", *options, "--delta", "1e-3"]
    run = ["--engine", "spark", "--ledger", str(folder / f"{verb}.sqlite"), "--run-id", "killed"]
    with (folder / "errors").open("a") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "dphh", *asked, *run, "--threads", "2"],
            cwd=HERE, stdout=subprocess.DEVNULL, stderr=errors, text=True, start_new_session=True,
            env={**os.environ, "TMPDIR": str(temporary), "SPARK_SUBMIT_OPTS":
                 f"{SPARK_JAVA} -Djava.io.tmpdir={temporary}"},
        )  # fmt: skip


def of_session(leader: int) -> dict[int, str]:
    """The processes of an attempt, and what they are called by; Java's workers among them."""
    found = {}
    for each in Path("/proc").iterdir():
        with suppress(OSError, IndexError, ValueError):
            fields = (each / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                line = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                called = "java" if "java" in line.split()[0] else line
                found[int(each.name)] = "pyspark" if "pyspark.daemon" in line else called
    return found


def strike(process: subprocess.Popen[str], who: str, how: signal.Signals) -> bool:
    """Whether there was somebody to kill."""
    others = of_session(process.pid)
    struck = {
        "driver": [process.pid],
        "all": [*others],
    }.get(who, [number for number, called in others.items() if called == who][-1:])
    for number in struck:
        with suppress(ProcessLookupError):
            os.kill(number, how)
    return bool(struck)


def settled_down(process: subprocess.Popen[str]) -> bool:
    """Whether all of an attempt is gone by itself in time; what is not is killed."""
    process.wait(PATIENCE)
    late = time.monotonic() + PATIENCE
    while (left := of_session(process.pid)) and time.monotonic() < late:
        time.sleep(0.1)
    for number in left:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return not left


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for name in PRIVATE for path in (folder / "temporary").glob(name))


def stored(ledger: Path) -> set[tuple[str, int, str]]:
    """The levels that the run has drawn and stored, until it is settled."""
    with closing(sqlite3.connect(ledger)) as con:
        return {*con.execute("SELECT step, number, sha256 FROM pieces JOIN unfinished USING (run)")}


def kill_once(verb: str, victim: str, folder: Path) -> tuple[bool, list[str]]:
    """Whether the kill met a run; and what went wrong."""
    wrong: list[str] = []
    ledger = folder / f"{verb}.sqlite"
    before = stored(ledger)
    process = begin(verb, folder)
    late = "pyspark" if victim.startswith("a worker") else "java"
    while process.poll() is None and late not in of_session(process.pid).values():
        time.sleep(0.02)
    time.sleep(random.uniform(0.0, 1.0 if late == "pyspark" else MOMENTS))
    met = process.poll() is None and strike(process, *VICTIMS[victim])
    if not settled_down(process):
        wrong.append(f"{victim}: processes stayed")
    swept_by_the_next = victim in ("driver, SIGKILL", "all at once, SIGKILL")
    if met and not swept_by_the_next and (left := left_in(folder)):
        wrong.append(f"{victim}: left {left}")
    sound, states, charges = state(ledger)
    if "settled" not in states and not before <= stored(ledger):
        wrong.append(f"{victim}: a level that was stored is gone")
    if sound != "ok" or len(states) > 1 or charges != len(states):
        wrong.append(f"{victim}: {sound}, {states}, {charges} charges")
    return met, wrong


def last_attempt(verb: str, folder: Path) -> list[str]:
    """A run that is left alone is paid for once, and leaves nothing."""
    process = begin(verb, folder)
    process.wait(2 * PATIENCE)
    wrong = [] if process.returncode == 0 else [f"the last attempt ended with {process.returncode}"]
    if state(folder / f"{verb}.sqlite") != ("ok", ["settled"], 1):
        wrong.append(f"at the end: {state(folder / f'{verb}.sqlite')}")
    if left := left_in(folder):
        wrong.append(f"at the end: left {left}")
    return wrong


def main() -> None:
    kills, folder = int(sys.argv[1]), Path(sys.argv[2])
    write_texts(folder)
    for verb in ASKED:
        add_account(folder / f"{verb}.sqlite")
    met = dict.fromkeys(VICTIMS, 0)
    wrong: list[str] = []
    used: set[str] = set()
    for number in range(4 * kills):
        if sum(met.values()) >= kills:
            break
        verb, victim = [*ASKED][number % len(ASKED)], [*VICTIMS][number % len(VICTIMS)]
        used.add(verb)
        hit, mistakes = kill_once(verb, victim, folder)
        met[victim] += hit
        wrong += [f"{verb}, {mistake}" for mistake in mistakes]
        (folder / "seen.json").write_text(json.dumps({"met": met, "wrong": wrong}))
    for verb in sorted(used):
        wrong += [f"{verb}, {mistake}" for mistake in last_attempt(verb, folder)]
    (folder / "seen.json").write_text(json.dumps({"met": met, "wrong": wrong}))


if __name__ == "__main__":
    main()
