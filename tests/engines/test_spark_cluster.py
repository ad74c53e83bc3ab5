"""On a cluster of its own: a job that is submitted, and a worker that is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from dphh import Corpus, Ledger, Release
from dphh.testing import SeededRandomness
from tests.conftest import HERE
from tests.engines.cut_short import run
from tests.engines.on_cluster import SEED, rows_of
from tests.engines.standalone import Cluster

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
    assert [run.state for run in Ledger(tmp_path / "ledger.sqlite").runs()] == ["settled"]
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
    assert [run.state for run in Ledger(tmp_path / "ledger.sqlite").runs()] == ["settled"]
    assert not [*(cluster.folder / "shared").iterdir()]
    left = [each for each in cluster.folder.rglob("*") if each.is_file()]
    assert not [each for each in left if SENTINEL.encode() in each.read_bytes()]
