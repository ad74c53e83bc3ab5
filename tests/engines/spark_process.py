"""A run on a Spark of this process, with Spark's event log on: what the log says of sizes.

`python -m tests.engines.spark_process FOLDER RUN` writes it to FOLDER/seen.json.
"""

import json
import os
import re
import sys
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import SparkSession

from dphh import Corpus, counts, items, ldp_trie, ngrams
from tests.conftest import HERE, SPARK_JAVA

WORDS, USERS, LENGTH = 600, 3000, 100
#: Of a broadcast, one of the pieces that it is sent in.
_PIECE = re.compile(r"(broadcast_\d+)_piece\d+")


def many_words(folder: Path, **content: str) -> Corpus:
    """Words that many hold, and pairs of them that hardly two do."""
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, WORDS, LENGTH)) for _ in range(USERS)]
    path = folder / "corpus.parquet"
    few = [f"w{user % 20}" for user in range(USERS)]
    pl.DataFrame({"who": range(USERS), "what": texts, "item": few}).write_parquet(path)
    return Corpus(path, user="who", **content)


def spark_that_logs(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(HERE)
    (folder / "events").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.logBlockUpdates.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": SPARK_JAVA,
    }
    builder = SparkSession.builder.master("local[2]")
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def sizes(events: list[dict[str, Any]]) -> dict[str, int]:
    """In bytes: the results of all tasks together, and the largest broadcast."""
    results = sum(
        event["Task Metrics"]["Result Size"]
        for event in events
        if event["Event"] == "SparkListenerTaskEnd"
    )
    pieces: dict[str, int] = {}
    for event in events:
        if event["Event"] == "SparkListenerBlockUpdated":
            block = event["Block Updated Info"]
            held = block["Memory Size"] + block["Disk Size"]
            pieces[block["Block ID"]] = max(held, pieces.get(block["Block ID"], 0))
    broadcasts: Counter[str] = Counter()
    for name, held in pieces.items():
        if piece := _PIECE.fullmatch(name):
            broadcasts[piece[1]] += held
    return {"results": results, "broadcast": max(broadcasts.values())}


#: Half of the words.
PUBLIC = pl.DataFrame({"item": [f"w{i}" for i in range(0, WORDS, 2)], "count": [9] * (WORDS // 2)})
PLANS = {
    "forecast with a prior": partial(
        ngrams, max_n=2, epsilon=8, delta=1e-6, prior=PUBLIC, prior_is_public=True
    ),
    "dpne": partial(ngrams, max_n=2, epsilon=8, delta=1e-6, method="dpne"),
    "adaptive": partial(items, epsilon=8, delta=1e-6, method="adaptive"),
    "counts": partial(counts, of=[f"w{i}" for i in range(WORDS)], epsilon=8, delta=1e-6),
    "ldp_trie": partial(
        ldp_trie, local_epsilon=6, delta=1e-6, users_per_level=700, contributions=2, max_length=4,
        keep=50, character_set=list("w0123456789"), pad=True,
    ),
}  # fmt: skip


def told(folder: Path, run: str) -> dict[str, int]:
    """How many items were released, how many bytes all tasks together gave to the driver, and how
    many the largest broadcast took."""
    warnings.simplefilter("ignore")  # that the log is on is what is wanted here
    read = many_words(folder, **({"item": "item"} if run == "ldp_trie" else {"text": "what"}))
    spark = spark_that_logs(folder)
    release = PLANS[run](read).run(engine="spark")
    spark.stop()
    (log,) = (folder / "events").iterdir()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    tasks = sum(event["Event"] == "SparkListenerTaskEnd" for event in events)
    return {"released": len(release), "tasks": tasks} | sizes(events)


if __name__ == "__main__":
    seen = told(Path(sys.argv[1]), sys.argv[2])
    (Path(sys.argv[1]) / "seen.json").write_text(json.dumps(seen))
