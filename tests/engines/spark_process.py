"""Runs on a Spark of this process, as a test starts it: `python -m tests.engines.spark_process`.

    ended FOLDER                    Java is killed in two runs: their errors, and a third one's end
    connect FOLDER                  a session of Spark Connect, whose server this process starts
    workers FOLDER NAME=PYTHON ...  Python workers that cannot run dphh, one after the other
    told FOLDER RUN                 a run with Spark's event log on: what it says of sizes

Each writes what it saw to FOLDER/seen.json.
"""

from __future__ import annotations

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
from py4j.clientserver import ClientServerConnection
from py4j.protocol import ERROR_ON_RECEIVE, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from dphh import Corpus, DphhError, EngineError, Ledger, UsageError, counts, items, ldp_trie, ngrams
from dphh.engines.spark.host import SparkHost
from tests.conftest import HERE, SPARK_JAVA

ASK = {"epsilon": 1.0, "delta": 1e-6}


def corpus_in(folder: Path) -> Corpus:
    return Corpus(folder / "c.parquet", user="who", text="what")


# Java ends

_write, _send = SparkHost.write, ClientServerConnection.send_command


def write_without_java(self: Any, table: str, rows: Any) -> None:
    gateway: Any = SparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    _write(self, table, rows)


def write_as_java_ends(self: Any, table: str, rows: Any) -> None:
    """The answer to one call is lost, which Py4J does not raise: it logs that, with a traceback."""

    def lose(*_: Any) -> None:
        ClientServerConnection.send_command = _send
        raise Py4JNetworkError("lost", when=ERROR_ON_RECEIVE)

    ClientServerConnection.send_command = lose
    write_without_java(self, table, rows)


def ended(folder: Path) -> list[str]:
    plan, ledger = items(corpus_in(folder), **ASK), folder / "ledger.sqlite"
    said = []
    for write in (write_as_java_ends, write_without_java):
        SparkHost.write = write  # type: ignore[method-assign]
        try:
            plan.run(engine="spark", ledger=ledger, run_id="ended", threads=1)
        except EngineError as problem:
            said.append(" ".join(str(problem).split()))
    SparkHost.write = _write  # type: ignore[method-assign]
    release = plan.run(engine="spark", ledger=ledger, run_id="ended", threads=1)
    return [*said, type(release).__name__]


# Sessions and workers that are refused


def connect(folder: Path) -> list[int]:
    """How many were refused, and how many runs were paid for."""
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    refused = 0
    for source in (spark.read.parquet(str(folder / "c.parquet")), folder / "c.parquet"):
        try:
            items(Corpus(source, user="who", text="what"), **ASK).run(engine="spark")
        except UsageError as problem:
            refused += "found a Spark Connect session" in str(problem)
    return [refused, len(Ledger().runs())]


def workers(folder: Path, *pythons: str) -> dict[str, str | int]:
    refused: dict[str, str | int] = {}
    for name, python in (each.split("=", 1) for each in pythons):
        os.environ["PYSPARK_PYTHON"] = python
        spark = SparkSession.builder.master("local[1]").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        frame = spark.read.parquet(str(folder / "c.parquet"))
        try:
            items(Corpus(frame, user="who", text="what"), **ASK).run()
        except DphhError as problem:
            refused[name] = f"{type(problem).__name__}: {problem}"
        spark.stop()
    return refused | {"runs": len(Ledger().runs())}


# What the driver is given

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
PUBLIC = pl.DataFrame(
    {"item": [f"w{i}" for i in range(0, WORDS, 2)], "count": [9] * (WORDS // 2)},
)
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
    asked = {"ended": ended, "connect": connect, "workers": workers, "told": told}[sys.argv[1]]
    seen: Any = asked(Path(sys.argv[2]), *sys.argv[3:])
    (Path(sys.argv[2]) / "seen.json").write_text(json.dumps(seen))
    if asked is connect:
        os._exit(0)  # its server would wait
