"""A client of Spark Connect, whose server this process starts and at last kills.

`python -m tests.engines.connect_client FOLDER VERB...` writes what it saw to FOLDER/seen.json.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession, functions

from dphh import Corpus, Ledger, items
from dphh.engines import open_session
from dphh.errors import DphhError
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.reading import Reading
from tests.engines.test_engines_agree import VERBS, released


def refusal(work: Any) -> str:
    try:
        work()
    except DphhError as problem:
        return f"{type(problem).__name__}: {problem}"
    return "none"


def home_of_dphh(spark: Any) -> str:
    """Where an executor's dphh stands, in a session."""

    def home(ids: pa.Array) -> pa.Array:
        import importlib

        return pa.array([importlib.import_module("dphh").__file__] * len(ids))

    declared: Any = functions.arrow_udf(home, "string")
    spark.udf.register("home_of_dphh", declared)
    return str(spark.sql("SELECT home_of_dphh(1)").first()[0])


def within_a_run(corpus: Corpus, shared: Path) -> dict[str, Any]:
    """What executors have, and what others may see, while a run has private tables."""
    session: Any = open_session("spark", corpus, SystemRandomness(), Limits())
    session.hold(Reading(ends=True))
    (folder,) = shared.iterdir()
    found = {
        "home": home_of_dphh(session.spark),
        "mode": folder.stat().st_mode & 0o777,
        "files": len([*folder.rglob("*.parquet")]),
    }
    session.close()
    return found


def killed_server(corpus: Corpus) -> dict[str, Any]:
    """What a run in its midst, and one that would begin, say of a server that is gone."""
    session: Any = open_session("spark", corpus, SystemRandomness(), Limits())
    session.hold(Reading(ends=True))
    server: Any = SparkContext._gateway
    server.proc.kill()
    server.proc.wait()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        session.close()
    begun = time.monotonic()
    refused = refusal(items(corpus, epsilon=1.0, delta=1e-6).run)
    return {
        "left": [str(each.message) for each in said],
        "refused": refused,
        "seconds": time.monotonic() - begun,
    }


def main(folder: Path, verbs: list[str]) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    frame = spark.read.parquet(str(folder / "corpus.parquet"))
    corpus = Corpus(frame, user="who", text="what", as_="list")
    seen: dict[str, Any] = {"session": type(spark).__module__}
    seen["no folder"] = refusal(items(corpus, epsilon=1.0, delta=1e-6).run)
    spark.conf.set("spark.dphh.folder", "file:///proc/nothing")
    seen["no such folder"] = refusal(items(corpus, epsilon=1.0, delta=1e-6).run)
    (shared := folder / "shared").mkdir()
    spark.conf.set("spark.dphh.folder", shared.as_uri())
    seen["no table"] = refusal(lambda: Corpus("nothing", connection=spark, user="a", text="b"))
    seen["runs"] = len(Ledger().runs())
    seen["within"] = within_a_run(corpus, shared)
    seen["released"] = {verb: released(VERBS[verb](corpus), "spark") for verb in verbs}
    seen["left"] = [each.name for each in shared.iterdir()]
    seen["databases"] = [each.name for each in spark.catalog.listDatabases()]
    seen["killed"] = killed_server(corpus)
    (folder / "seen.json").write_text(json.dumps(seen, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
    os._exit(0)  # a client whose server was killed waits for it
