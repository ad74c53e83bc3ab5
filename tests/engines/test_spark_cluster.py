"""On a standalone cluster of two workers: a job that is submitted, and an executor that is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from dphh import Corpus, Ledger, Release
from dphh.testing import SeededRandomness
from tests.conftest import HERE, SPARK_JAVA
from tests.engines.on_cluster import SEED, released, rows_of
from tests.engines.standalone import BIN, standalone

pytestmark = [
    pytest.mark.usefixtures("spark"),
    pytest.mark.on_spark,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
]
JOB = str(HERE / "tests" / "engines" / "on_cluster.py")
#: In every text of the corpora here, so that whoever left any of it behind has left this.
SENTINEL = "sentinelword"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a cluster, and all that it and its jobs write, is."""
    found = tmp_path_factory.mktemp("cluster")
    for name in ("local", "conf"):
        (found / name).mkdir(mode=0o700)
    lines = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.io.encryption.enabled": "true",
        # So that what is left behind would show.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(found / "warehouse"),
        "spark.driver.extraJavaOptions": SPARK_JAVA,
        "spark.executor.extraJavaOptions": SPARK_JAVA,
    }
    with standalone(found, "1g") as lines["spark.master"]:
        (found / "conf" / "spark-defaults.conf").write_text(
            "".join(f"{setting} {value}\n" for setting, value in lines.items())
        )
        yield found


def submit(folder: Path, program: str, *arguments: str, cwd: Path) -> None:
    """By `spark-submit`; what it printed is told where it fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [BIN / "spark-submit", program, *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]


def on_duckdb(path: Path, folder: Path) -> list[list[object]]:
    corpus = Corpus(str(path), user="who", text="what")
    ledger, randomness = folder / "duckdb.sqlite", SeededRandomness(SEED)
    return rows_of(released(corpus, ledger, "duckdb", randomness))


def test_the_example_job_runs_from_another_folder(folder, tmp_path):
    rows = [(user, f"good book w{user % 3}") for user in range(2000)]
    path = tmp_path / "reviews.parquet"
    pl.DataFrame(rows, schema=["author", "body"], orient="row").write_parquet(path)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    Ledger(tmp_path / "ledger.sqlite", create=True)
    submit(
        folder, str(HERE / "examples" / "spark_submit_job.py"),
        f"parquet:{path}", "author", "body", "--max-n", "2", "--epsilon", "8", "--delta", "1e-6",
        "--ledger", str(tmp_path / "ledger.sqlite"), "--out", str(tmp_path / "release"),
        cwd=elsewhere,
    )  # fmt: skip
    assert {("good",), ("book",), ("good", "book")} <= {
        tuple(ngram) for ngram in Release.load(tmp_path / "release").to_polars()["tokens"]
    }
    assert [run.state for run in Ledger(tmp_path / "ledger.sqlite").runs()] == ["settled"]
    assert not [*elsewhere.iterdir()]


def test_a_run_that_loses_an_executor_in_round_2_goes_on_under_its_id(folder, tmp_path):
    """The release is DuckDB's under the same seed, paid for once. Rows that the dead executor
    leaves, shuffled or kept, are encrypted."""
    rows = [
        (user, f"{SENTINEL} w{user % n} w{user % (n + 1)}") for n in range(1, 9)
        for user in range(400)
    ]  # fmt: skip
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    submit(folder, JOB, str(path), str(tmp_path), cwd=tmp_path)
    assert (tmp_path / "lost").exists()
    released = json.loads((tmp_path / "released.json").read_text())
    assert released == on_duckdb(path, tmp_path)
    assert any(len(ngram) == 2 for ngram, _ in released)
    assert [run.state for run in Ledger(tmp_path / "ledger.sqlite").runs()] == ["settled"]
    left = [each for each in (tmp_path / "left").rglob("*") if each.is_file()]
    assert left
    left += [each for each in folder.rglob("*") if each.is_file()]
    assert not [each for each in left if SENTINEL.encode() in each.read_bytes()]
