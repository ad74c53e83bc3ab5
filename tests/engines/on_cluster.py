"""A seeded release on a cluster, one of whose workers may be killed in round 2 of a level.

`spark-submit tests/engines/on_cluster.py CORPUS FOLDER [lose]` writes FOLDER/released.json.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from dphh import Corpus, Release
from dphh.testing import SeededRandomness
from tests.engines.cut_short import run

SEED = 25
LOST_IN = "ngrams/forecast, level 2/round 2"


class LosesAWorker:
    """Kills a worker and its executor, from a task of it that has drawn the noise of round 2, the
    first time anywhere. The words are those of the seed."""

    is_test = True

    def __init__(self, folder: Path) -> None:
        self.folder, self.seeded = folder, SeededRandomness(SEED)

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        drawn = self.seeded.words(count, purpose, keys)
        if purpose == LOST_IN and keys is not None and TaskContext.get() is not None:
            try:
                (self.folder / "lost").touch(exist_ok=False)
            except FileExistsError:
                return drawn
            executor = _parent(os.getppid())  # above Spark's Python is its daemon
            worker = _parent(executor)
            for process in (worker, executor):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(60)
        return drawn


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def rows_of(release: Release) -> list[list[Any]]:
    """What JSON keeps of a release: n-grams and their noised sums."""
    return sorted([*map(list, release.to_polars().select("tokens", "score").rows())])


def main(path: str, folder: Path, lose: bool) -> None:
    spark = SparkSession.builder.appName("dphh's tests").getOrCreate()
    corpus = Corpus(path, user="who", text="what")
    randomness = LosesAWorker(folder) if lose else SeededRandomness(SEED)
    ledger = folder / "ledger.sqlite"
    release = run("ngrams-forecast", corpus, ledger, "spark", randomness=randomness)
    (folder / "released.json").write_text(json.dumps(rows_of(release)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:] == ["lose"])
