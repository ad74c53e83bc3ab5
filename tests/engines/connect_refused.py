"""Runs on a session of Spark Connect, whose server this process starts.

`python -m tests.engines.connect_refused FOLDER` writes to FOLDER/said how many were refused.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from dphh import Corpus, Ledger, UsageError, items


def main(folder: Path) -> None:
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    path, refused = folder / "c.parquet", 0
    frame = spark.read.parquet(str(path))
    for source in (frame, path):
        plan = items(Corpus(source, user="who", text="what"), epsilon=1.0, delta=1e-6)
        try:
            plan.run(engine="spark")
        except UsageError as problem:
            refused += "found a Spark Connect session" in str(problem)
    (folder / "said").write_text(f"{refused} refused, {len(Ledger().runs())} runs")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os._exit(0)
