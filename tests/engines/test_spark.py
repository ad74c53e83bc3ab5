"""What Spark alone can do wrong: run tasks twice, tell what it saw, give the driver too much."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dphh
from dphh import Corpus, CorpusError, items, ldp_trie, ngrams
from dphh.engines import engine_of
from dphh.engines.host import Lookup
from dphh.mechanisms.set_union.draws import bounding_parameters
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.udfs.noise.sampler import draw_rounded_gaussian
from tests.conftest import HERE
from tests.draws import Scripted
from tests.engines import spark_process
from tests.engines.levels import bare_level, histogram, host_on

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.on_spark]
ROWS = {"who": [1, 1, 2, 3], "what": ["a b", "b c", "b", "a"]}
H = {"a": 591 + 1024, "b": 591 + 1024, "c": 591}


def small(folder: Path) -> Corpus:
    pl.DataFrame(ROWS).write_parquet(folder / "c.parquet")
    return Corpus(folder / "c.parquet", user="who", text="what")


# Sources of Spark's own


def as_frame(spark):
    return {"source": spark.createDataFrame(pa.table(ROWS))}


@pytest.mark.parametrize("null", [False, True])
def test_check_asks_spark_for_null_users_and_brings_no_row(spark, null):
    """It collected the frame's rows in this process, and then failed."""
    who = [1, 1, 2, None if null else 3]
    frame = spark.createDataFrame(pa.table({"who": who, "what": ROWS["what"]}))
    corpus = Corpus(frame, user="who", text="what")
    found = {each.what: each for each in dphh.check(corpus).findings}["users"]
    assert found.verdict == ("stops" if null else "good")
    assert ("null_users='drop'" in str(found)) == null


def as_table(spark):
    spark.createDataFrame(pa.table(ROWS)).createOrReplaceTempView("messages")
    return {"source": "messages", "connection": spark}


def as_frame_of_another_session(spark):
    return {"source": spark.newSession().createDataFrame(pa.table(ROWS)).filter("who > 0")}


@pytest.mark.parametrize("make", [as_frame, as_table, as_frame_of_another_session])
def test_spark_reads_what_spark_has(spark, no_noise, make):
    corpus = Corpus(**make(spark), user="who", text="what")
    assert engine_of(corpus) == "spark"
    assert histogram("spark", corpus, no_noise, 10) == H
    assert spark.sql("SHOW VIEWS IN global_temp LIKE 'dphh*'").count() == 0


@pytest.mark.parametrize("name", [".b.parquet", "_b.parquet"])
def test_named_files_that_spark_would_pass_over_are_refused(tmp_path, ledger, name):
    for each in ("a.parquet", name):
        pl.DataFrame(ROWS).write_parquet(tmp_path / each)
    corpus = Corpus([tmp_path / "a.parquet", tmp_path / name], user="who", text="what")
    with pytest.raises(CorpusError, match=f"{name}: Spark skips files whose name begins"):
        items(corpus, epsilon=1.0, delta=1e-6).run(engine="spark", ledger=ledger)
    assert ledger.runs() == []


# Executors die, tasks run twice


class DiesOnce:
    """Kills the worker that draws, the first time in each task, after the words were drawn."""

    is_test = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def random_words(self, count: int, purpose: str, keys: Any = None) -> Any:
        drawn = SystemRandomness().random_words(count, purpose, keys)
        if count == 1 or "noise" not in purpose:
            return drawn
        from pyspark import TaskContext

        task = TaskContext.get()
        if task is None:
            return drawn
        np.save(self.folder / f"{task.partitionId()}-{task.attemptNumber()}.npy", drawn)
        if task.attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return drawn


def test_a_task_whose_worker_is_killed_draws_again_and_one_draw_alone_is_seen(tmp_path):
    users = 3000
    path = tmp_path / "own.parquet"
    pl.DataFrame({"who": range(users), "what": [f"w{u}" for u in range(users)]}).write_parquet(path)
    (tmp_path / "drawn").mkdir()
    corpus = Corpus(path, user="who", text="what")
    with host_on("spark", corpus, DiesOnce(tmp_path / "drawn")) as host:
        host.gather("users", ReadWords())
        host.run(
            "words_of_round",
            released=Lookup(None),
            w=Lookup(None),
            **bounding_parameters(host, bare_level(1), "noise"),
        )
        once = host.take("released_words", threshold=-(10**9))
        twice = host.take("released_words", threshold=-(10**9))
    attempts = Counter(name.stem.split("-")[1] for name in (tmp_path / "drawn").iterdir())
    assert attempts["0"] == attempts["1"] >= 1, "no task was tried twice"
    assert len(once) == users == len(set(once.column("key").to_pylist()))
    assert once.equals(twice)
    # What stands in the table is what each task's second attempt drew.
    table = pl.from_arrow(once)
    noise = Counter((table["noisy"] - 1024).to_list())
    assert noise == Counter(noise_of(tmp_path / "drawn", "1"))
    assert noise != Counter(noise_of(tmp_path / "drawn", "0"))


def noise_of(folder: Path, attempt: str) -> list[int]:
    found: list[int] = []
    for name in folder.glob(f"*-{attempt}.npy"):
        words = np.load(name).tolist()
        found += draw_rounded_gaussian(Scripted(*words), 16, len(words), "noise").tolist()
    return found


def test_blocks_that_hold_the_same_get_their_own_values(tmp_path):
    """Users of one item each: all blocks of one number of users are equal."""
    pl.DataFrame({"who": range(400), "what": ["a"] * 400}).write_parquet(tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", item="what")
    with host_on("spark", corpus, SystemRandomness()) as host:
        host.gather("users", ReadWords())
        blocks = host._tables["users"]
        host.write("users", blocks.unionAll(blocks))
        host.write(
            "earlier_sums",
            host.lazy_frame("sums", "SELECT 'a' AS key, 1000000 AS noisy_sum", {}),
        )
        host.bring("w", "weights_of_round", "users", total_precision=1, deviation=1, threshold=1)
        bounding = bounding_parameters(host, bare_level(1), "noise")
        host.run("words_of_round", released=Lookup(None), **bounding)
        assert host.take("released_words", threshold=-(10**9)).num_rows == 1


def java_rows_of(frame: Any) -> Any:
    """What Java has of a table that is kept."""
    return frame._jdf.logicalPlan().rdd()


def test_what_is_kept_is_one_draw_and_is_not_drawn_again_when_it_is_lost(tmp_path):
    """A cache, which Spark refills when it is lost, would draw again."""
    with host_on("spark", small(tmp_path), SystemRandomness()) as host:
        host.gather("users", ReadWords())
        bounding = bounding_parameters(host, bare_level(3), "noise")
        host.run("words_of_round", released=Lookup(None), w=Lookup(None), **bounding)
        kept = host._tables["noised"]
        assert kept.toArrow().num_rows == 3
        assert kept.toArrow() == kept.toArrow()
        java_rows_of(kept).unpersist(True)
        with pytest.raises(Exception, match="CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"):
            kept.toArrow()
        with pytest.raises(dphh.EngineError, match="released_words"):
            host.take("released_words", threshold=-(10**9))


def test_a_run_whose_tables_are_lost_goes_on_under_its_id(spark, tmp_path, ledger, monkeypatch):
    """The release is that of a run which lost nothing, and is paid once."""
    from dphh.engines.spark.host import SparkHost

    rows = [(user, f"good book w{user % 3}") for user in range(900)]
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what")
    plan = ngrams(corpus, max_n=2, epsilon=8, delta=1e-4, method="dpne")
    seeded = {"engine": "spark", "randomness": SeededRandomness(4)}
    whole = plan.run(ledger=ledger, run_id="whole", **seeded).to_arrow()
    write, lost = SparkHost.write, []

    def losing(self: Any, table: str, rows: Any) -> None:
        if table == "next_positions" and not lost:
            lost.append(table)
            java_rows_of(self._tables["users"]).unpersist(True)
        write(self, table, rows)

    monkeypatch.setattr(SparkHost, "write", losing)
    with pytest.raises(dphh.EngineError):
        plan.run(ledger=ledger, run_id="cut short", **seeded)
    assert plan.run(ledger=ledger, run_id="cut short", **seeded).to_arrow() == whole
    assert lost and [run.state for run in ledger.runs()] == ["settled"] * 2


@pytest.mark.parametrize(
    "setting, value, why",
    [
        ("spark.speculation", "true", r"^spark\.speculation: it is on"),
        ("spark.speculation", "True", r"^spark\.speculation: it is on"),
        ("spark.master", "spark://there:7077", r"^spark\.stage\.maxConsecutiveAttempts: on a"),
    ],
)
def test_a_session_that_runs_a_task_twice_at_once_is_refused_before_payment(
    spark, ledger, setting, value, why
):
    """Spark could keep what both attempts of a task drew."""
    session = spark.newSession()
    session.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    session.conf.set(setting, value)
    corpus = Corpus(session.createDataFrame(pa.table(ROWS)), user="who", text="what")
    with pytest.raises(dphh.UsageError, match=why):
        items(corpus, epsilon=1.0, delta=1e-6).run(ledger=ledger)
    assert ledger.runs() == []


# What is left behind


def test_a_run_leaves_no_view_and_no_table(spark, tmp_path):
    context: Any = spark.sparkContext

    def tables() -> set[int]:
        return set(context._jsc.getPersistentRDDs())

    of_others = tables()
    with host_on("spark", small(tmp_path), SystemRandomness()) as host:
        host.gather("users", ReadWords(marks_ends=True))
        own = host.spark
        of_the_run = tables() - of_others
        assert of_the_run
    assert own.sql("SHOW VIEWS LIKE 'users'").count() == 0
    del own, host
    for _ in range(150):
        gc.collect()
        context._jvm.System.gc()
        if not of_the_run & tables():
            return
        time.sleep(0.2)
    pytest.fail("Spark still has tables of a run that has ended")


@pytest.mark.parametrize("run", spark_process.PLANS)
def test_the_driver_is_given_what_is_released_and_no_more(tmp_path, run):
    """By Spark's own log, of a corpus of 200,000 pairs that somebody holds: results of all tasks
    together, with Spark's own numbers for each, and the largest broadcast."""
    subprocess.run(
        [sys.executable, "-m", "tests.engines.spark_process", str(tmp_path), run],
        cwd=HERE, check=True, timeout=600,
        # Python looks in its folder before that
        env={**os.environ, "PYTHONPATH": str(HERE), "SPARK_CONF_DIR": str(tmp_path)},
    )  # fmt: skip
    told = json.loads((tmp_path / "seen.json").read_text())
    assert told["released"] > (20 if run == "ldp_trie" else 300)
    assert told["released"] < 5_000 and told["tasks"] > 5
    allowed = 64 * told["released"] + 2**20
    assert 0 < told["results"] <= allowed
    assert 0 < told["broadcast"] <= allowed


@dataclass
class Query:
    """What dphh asked of Spark, and the plan that Spark made of it."""

    step: str
    select: str
    parameters: dict[str, Any]
    frame: Any

    def planned(self) -> str:
        return str(self.frame._jdf.queryExecution().executedPlan().toString())


@pytest.fixture
def queries(monkeypatch) -> list[Query]:
    """All that are asked in a test."""
    from dphh.engines.spark.host import SparkHost

    seen: list[Query] = []
    lazy_frame = SparkHost.lazy_frame

    def listen(self: Any, step: str, select: str, parameters: dict[str, Any]) -> Any:
        frame = lazy_frame(self, step, select, parameters)
        seen.append(Query(step, select, parameters, frame))
        return frame

    monkeypatch.setattr(SparkHost, "lazy_frame", listen)
    return seen


#: As a plan names what draws.
DRAWS = re.compile(r"dphh_(noise|votes|word|report|absent_\w+|spurious\w*)\(")
ASKED = {
    "dpne": lambda: ngrams(max_n=3, epsilon=8, delta=1e-4, method="dpne"),
    "forecast": lambda: ngrams(max_n=2, epsilon=8, delta=1e-4),
    "adaptive": lambda: items(epsilon=8, delta=1e-4, method="adaptive"),
    "counts": lambda: dphh.counts(of=[("a",), ("b",)], epsilon=8, delta=1e-4),
}


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("verb", ASKED)
def test_nothing_drawn_is_shuffled_before_it_is_kept_and_nothing_private_is_told_or_broadcast(
    tmp_path, queries, verb
):
    """A task that runs again draws again: two tasks that read its rows could read two draws. What
    dphh writes as SQL has no word of the corpus."""
    texts = [f"SENTINEL SENTINELb{user % 3} SENTINELc{user % 5}" for user in range(600)]
    path = tmp_path / "c.parquet"
    pl.DataFrame({"who": range(600), "what": texts}).write_parquet(path)
    ASKED[verb]().run(corpus=Corpus(path, user="who", text="what"), engine="spark")
    assert len(queries) > 1
    for query in queries:
        told = query.frame._jdf.queryExecution().toString()
        assert "SENTINEL" not in f"{query.select} {query.parameters} {told}"
    nodes = [node for query in queries for node in nodes_of(query.planned())]
    assert any(DRAWS.search(node) for node, _ in nodes)
    for node, above in nodes:
        if DRAWS.search(node):
            assert not [each for each in above if "Exchange" in each or "Sort" in each]
        if "ExistingRDD" in node:  # a table of the run; public ones are LocalTableScan
            assert not [each for each in above if "Broadcast" in each and "Exchange" in each]
        assert "BroadcastNestedLoopJoin" not in node


def nodes_of(plan: str) -> list[tuple[str, list[str]]]:
    """Each node of a plan, with all those above it."""
    found, above = [], []
    for line in plan.splitlines():
        depth = re.search(r"[A-Za-z*]|$", line).start()
        above = [(each, at) for each, at in above if at < depth]
        found.append((line, [each for each, _ in above]))
        above.append((line, depth))
    return found


def test_no_query_is_given_how_many_users_there_are(tmp_path, queries):
    """What the driver asks of two corpora, one of which has a user more; and Spark's plan for users
    who are made up broadcasts nothing, for it would collect their number on the driver."""
    asked = []
    for users in (150, 151):
        path = tmp_path / f"{users}.parquet"
        pl.DataFrame({"who": range(users), "what": ["aa"] * users}).write_parquet(path)
        ldp_trie(
            Corpus(path, user="who", item="what"), local_epsilon=6, delta=1e-6,
            users_per_level=200, contributions=1, max_length=1, keep=8, character_set=["a"],
            pad=True,
        ).run(engine="spark")  # fmt: skip
        asked.append([(query.step, query.select, query.parameters) for query in queries])
        idle = [query for query in queries if query.step == "ldp_seats"]
        assert idle
        for query in idle:
            if "dphh_word(" in query.select:
                assert "CartesianProduct" in query.planned()
                assert "Broadcast" not in query.planned()
        queries.clear()
    assert asked[0] == asked[1]
