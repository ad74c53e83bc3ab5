"""Seeded releases on Spark Connect, in a process of its own: PySpark has one kind of session there.

`python -m tests.engines.on_connect FOLDER CASE...` writes FOLDER/released.json.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dphh import Corpus, Release
from dphh.testing import SeededRandomness
from tests.engines.recorded_runs import CASES, corpus_of

SEED = 11


def rows_of(release: Release) -> list[Any]:
    """What JSON keeps of a release's table."""
    found = sorted(release.to_arrow().to_pylist(), key=str)
    return list(json.loads(json.dumps(found)))


def frame_of(spark: Any, folder: Path, case: str) -> Corpus:
    corpus_of(folder, CASES[case].rows)
    frame = spark.read.parquet(str(folder / "corpus.parquet"))
    return Corpus(frame, user="who", text="what", as_="list")


def released(spark: Any, folder: Path, case: str) -> list[Any]:
    plan = CASES[case].plan(frame_of(spark, folder, case))
    release = plan.run(engine="spark", randomness=SeededRandomness(SEED))
    assert release.manifest["engine"]["name"] == "spark"
    return rows_of(release)


if __name__ == "__main__":
    folder, cases = Path(sys.argv[1]), sys.argv[2:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert type(spark).__module__ == "pyspark.sql.connect.session"
    found = {case: released(spark, folder, case) for case in cases}
    assert not spark.sql("SHOW VIEWS IN global_temp LIKE 'dphh*'").collect()
    (folder / "released.json").write_text(json.dumps(found))
    spark.stop()
