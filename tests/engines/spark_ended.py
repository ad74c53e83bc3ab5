"""A run whose Java is killed while it draws, and the next run of the same process.

`python -m tests.engines.spark_ended FOLDER` writes to FOLDER/said the first run's error, and of
what type the second's result is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from dphh import Corpus, EngineError, items
from dphh.engines.spark.run import SparkRun


def main(folder: Path) -> None:
    corpus = Corpus(folder / "c.parquet", user="who", text="what")
    plan, ledger = items(corpus, epsilon=1.0, delta=1e-6), folder / "ledger.sqlite"
    write = SparkRun.write

    def write_without_java(self: Any, table: str, rows: Any) -> None:
        gateway: Any = SparkContext._gateway
        gateway.proc.kill()
        gateway.proc.wait()
        write(self, table, rows)

    SparkRun.write = write_without_java  # type: ignore[method-assign]
    try:
        plan.run(engine="spark", ledger=ledger, run_id="ended", threads=1)
        said = "nothing"
    except EngineError as problem:
        said = " ".join(str(problem).split())
    SparkRun.write = write  # type: ignore[method-assign]
    release = plan.run(engine="spark", ledger=ledger, run_id="ended", threads=1)
    (folder / "said").write_text(f"{said}\n{type(release).__name__}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
