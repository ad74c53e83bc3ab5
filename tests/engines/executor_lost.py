"""A run on executors that are processes of their own, one of which is killed while it draws noise.

`python -m tests.engines.executor_lost CORPUS FOLDER` writes what it saw to FOLDER.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyspark
from pyspark.sql import SparkSession

from dphh import Corpus
from dphh.engines.spark.run import SparkRun
from dphh.udfs.draws.randomness import SystemRandomness
from tests.conftest import HERE, SPARK_JAVA
from tests.engines.cut_short import run

STEP = "ngrams/level 2"


class LosesItsExecutor:
    """Kills Java, from a worker of it that has drawn a level's noise, the first time anywhere."""

    is_test = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def words(self, count: int, purpose: str, keys: Any = None) -> Any:
        drawn = SystemRandomness().words(count, purpose, keys)
        from pyspark import TaskContext

        if purpose == STEP and TaskContext.get() is not None:
            try:
                (self.folder / "killed").touch(exist_ok=False)
            except FileExistsError:
                return drawn
            os.kill(_parent(os.getppid()), signal.SIGKILL)  # above a worker is its daemon
            time.sleep(60)
        return drawn


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def main(corpus: str, folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executorEnv.PYTHONPATH", str(HERE))
        .config("spark.executor.extraJavaOptions", SPARK_JAVA)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    tables: list[dict[str, int]] = []
    fetch = SparkRun.fetch

    def also_from_its_files(self: Any, name: str, **parameters: Any) -> Any:
        found = fetch(self, name, **parameters)
        if name == "released":
            path = f"{self._path}/{self._written['noised']}/*.parquet".removeprefix("file://")
            stands = pl.read_parquet(path).filter(pl.col("noisy") >= parameters["threshold"])
            tables.append({str(key): noisy for key, noisy in stands.rows()})
            pairs = zip(found["key"].to_pylist(), found["noisy"].to_pylist(), strict=True)
            assert tables[-1] == {str(key): noisy for key, noisy in pairs}
        return found

    SparkRun.fetch = also_from_its_files  # type: ignore[method-assign]
    release = run(
        "ngrams",
        Corpus(corpus, user="who", text="what"),
        folder / "ledger.sqlite",
        "spark",
        randomness=LosesItsExecutor(folder),
    )
    stands = [sorted(table.values()) for table in tables]
    rows = release.to_polars()
    released = [
        sorted(int(score * 1024) for score in rows.filter(pl.col("level") == level)["score"])
        for level in (1, 2, 3)
    ]
    found = {"killed": (folder / "killed").exists(), "stands": stands, "released": released}
    (folder / "found.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
