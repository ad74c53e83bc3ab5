"""A run whose process is killed, anywhere, comes to one release: no level is drawn twice."""

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
from dphh.testing import SeededRandomness
from dphh.udfs.noise.randomness import SystemRandomness
from tests.conftest import full
from tests.engines.cut_short import DRAWING, EVERYBODY, ROOT, RUN, SETTLED, STORED, killed, said
from tests.engines.cut_short import run as run_case
from tests.engines.recorded_runs import (
    CASES,
    LADDER,
    corpus_at,
    corpus_of,
    is_of,
    ran,
    recorded,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
#: Processes and the ledger are every engine's: on one of them every day.
ON_POLARS = pytest.mark.parametrize(
    "engine", ["polars", "spark", pytest.param("duckdb", marks=pytest.mark.slow)]
)
#: Two rounds of words find them all, and two longer lengths follow.
FORECAST = "forecast, three rounds of words"
#: Of every way to draw. One every day, the others in the slow line; on Spark a few.
EVERY_DAY, FEW = "dpne", ("sips", "dpne", FORECAST, "trie")
SLOW = ("items", "sips", "adaptive", "auto, rounds", FORECAST, "trie")


def stored_levels(ledger: Path) -> dict[str, Any]:
    """The rows that stand in an unfinished run's ledger, read past dphh."""
    with closing(sqlite3.connect(ledger)) as con:
        found = con.execute(
            "SELECT name, drawn.data FROM drawn JOIN runs ON run = sequence "
            "WHERE state <> 'settled' ORDER BY name"
        ).fetchall()
    return {name: pq.read_table(io.BytesIO(data)) for name, data in found}


class NoneOf:
    """The system's words, and none for a step that stands already."""

    is_test = False

    def __init__(self, standing: Iterable[str]) -> None:
        self.standing = [*standing]

    def random_words(self, count: int, purpose: str, keys: Any = None) -> Any:
        assert not any(is_of(purpose, step) for step in self.standing), f"{purpose} is drawn again"
        return SystemRandomness().random_words(count, purpose, keys)


@pytest.mark.parametrize(
    "case", [EVERY_DAY, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_a_run_killed_anywhere_goes_on_and_draws_no_level_twice(
    engine: str, case: str, tmp_path: Path
) -> None:
    """In the draw of each step, after it, and at the end."""
    if (engine == "spark" and case not in FEW) or (engine == "polars" and not full()):
        pytest.skip("on DuckDB, and on Polars with DPHH_FULL=1")
    steps = ran("polars", CASES[case], tmp_path).asked.steps
    points = [(which, step) for step in steps for which in (DRAWING, STORED)]
    path = tmp_path / "corpus.parquet"
    for ledger in killed(case, path, engine, [*points, (SETTLED, "")], tmp_path):
        standing = {} if "settled" in ledger.name else stored_levels(ledger)
        before = said(ledger)
        after: list[str] = []
        randomness = NoneOf(standing)
        release = run_case(
            case, corpus_at(path), ledger, engine, progress=after.append, randomness=randomness
        )
        shown = [line for line in before if line.startswith("level")]
        now = [line for line in after if line.startswith("level")]
        assert now[: len(shown)] == shown if "settled" not in ledger.name else not now
        (entry,) = Ledger(ledger).runs()
        assert entry.state == "settled"
        assert len(Ledger(ledger).runs()) == 1
        assert Ledger(ledger).release(RUN).manifest == release.manifest
        assert stored_levels(ledger) == {}


#: Places within the one draw of all levels above words: rounds of either length, and late ones.
WITHIN_LADDER = [f"{LADDER}, {where}" for where in (
    "level 2/round 1", "level 2/later round", "level 3/users", "level 3/later round",
    "late purses", "level 2, late", "level 3, late/later round",
)]  # fmt: skip


@ON_POLARS
def test_a_ladder_that_is_killed_anywhere_shows_and_stores_nothing_of_it(
    engine: str, tmp_path: Path
) -> None:
    """Purses cannot be made again from what was stored: so all of it is drawn once more, with full
    purses, and nothing of the first draw was seen."""
    corpus = corpus_of(tmp_path, CASES[FORECAST].rows)
    places = WITHIN_LADDER if full() else WITHIN_LADDER[::3]
    points = [(DRAWING, place) for place in places]
    for ledger in killed(FORECAST, tmp_path / "corpus.parquet", engine, points, tmp_path):
        assert [*stored_levels(ledger)] == ["ngrams/words"]
        shown = [line for line in said(ledger) if line.startswith("level")]
        assert shown and all(line.startswith("level 1") for line in shown)
        with recorded("polars") as asked:
            release = run_case(
                FORECAST, corpus, ledger, engine, randomness=NoneOf({"ngrams/words"})
            )
        assert asked.steps == [LADDER]
        if engine == "polars":
            assert len(asked.purses) == 1 and asked.purses[0] == asked.rounds[0].first.full
        assert {2, 3} <= {*release.to_polars()["level"].to_list()}
        (entry,) = Ledger(ledger).runs()
        assert entry.state == "settled"


@ON_POLARS
def test_every_user_keeps_the_sequence_that_was_drawn_before(engine: str, tmp_path: Path) -> None:
    """Level 1 shows what each of 200 users drew of four; level 2 is of those same sequences."""
    rows = [(user, [f"{user} {choice}", "end"]) for user in range(200) for choice in "abcd"]
    corpus, point = corpus_of(tmp_path, rows), (STORED, "trie/level 1")
    (ledger,) = killed(EVERYBODY, tmp_path / "corpus.parquet", engine, [point], tmp_path)
    standing = stored_levels(ledger)["trie/level 1"]
    found = run_case(EVERYBODY, corpus, ledger, engine).to_polars()
    drawn = set(standing.column("token").to_pylist())
    assert len(drawn) == 200
    assert len({token[-1] for token in drawn}) == 4
    second = found.filter(pl.col("level") == 2)["tokens"].to_list()
    assert {tokens[0] for tokens in second} == drawn


AT_ONCE = """
import os, sys, time
from pathlib import Path
import dphh.run as spine
from dataclasses import replace
from dphh.registry import VERBS
from tests.engines.cut_short import forked, run
from tests.engines.recorded_runs import corpus_at
engine, folder = sys.argv[1], Path(sys.argv[2])
rows_as_parquet, levels = spine.rows_as_parquet, VERBS["ngrams"].levels
def late(table):
    # Each has drawn this level before any of them stores it.
    if not (folder / f"{os.getpid()} has drawn").exists():
        (folder / f"{os.getpid()} has drawn").touch()
        until = time.monotonic() + 250
        while len(list(folder.glob("*has drawn"))) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    return rows_as_parquet(table)
def seen(*arguments):
    for step in levels(*arguments):
        path = folder / f"{os.getpid()} saw level {step.level.level}"
        path.write_text(repr(step.rows.to_pylist()))
        yield step
spine.rows_as_parquet, VERBS["ngrams"] = late, replace(VERBS["ngrams"], levels=seen)
def work():
    corpus = corpus_at(folder / "corpus.parquet")
    release = run("dpne", corpus, folder / "ledger.sqlite", engine)
    (folder / f"{os.getpid()} released").write_text(repr(release.to_arrow().to_pylist()))
children = [forked(work) for _ in range(3)]
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


@ON_POLARS
def test_processes_with_one_run_id_come_to_one_release(engine: str, tmp_path: Path) -> None:
    corpus_of(tmp_path, CASES["dpne"].rows)
    command = [sys.executable, "-c", AT_ONCE, engine, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=250)
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


def test_a_changed_corpus_cannot_go_on(corpus: Corpus, ledger: Ledger) -> None:
    """What is stored of its first rows would stand beside what is drawn of others."""
    cut_short(corpus, ledger)
    rows = pl.read_parquet(corpus.where[0])
    rows[:-1].write_parquet(corpus.where[0])
    with pytest.raises(UsageError, match="cannot continue: its data changed since it began"):
        items(corpus, **ASK).run(ledger=ledger, run_id=RUN)
    lines: list[str] = []
    elsewhere = Corpus(rows.sample(fraction=1, shuffle=True), user="who", text="what")
    release = items(elsewhere, **ASK).run(ledger=ledger, engine="duckdb", progress=lines.append)
    assert "going on with a run that did not finish, attempt 2" in lines
    assert (release.run_id, len(release)) == (RUN, 3)


def test_no_other_randomness_or_dphh_goes_on(
    corpus: Corpus, ledger: Ledger, no_noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_short(corpus, ledger, randomness=no_noise)
    changed = r"its randomness changed .*then a test's; now operating system"
    with pytest.raises(UsageError, match=changed):
        items(corpus, **ASK).run(ledger=ledger, run_id=RUN)
    monkeypatch.setattr("dphh.run.version", lambda _: "9.9")
    with pytest.raises(UsageError, match=r"its dphh changed .*now 9\.9"):
        items(corpus, **ASK).run(ledger=ledger, run_id=RUN, randomness=no_noise)


# What becomes of the files


def test_a_corpus_that_goes_once_it_was_read_is_not_missed(engine: str, tmp_path: Path) -> None:
    """Rows are read once: whatever becomes of the files later changes nothing in a run."""
    corpus = corpus_of(tmp_path, CASES[FORECAST].rows)

    def released(gone: bool) -> Any:
        def remove(line: str) -> None:
            if gone and line.startswith("level"):
                (tmp_path / "corpus.parquet").unlink(missing_ok=True)

        ledger, seed = tmp_path / f"{gone}.sqlite", SeededRandomness(5)
        release = run_case(FORECAST, corpus, ledger, engine, randomness=seed, progress=remove)
        return release.to_arrow()

    stayed, went = released(gone=False), released(gone=True)
    assert not (tmp_path / "corpus.parquet").exists()
    assert went == stayed


@pytest.mark.parametrize("how", ["cut short", "another's rows"])
def test_a_corpus_that_is_written_while_it_is_read_ends_in_one_of_two_ways(
    engine: str, how: str, tmp_path: Path
) -> None:
    """A release of the rows that were read, or an error of ours that quotes none; paid once."""
    corpus, ledger = corpus_of(tmp_path, CASES[FORECAST].rows), tmp_path / "ledger.sqlite"
    other = pl.DataFrame({"who": [1] * 9, "what": [["secret", "nine"]] * 9})
    path, changed = tmp_path / "corpus.parquet", []

    def change(line: str) -> None:
        if not line.startswith("reading"):
            return
        changed.append(line)
        if how == "cut short":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        else:
            other.write_parquet(path)

    try:
        release = run_case(FORECAST, corpus, ledger, engine, progress=change)
    except DphhError as problem:
        assert "secret" not in str(problem) and problem.__context__ is None
    else:
        assert "secret" not in str(release.to_arrow())  # of one user: below every threshold
    (entry,) = Ledger(ledger).runs()
    assert changed and entry.state in ("settled", "failed")
