"""A process of its own that runs a verb and is killed where a test says, as often as it says.

It imports once and forks for each kill. What the runs print is written at once, so it outlives
them. `python -m tests.engines.cut_short JSON` with what `killed` below passes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dphh
from dphh import Corpus, Ledger, Plan, journal
from dphh.asking.verbs import items, ngrams, trie
from dphh.corpus import as_sequences
from dphh.levels.trie import VoteLevel
from dphh.testing import SeededRandomness
from dphh.udfs.draws.randomness import Randomness, SystemRandomness

RUN = "cut short"
ROOT = Path(__file__).parents[2]
#: Where a run is killed: in the middle of a draw, before and after a level is stored, when it is
#: shown, and around the rest of a run.
DRAWING, DRAWN, STORED, SHOWN = "drawing", "drawn", "stored", "shown"
READING, SETTLED = "reading", "settled"

Asked = Callable[[Corpus], Plan]
VERBS: dict[str, Asked] = {
    "items": lambda corpus: items(corpus, epsilon=2, delta=1e-5, max_items=10, method="gaussian"),
    "items-sips": lambda corpus: items(corpus, epsilon=4, delta=1e-5, max_items=10, method="sips"),
    "items-adaptive": lambda corpus: items(
        corpus, epsilon=4, delta=1e-5, max_items=10, method="adaptive"
    ),
    "items-auto": lambda corpus: items(corpus, epsilon=4, delta=1e-5, max_items=10, method="auto"),
    "ngrams": lambda corpus: ngrams(
        corpus, max_n=3, epsilon=8, delta=1e-5, max_items=10, spurious=0.5, method="dpne"
    ),
    #: Two rounds of words find them all, and two longer lengths follow.
    "ngrams-forecast": lambda corpus: ngrams(
        corpus, max_n=3, epsilon=20, delta=1e-3, max_items=10, spurious=0.5
    ),
    "ngrams-single": lambda corpus: ngrams(
        corpus, max_n=3, epsilon=8, delta=1e-5, max_items=10, pruning="single", method="dpne"
    ),
    "trie": lambda corpus: trie(corpus, epsilon=8, delta=1e-3, max_length=4),
    "trie-batch": lambda corpus: trie(
        corpus, epsilon=8, delta=1e-3, max_length=3, accounting="paper", users=2_000
    ),
    #: Everybody votes, and one vote is enough, so that it shows which sequence each user drew.
    "trie-all": lambda corpus: of_levels(
        trie(corpus, epsilon=8, delta=1e-3, max_length=2),
        (VoteLevel(1, 2**63, 1), VoteLevel(2, 2**63, 1)),
    ),
}


def of_levels(plan: Plan, levels: tuple[VoteLevel, ...]) -> Plan:
    return replace(plan, price=replace(plan.price, levels=levels))


class AllHeads:
    """Coins show heads; all else is the system's. It is no test's, lest words follow from seeds."""

    is_test = False

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        if purpose.startswith("trie/level"):
            return np.zeros(count, dtype=np.uint64)
        return SystemRandomness().words(count, purpose, keys)


class Fatal:
    """Kills the run where it draws words for a purpose, in whatever process of it that happens."""

    def __init__(self, source: Randomness, purpose: str) -> None:
        self.source = source
        self.purpose = purpose
        self.run = os.getpid()

    @property
    def is_test(self) -> bool:
        return self.source.is_test

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        if purpose.startswith(self.purpose):
            os.kill(self.run, signal.SIGKILL)
            time.sleep(60)  # a worker goes with the run
        return self.source.words(count, purpose, keys)


def plan_of(verb: str, corpus: Corpus) -> Plan:
    plan = VERBS[verb](corpus)
    return replace(plan, corpus=as_sequences(corpus, 1)) if plan.verb == "trie" else plan


def source_of(verb: str, seed: int | None) -> Randomness:
    if verb == "trie-all":
        return AllHeads()
    return SystemRandomness() if seed is None else SeededRandomness(seed)


def run(
    verb: str,
    corpus: Corpus,
    ledger: Path,
    engine: str,
    *,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
    randomness: Randomness | None = None,
) -> dphh.Release:
    return plan_of(verb, corpus).run(
        ledger=ledger,
        engine=engine,
        run_id=RUN,
        progress=progress,
        randomness=randomness or source_of(verb, seed),
    )


def killed(
    verb: str, corpus: Corpus, engine: str, points: Sequence[tuple[str, int]], folder: Path,
    seed: int | None = None,
) -> list[Path]:  # fmt: skip
    """Run the verb once for each point and kill it there: (which, how many levels before). The
    ledgers that are left; `said` gives what a run had shown."""
    asked = {
        "verb": verb,
        "corpus": corpus.to_json() | {"name": None},
        "engine": engine,
        "points": list(points),
        "folder": str(folder),
        "seed": seed,
    }
    subprocess.run(
        [sys.executable, "-m", "tests.engines.cut_short", json.dumps(asked)],
        cwd=ROOT,
        check=True,
        timeout=900 if engine == "spark" else 300,
    )
    return [folder / f"{which}-{levels}.sqlite" for which, levels in points]


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


def _run_and_die(asked: dict[str, Any], which: str, levels: int) -> None:
    ledger = Path(asked["folder"]) / f"{which}-{levels}.sqlite"
    notes = os.open(ledger.with_suffix(".said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    steps = 0

    def shown(line: str) -> None:
        os.write(notes, f"{line}\n".encode())
        if which == READING and line.startswith("reading"):
            die()
        if which == SHOWN and line.startswith(f"level {levels}:"):
            die()

    def counted(after: bool) -> None:
        nonlocal steps
        steps += not after
        if steps == levels and which == (STORED if after else DRAWN):
            die()

    as_stored, keep_level, settle = journal.as_stored, Ledger.keep_level, Ledger.settle

    def storing(table: Any) -> bytes:
        counted(after=False)
        return as_stored(table)

    def keeping(*arguments: Any) -> bytes:
        kept = keep_level(*arguments)
        counted(after=True)
        return kept

    def settling(*arguments: Any) -> None:
        settle(*arguments)
        if which == SETTLED:
            die()

    journal.as_stored = storing
    Ledger.keep_level = keeping  # type: ignore[method-assign]
    Ledger.settle = settling  # type: ignore[method-assign]
    source = source_of(asked["verb"], asked["seed"])
    if which == DRAWING:
        source = Fatal(source, _purpose(asked["verb"], levels))
    corpus = dphh.corpus.corpus_from_json(asked["corpus"])
    run(asked["verb"], corpus, ledger, asked["engine"], progress=shown, randomness=source)


#: What each of its draws is killed in: among the rounds of words, and in either round of a level.
_IN_FORECAST = (
    "ngrams/words/round 2",
    "ngrams/forecast, level 2/round 2",
    "ngrams/forecast, level 3/round 1",
)


def _purpose(verb: str, level: int) -> str:
    """What the words of one level are drawn for."""
    if verb == "items-auto" and level == 1:
        return "items/choice"
    if verb.startswith("items"):
        return f"items/round {level}"
    if verb == "ngrams-forecast":
        return _IN_FORECAST[level - 1]
    return f"{verb.partition('-')[0]}/level {level}"


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    import_module(f"dphh.engines.{task['engine']}.host")
    plan_of(task["verb"], dphh.corpus.corpus_from_json(task["corpus"]))  # what takes long, once
    for point in task["points"]:
        child = forked(lambda point=point: _run_and_die(task, *point))  # type: ignore[misc]
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(f"{task['verb']} at {point}: not killed")
