"""Runs of the table of cases, in processes of their own that are killed where a test says."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dphh import Corpus, Ledger, Plan, Release, trie
from dphh.mechanisms.trie.price import VoteLevel
from dphh.udfs.noise.randomness import Randomness, SystemRandomness
from tests.engines.recorded_runs import CASES, corpus_at, is_of

RUN = "cut short"
ROOT = Path(__file__).parents[2]
#: Where a run is killed: in the draw of a step, once that step is stored, once all is settled.
DRAWING, STORED, SETTLED = "drawing", "stored", "settled"
#: A trie in which everybody votes and one vote is enough: it shows which sequence each user drew.
EVERYBODY = "everybody votes"


def of_levels(plan: Plan, levels: tuple[VoteLevel, ...]) -> Plan:
    return replace(plan, price=replace(plan.price, levels=levels))


def plan_of(case: str, corpus: Corpus) -> Plan:
    if case != EVERYBODY:
        return CASES[case].plan(corpus)
    everybody = (VoteLevel(1, 2**63, 1), VoteLevel(2, 2**63, 1))
    return of_levels(trie(corpus, epsilon=8, delta=1e-3, max_length=2), everybody)


class AllHeads:
    """Coins show heads; all else is the system's. It is no test's, lest words follow from seeds."""

    is_test = False

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        if purpose.startswith("trie/level"):
            return np.zeros(count, dtype=np.uint64)
        return SystemRandomness().random_words(count, purpose, keys)


class Fatal:
    """Kills the run where it draws words for a step, in whatever process of it that happens."""

    def __init__(self, source: Randomness, step: str) -> None:
        self.source, self.step = source, step
        self.run = os.getpid()

    @property
    def is_test(self) -> bool:
        return self.source.is_test

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        if is_of(purpose, self.step):
            os.kill(self.run, signal.SIGKILL)
            time.sleep(60)  # a worker goes with the run
        return self.source.random_words(count, purpose, keys)


def source_of(case: str) -> Randomness:
    return AllHeads() if case == EVERYBODY else SystemRandomness()


def run(
    case: str,
    corpus: Corpus,
    ledger: Path,
    engine: str,
    *,
    progress: Callable[[str], None] | None = None,
    randomness: Randomness | None = None,
) -> Release:
    return plan_of(case, corpus).run(
        ledger=Ledger(ledger, create=True),
        engine=engine,
        run_id=RUN,
        progress=progress,
        randomness=randomness or source_of(case),
    )


def killed(
    case: str, path: Path, engine: str, points: Sequence[tuple[str, str]], folder: Path
) -> list[Path]:
    """Run the case once for each point, (where, step), and kill it there. The ledgers that are
    left; `said` gives what a run had shown."""
    points = list(points)
    asked = {
        "case": case, "path": str(path), "engine": engine, "points": points, "folder": str(folder)
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "tests.engines.cut_short", json.dumps(asked)],
        cwd=ROOT,
        check=True,
        timeout=900 if engine == "spark" else 300,
    )
    return [_ledger(folder, number, which) for number, (which, _) in enumerate(points)]


def _ledger(folder: Path, number: int, which: str) -> Path:
    return folder / f"{number}-{which}.sqlite"


def said(ledger: Path) -> list[str]:
    return ledger.with_suffix(".said").read_text().splitlines()


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as problem:  # a child must not go on as its parent
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _run_and_die(asked: dict[str, Any], ledger: Path, which: str, step: str) -> None:
    notes = os.open(ledger.with_suffix(".said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    keep_drawn, settle = Ledger.keep_drawn, Ledger.settle

    def keeping(self: Ledger, hold: Any, stored: str, data: bytes) -> bytes:
        kept = keep_drawn(self, hold, stored, data)
        if (which, stored) == (STORED, step):
            die()
        return kept

    def settling(*arguments: Any) -> None:
        settle(*arguments)
        if which == SETTLED:
            die()

    Ledger.keep_drawn = keeping  # type: ignore[method-assign]
    Ledger.settle = settling  # type: ignore[method-assign]
    source = source_of(asked["case"])
    run(
        asked["case"],
        corpus_at(Path(asked["path"])),
        ledger,
        asked["engine"],
        progress=lambda line: os.write(notes, f"{line}\n".encode()),  # type: ignore[arg-type]
        randomness=Fatal(source, step) if which == DRAWING else source,
    )


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    import_module(f"dphh.engines.{task['engine']}.host")
    plan_of(task["case"], corpus_at(Path(task["path"])))  # what takes long, once
    for number, point in enumerate(task["points"]):
        ledger = _ledger(Path(task["folder"]), number, point[0])
        child = forked(partial(_run_and_die, task, ledger, *point))
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(f"{task['case']} at {point}: not killed")
