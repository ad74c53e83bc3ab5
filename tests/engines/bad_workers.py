"""Python workers that cannot run dphh, one after the other, on a Spark of this process.

`python -m tests.engines.bad_workers CORPUS FOLDER NAME=PYTHON...` writes FOLDER/refused.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from dphh import Corpus, DphhError, Ledger, items


def main(path: str, folder: Path, pythons: dict[str, str]) -> None:
    refused: dict[str, str | int] = {}
    for name, python in pythons.items():
        os.environ["PYSPARK_PYTHON"] = python
        spark = SparkSession.builder.master("local[1]").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        corpus = Corpus(spark.read.parquet(path), user="who", text="what")
        try:
            items(corpus, epsilon=1.0, delta=1e-6).run()
        except DphhError as problem:
            refused[name] = f"{type(problem).__name__}: {problem}"
        spark.stop()
    refused["runs"] = len(Ledger().runs())
    (folder / "refused.json").write_text(json.dumps(refused))


if __name__ == "__main__":
    given = dict(each.split("=", 1) for each in sys.argv[3:])
    main(sys.argv[1], Path(sys.argv[2]), given)
