"""A seeded release on a cluster, one of whose workers may be killed in round 2 of a level.

`spark-submit tests/engines/on_cluster.py CORPUS FOLDER VERB [lose]` writes FOLDER/released.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dphh import Corpus, Release
from dphh.testing import SeededRandomness
from tests.engines.cut_short import run
from tests.engines.lost_worker import SEED, LosesAWorker


def rows_of(release: Release) -> list[list[Any]]:
    """What JSON keeps of a release: n-grams and their noised sums."""
    return sorted([*map(list, release.to_polars().select("tokens", "score").rows())])


def main(path: str, folder: Path, verb: str, lose: bool) -> None:
    spark = SparkSession.builder.appName("dphh's tests").getOrCreate()
    release = run(
        verb,
        Corpus(path, user="who", text="what"),
        folder / "ledger.sqlite",
        "spark",
        randomness=LosesAWorker(folder) if lose else SeededRandomness(SEED),
    )
    (folder / "released.json").write_text(json.dumps(rows_of(release)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:] == ["lose"])
