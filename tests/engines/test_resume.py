"""A run whose process is killed, anywhere, comes to one release: no level is drawn twice."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, DphhError, Ledger, UsageError, items
from dphh.ledger.places import files_state
from dphh.udfs.draws.randomness import SystemRandomness
from tests.conftest import full
from tests.engines.asked import is_of
from tests.engines.cut_short import (
    DRAWING,
    DRAWN,
    READING,
    ROOT,
    RUN,
    SETTLED,
    SHOWN,
    STORED,
    killed,
    said,
)
from tests.engines.cut_short import run as run_verb

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
#: Processes and the ledger are every engine's: on one of them every day.
ON_POLARS = pytest.mark.parametrize(
    "engine", ["polars", "spark", pytest.param("duckdb", marks=pytest.mark.slow)]
)
#: How many draws each verb makes.
DRAWS = {
    "items": 1,
    "items-sips": 3,
    "items-adaptive": 1,
    "items-auto": 2,
    "ngrams": 3,
    "ngrams-forecast": 3,
    "ngrams-single": 3,
    "trie": 4,
    "trie-batch": 3,
}
FEW = ("items-sips", "ngrams", "ngrams-forecast", "trie")


def daily(verbs: Iterable[str]) -> list[Any]:
    """One of them every day, the others in the slow line."""
    slow = pytest.mark.slow
    return [verb if verb == "ngrams" else pytest.param(verb, marks=slow) for verb in verbs]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Corpus]:
    """Items and prefixes of all frequencies, so that chance decides what many of them come to."""
    folder = tmp_path_factory.mktemp("corpora")
    words = [
        (user, f"w{user % n} w{user % (n + 1)} w0") for n in range(1, 9) for user in range(400)
    ]
    letters = "abcdefg"
    spelled = [
        (user, letters[user % n] + letters[user % 3] + letters[user % (n + 1)])
        for n in range(2, 7)
        for user in range(2000)
    ]
    drawn = [(user, [f"{user} {choice}", "end"]) for user in range(200) for choice in "abcd"]
    found = {}
    for name, rows, options in (
        ("words", words, {"text": "what"}),
        ("spelled", spelled, {"item": "what"}),
        ("drawn", drawn, {"item": "what", "as_": "list"}),
    ):
        path = folder / f"{name}.parquet"
        pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
        found[name] = Corpus(path, user="who", **options)  # type: ignore[arg-type]
    return found


def corpus_of(verb: str, corpora: dict[str, Corpus]) -> Corpus:
    if verb == "trie-all":
        return corpora["drawn"]
    return corpora["spelled" if verb.startswith("trie") else "words"]


def points_of(verb: str, engine: str) -> list[tuple[str, int]]:
    """In the middle of each level and after it; with DPHH_FULL=1, wherever a process may be.

    On Spark the first alone: the other places are the driver's, which no engine changes, and each
    of them would start another Java.
    """
    levels = range(1, DRAWS[verb] + 1)
    some = [(which, level) for level in levels for which in (DRAWING, STORED)]
    if not full() or engine == "spark":
        return [*some, (SETTLED, 0)]
    shown = [] if verb in ("items-sips", "items-auto") else [(SHOWN, level) for level in levels]
    return [(READING, 0), *some, *((DRAWN, level) for level in levels), *shown, (SETTLED, 0)]


def stored_levels(ledger: Path) -> dict[str, Any]:
    """The rows that stand in an unfinished run's ledger, read past dphh."""
    with closing(sqlite3.connect(ledger)) as con:
        found = con.execute(
            "SELECT step, data FROM drawn JOIN runs ON run = sequence "
            "WHERE state <> 'settled' ORDER BY step"
        ).fetchall()
    return {step: pq.read_table(io.BytesIO(data)) for step, data in found}


class NoneOf:
    """The system's words, and none for a step that stands already."""

    is_test = False

    def __init__(self, standing: Iterable[str]) -> None:
        self.standing = [*standing]

    def words(self, count: int, purpose: str, keys: Any = None) -> Any:
        assert not any(is_of(purpose, step) for step in self.standing), f"{purpose} is drawn again"
        return SystemRandomness().words(count, purpose, keys)


@pytest.mark.parametrize("verb", daily(DRAWS))
def test_a_run_killed_anywhere_goes_on_and_draws_no_level_twice(
    engine: str, verb: str, corpora: dict[str, Corpus], tmp_path: Path
) -> None:
    if (engine == "spark" and verb not in FEW) or (engine == "polars" and not full()):
        pytest.skip("on DuckDB, and on Polars with DPHH_FULL=1")
    corpus = corpus_of(verb, corpora)
    for ledger in killed(verb, corpus, engine, points_of(verb, engine), tmp_path):
        standing = {} if "settled" in ledger.name else stored_levels(ledger)
        before = said(ledger)
        after: list[str] = []
        release = run_verb(
            verb, corpus, ledger, engine, progress=after.append, randomness=NoneOf(standing)
        )
        shown = [line for line in before if line.startswith("level")]
        now = [line for line in after if line.startswith("level")]
        assert now[: len(shown)] == shown if "settled" not in ledger.name else not now
        (entry,) = Ledger(ledger).runs()
        assert entry.state == "settled"
        assert len(Ledger(ledger).runs()) == 1
        assert Ledger(ledger).release(RUN).manifest == release.manifest
        assert stored_levels(ledger) == {}


@ON_POLARS
def test_every_user_keeps_the_sequence_that_was_drawn_before(
    engine: str, corpora: dict[str, Corpus], tmp_path: Path
) -> None:
    """Level 1 shows what each of 200 users drew of four; level 2 is of those same sequences."""
    corpus = corpora["drawn"]
    (ledger,) = killed("trie-all", corpus, engine, [(SHOWN, 1)], tmp_path)
    standing = stored_levels(ledger)["trie/level 1"]
    found = run_verb("trie-all", corpus, ledger, engine).to_polars()
    drawn = set(standing.column("token").to_pylist())
    assert len(drawn) == 200
    assert len({token[-1] for token in drawn}) == 4
    second = found.filter(pl.col("level") == 2)["tokens"].to_list()
    assert {tokens[0] for tokens in second} == drawn


AT_ONCE = """
import os, sys, time
from pathlib import Path
from dphh import Corpus, journal
from dataclasses import replace
from dphh.registry import VERBS
from tests.engines.cut_short import forked, run
verb, path, engine, folder = sys.argv[1:]
folder = Path(folder)
as_stored, levels = journal.as_stored, VERBS[verb].levels
def late(table):
    # Each has drawn this level before any of them stores it.
    if not (folder / f"{os.getpid()} has drawn").exists():
        (folder / f"{os.getpid()} has drawn").touch()
        until = time.monotonic() + 250
        while len(list(folder.glob("*has drawn"))) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    return as_stored(table)
def seen(*arguments):
    for step in levels(*arguments):
        path = folder / f"{os.getpid()} saw level {step.level.level}"
        path.write_text(repr(step.rows.to_pylist()))
        yield step
journal.as_stored, VERBS[verb] = late, replace(VERBS[verb], levels=seen)
def work():
    corpus = Corpus(path, user="who", text="what")
    release = run(verb, corpus, folder / "ledger.sqlite", engine)
    (folder / f"{os.getpid()} released").write_text(repr(release.to_arrow().to_pylist()))
children = [forked(work) for _ in range(3)]
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


@ON_POLARS
def test_processes_with_one_run_id_come_to_one_release(
    engine: str, corpora: dict[str, Corpus], tmp_path: Path
) -> None:
    corpus = corpora["words"]
    subprocess.run(
        [sys.executable, "-c", AT_ONCE, "ngrams", corpus.where[0], engine, str(tmp_path)],
        cwd=ROOT,
        check=True,
        timeout=250,
    )
    assert len(list(tmp_path.glob("*has drawn"))) == 3  # three drew level 1, and one draw stands
    saw = [{path.read_text() for path in tmp_path.glob(f"*saw level {n}")} for n in (1, 2, 3)]
    assert [len(rows) for rows in saw] == [1, 1, 1]
    assert len(list(tmp_path.glob("*saw level 1"))) == 3
    assert len({path.read_text() for path in tmp_path.glob("*released")}) == 1
    assert [entry.state for entry in Ledger(tmp_path / "ledger.sqlite").runs()] == ["settled"]


# What may not go on


ASK = {"epsilon": 1.0, "delta": 1e-7}


class StopError(Exception):
    pass


def cut_short(corpus: Corpus, ledger: Ledger, **how: Any) -> None:
    """A run that an error of the driver stops when level 1 is shown."""

    def stop(line: str) -> None:
        if line.startswith("level 1"):
            raise StopError

    with pytest.raises(StopError):
        items(corpus, **ASK).run(ledger=ledger, run_id=RUN, progress=stop, **how)


@pytest.fixture
def corpus(written: Any) -> Corpus:
    found: Corpus = written([(user, "the same words") for user in range(200)])
    return found


def test_a_changed_corpus_cannot_go_on(corpus: Corpus, ledger: Ledger, tmp_path: Path) -> None:
    """The ledger keeps what tells the files while it is needed. Beside them, it is no change."""
    everything = Corpus(Path(corpus.where[0]).parent, user="who", text="what")
    cut_short(everything, ledger)
    state = files_state(everything)
    assert state.encode() in ledger.path.read_bytes()
    ledger.export(tmp_path / "runs.csv")
    assert state not in (tmp_path / "runs.csv").read_text()
    path = Path(corpus.where[0])
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(UsageError, match="cannot continue: its files changed since it began"):
        items(everything, **ASK).run(ledger=ledger, run_id=RUN)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    lines: list[str] = []
    release = items(everything, **ASK).run(ledger=ledger, run_id=RUN, progress=lines.append)
    assert "going on with a run that did not finish, attempt 2" in lines
    assert len(release) == 3
    assert state.encode() not in ledger.path.read_bytes()


def test_no_other_request_randomness_or_dphh_goes_on(
    corpus: Corpus, ledger: Ledger, no_noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_short(corpus, ledger, randomness=no_noise)
    with pytest.raises(UsageError, match="another request"):
        items(corpus, epsilon=2.0, delta=1e-7).run(ledger=ledger, run_id=RUN)
    changed = r"its randomness changed .*then a test's; now operating system"
    with pytest.raises(UsageError, match=changed):
        items(corpus, **ASK).run(ledger=ledger, run_id=RUN)
    monkeypatch.setattr("dphh.run.version", lambda _: "9.9")
    with pytest.raises(UsageError, match=r"its dphh changed .*now 9\.9"):
        items(corpus, **ASK).run(ledger=ledger, run_id=RUN, randomness=no_noise)


# What becomes of the files


def some_of(folder: Path) -> Corpus:
    rows = [(user, f"w{user % n} w{user % (n + 1)} w0") for n in range(1, 9) for user in range(400)]
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(folder / "c.parquet")
    return Corpus(folder / "c.parquet", user="who", text="what")


def test_a_corpus_that_goes_once_it_was_read_is_not_missed(engine: str, tmp_path: Path) -> None:
    """Rows are read once: whatever becomes of the files later changes nothing in a run."""
    corpus = some_of(tmp_path)

    def released(gone: bool) -> Any:
        def remove(line: str) -> None:
            if gone and line.startswith("level"):
                (tmp_path / "c.parquet").unlink(missing_ok=True)

        return run_verb(
            "ngrams-forecast", corpus, tmp_path / f"{gone}.sqlite", engine, seed=5, progress=remove
        ).to_arrow()

    stayed, went = released(gone=False), released(gone=True)
    assert not (tmp_path / "c.parquet").exists()
    assert went == stayed


@pytest.mark.parametrize("how", ["cut short", "another's rows"])
def test_a_corpus_that_is_written_while_it_is_read_ends_in_one_of_two_ways(
    engine: str, how: str, tmp_path: Path
) -> None:
    """A release of the rows that were read, or an error of ours that quotes none; paid once."""
    corpus, ledger = some_of(tmp_path), tmp_path / "ledger.sqlite"
    other = pl.DataFrame({"who": ["x"] * 9, "what": ["secret nine"] * 9})
    path, changed = tmp_path / "c.parquet", []

    def change(line: str) -> None:
        if not line.startswith("reading"):
            return
        changed.append(line)
        if how == "cut short":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        else:
            other.write_parquet(path)

    try:
        release = run_verb("ngrams-forecast", corpus, ledger, engine, progress=change)
    except DphhError as problem:
        assert "secret" not in str(problem) and problem.__context__ is None
    else:
        assert "secret" not in str(release.to_arrow())  # of one user: below every threshold
    (entry,) = Ledger(ledger).runs()
    assert changed and entry.state in ("settled", "failed")
