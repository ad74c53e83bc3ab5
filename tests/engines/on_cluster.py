"""A seeded release on a cluster, one of whose executors is killed in round 2 of a level. The tables
that it had are lost, so the run may fail; then it goes on under its id.

`spark-submit tests/engines/on_cluster.py CORPUS FOLDER` writes FOLDER/released.json.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from dphh import Corpus, EngineError, Ledger, Release, ngrams
from dphh.testing import SeededRandomness

SEED = 25
LOST_IN = "ngrams/forecast, level 2/later round"


class LosesAnExecutor:
    """Kills the executor of the first task that has drawn the noise of round 2, and copies what it
    leaves, which its worker removes when the job ends. The words are those of the seed."""

    is_test = True

    def __init__(self, folder: Path) -> None:
        self.folder, self.seeded = folder, SeededRandomness(SEED)

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        drawn = self.seeded.random_words(count, purpose, keys)
        if purpose == LOST_IN and keys is not None and TaskContext.get() is not None:
            try:
                (self.folder / "lost").touch(exist_ok=False)
            except FileExistsError:
                return drawn
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text()  # above Spark's Python
            executor = int(daemon.rsplit(")", 1)[1].split()[1])
            os.kill(executor, signal.SIGSTOP)
            shutil.copytree(os.environ["SPARK_EXECUTOR_DIRS"], self.folder / "left")
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)
        return drawn


def rows_of(release: Release) -> list[list[Any]]:
    """What JSON keeps of a release: n-grams and their noised sums."""
    return sorted([*map(list, release.to_polars().select("tokens", "score").rows())])


def released(corpus: Corpus, ledger: Path, engine: str, randomness: Any) -> Release:
    plan = ngrams(corpus, max_n=3, epsilon=20, delta=1e-3, max_items=10, spurious=0.5)
    book = Ledger(ledger, create=not ledger.exists())
    return plan.run(ledger=book, engine=engine, run_id="cut short", randomness=randomness)


if __name__ == "__main__":
    path, folder = sys.argv[1], Path(sys.argv[2])
    spark = SparkSession.builder.appName("dphh's tests").getOrCreate()
    corpus, ledger = Corpus(path, user="who", text="what"), folder / "ledger.sqlite"
    randomness = LosesAnExecutor(folder)
    try:
        release = released(corpus, ledger, "spark", randomness)
    except EngineError:
        release = released(corpus, ledger, "spark", randomness)
    (folder / "released.json").write_text(json.dumps(rows_of(release)))
    spark.stop()
