"""On a cluster of its own: a job that is submitted, a worker that is lost, a user of many rows; and
executors that cannot run dphh, or that see other folders, each of which is told before payment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dphh import Corpus, Release
from dphh.testing import SeededRandomness
from tests.conftest import HERE, full
from tests.engines.cut_short import run
from tests.engines.killed_often import state
from tests.engines.on_cluster import SEED, rows_of
from tests.engines.standalone import Cluster, seen_by

pytestmark = [
    pytest.mark.usefixtures("spark"),
    pytest.mark.on_spark,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
]
JOB = str(HERE / "tests" / "engines" / "on_cluster.py")
#: In every text of the corpora here, so that whoever left any of it behind has left this.
SENTINEL = "sentinelword"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Iterator[Cluster]:
    """One for all tests, and for as long as they run: each JVM takes seconds to start."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def shared(cluster: Cluster) -> dict[str, str]:
    return {"spark.dphh.folder": (cluster.folder / "shared").as_uri()}


def on_duckdb(path: Path, folder: Path) -> list[list[object]]:
    corpus = Corpus(str(path), user="who", text="what")
    ledger, randomness = folder / "duckdb.sqlite", SeededRandomness(SEED)
    return rows_of(run("ngrams-forecast", corpus, ledger, "duckdb", randomness=randomness))


def test_the_example_job_runs_from_another_folder(cluster, shared, tmp_path):
    rows = [(user, f"good book w{user % 3}") for user in range(2000)]
    path = tmp_path / "reviews.parquet"
    pl.DataFrame(rows, schema=["author", "body"], orient="row").write_parquet(path)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    cluster.submit(
        str(HERE / "examples" / "spark_submit_job.py"),
        f"parquet:{path}", "author", "body", "--max-n", "2", "--epsilon", "8", "--delta", "1e-6",
        "--ledger", str(tmp_path / "ledger.sqlite"), "--out", str(tmp_path / "release"),
        cwd=elsewhere, conf=shared,
    )  # fmt: skip
    assert {("good",), ("book",), ("good", "book")} <= {
        tuple(ngram) for ngram in Release.load(tmp_path / "release").to_polars()["tokens"]
    }
    assert state(tmp_path / "ledger.sqlite")[:2] == ("ok", ["settled"])
    assert not [*elsewhere.iterdir()]
    assert not [*(cluster.folder / "shared").iterdir()]


def test_a_worker_lost_in_round_2_changes_nothing(cluster, shared, tmp_path):
    """The release is DuckDB's under the same seed, paid for once. Shuffled rows that the dead
    worker leaves nobody can read: they are encrypted, and not compressed here, so that it shows."""
    rows = [
        (user, f"{SENTINEL} w{user % n} w{user % (n + 1)}") for n in range(1, 9)
        for user in range(400)
    ]  # fmt: skip
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    plainly = {"spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false"}
    before = cluster.living_workers()
    try:
        cluster.submit(
            JOB, str(path), str(tmp_path), "lose",
            cwd=tmp_path, conf={**shared, **plainly},
        )  # fmt: skip
        assert (tmp_path / "lost").exists()
        assert cluster.living_workers() == before - 1
    finally:
        while cluster.living_workers() < before:
            cluster.add_worker()
    released = json.loads((tmp_path / "released.json").read_text())
    assert released == on_duckdb(path, tmp_path)
    assert any(len(ngram) == 2 for ngram, _ in released)
    assert state(tmp_path / "ledger.sqlite")[:2] == ("ok", ["settled"])
    assert not [*(cluster.folder / "shared").iterdir()]
    left = [each for each in cluster.folder.rglob("*") if each.is_file()]
    assert not [each for each in left if SENTINEL.encode() in each.read_bytes()]


def test_one_user_of_very_many_rows_beside_others(cluster, shared, tmp_path):
    """5,000,000 rows of one user beside 100,000 others with DPHH_FULL=1, fewer of both without:
    what is released is what DuckDB releases."""
    mine, others = (5_000_000, 100_000) if full() else (200_000, 4_000)
    words = np.random.default_rng(25).zipf(1.5, mine) % 5_000
    texts = np.char.add("w", words.astype(str))
    theirs = [f"the w{user % 7}" for user in range(others)]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(
        {"who": [0] * mine + list(range(1, others + 1)), "what": [*texts.tolist(), *theirs]}
    ).write_parquet(path)
    cluster.submit(JOB, str(path), str(tmp_path), cwd=tmp_path, conf=shared)
    released = json.loads((tmp_path / "released.json").read_text())
    assert released == on_duckdb(path, tmp_path)
    assert [["the", "w1"]] in [[ngram] for ngram, _ in released]
    assert not [*(cluster.folder / "shared").iterdir()]


# Executors that are refused

#: A cluster's machine, told apart from the driver's by what it has mounted.
_MOUNTS = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [(user, f"w{user % 3}") for user in range(600)]
    corpus = tmp_path / "c.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(corpus)
    return corpus


def other_python() -> str | None:
    """Of another version, found beside this one or on the PATH."""
    for minor in (10, 12, 13, 14):
        name = f"python3.{minor}"
        beside = [
            *Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/{name}"),
            Path("/usr/bin", name),
        ]
        for found in beside:
            if minor != sys.version_info.minor and found.exists():
                return str(found)
    return None


def shadowing(folder: Path, module: str, text: str) -> str:
    """A Python that finds another module of this name."""
    shadows = folder / f"shadows-{module}"
    shadows.mkdir()
    (shadows / f"{module}.py").write_text(text)
    program = folder / f"python-{module}"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{shadows}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    return str(program)


def test_workers_that_cannot_run_dphh_are_told_before_payment(path, tmp_path):
    gone = "raise ModuleNotFoundError(\"No module named 'duckdb'\", name='duckdb')"
    pythons = {
        "absent": str(tmp_path / "no-python"),
        "lacking": shadowing(tmp_path, "duckdb", gone),
        "without": shadowing(
            tmp_path, "dphh", "raise ModuleNotFoundError(\"No module named 'dphh'\", name='dphh')"
        ),
    }
    if other := other_python():
        pythons["other"] = other
    asked = [f"{name}={python}" for name, python in pythons.items()]
    refused = seen_by(tmp_path, "workers", *asked, cwd=tmp_path)
    assert refused.pop("runs") == 0
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    for told in refused.values():
        assert re.search(rf"UsageError: engine: .* to a Python {re.escape(here)} that has it", told)
    assert f'cannot run dphh (Cannot run program "{tmp_path}/no-python")' in refused["absent"]
    assert "(No module named 'duckdb')" in refused["lacking"]
    assert "(No module named 'dphh" in refused["without"]
    if other:
        assert "(different version: 3." in refused["other"]


@pytest.fixture
def apart(tmp_path: Path) -> Cluster:
    """A cluster whose one worker has a folder of its own where the driver's is."""
    if os.name != "posix" or subprocess.run([*_MOUNTS, "/mnt", "true"], check=False).returncode:
        pytest.skip("needs the right to mount")
    (folder := tmp_path / "cluster").mkdir()
    return Cluster(folder, workers=0)


def test_a_folder_that_executors_do_not_see_is_told_before_payment(apart, path, tmp_path):
    try:
        apart.add_worker(*_MOUNTS, str(apart.folder / "shared"))
        with pytest.raises(AssertionError) as failed:
            apart.submit(
                str(HERE / "examples" / "spark_submit_job.py"), f"parquet:{path}", "who", "what",
                "--ledger", str(tmp_path / "ledger.sqlite"), "--out", str(tmp_path / "release"),
                cwd=tmp_path, conf={"spark.dphh.folder": (apart.folder / "shared").as_uri()},
            )  # fmt: skip
    finally:
        apart.close()
    told = r"spark.dphh.folder: executors wrote 64 rows below file:/\S+, and 0 of them were found"
    assert re.search(told, str(failed.value))
    assert not [*(apart.folder / "shared").iterdir()]
