"""What Spark alone can do wrong: lose executors, run tasks twice, meet skew, tell what it saw."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphh
from dphh import Corpus, CorpusError, EngineError, UsageError, items, ldp_trie, ngrams, trie
from dphh.engines import engine_of, open_host
from dphh.engines.host import Limits, Object
from dphh.engines.spark import cluster, functions
from dphh.errors import EngineOutOfMemory
from dphh.mechanisms.set_union.levels import bounds
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.reading import Words
from tests.engines import spark_process
from tests.engines.levels import bare_level, histogram, host_on
from tests.engines.standalone import seen_by

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
def test_files_that_spark_would_pass_over_are_refused(tmp_path, ledger, name):
    for each in ("a.parquet", name):
        pl.DataFrame(ROWS).write_parquet(tmp_path / each)
    corpus = Corpus(tmp_path, user="who", text="what")
    with pytest.raises(CorpusError, match=f"{name}: Spark skips files whose name begins"):
        items(corpus, epsilon=1.0, delta=1e-6).run(engine="spark", ledger=ledger)
    assert ledger.runs() == []


def test_a_table_that_is_not_there_is_named(spark):
    with pytest.raises(CorpusError, match="no table or view 'nothing'"):
        Corpus("nothing", connection=spark, user="who", text="what")


def test_a_spark_that_is_running_keeps_its_limits(spark):
    corpus = Corpus(as_frame(spark)["source"], user="who", text="what")
    plan = items(corpus, epsilon=1, delta=1e-6)
    with pytest.raises(UsageError, match="threads: found 7, but Spark is already running"):
        plan.run(threads=7)
    with pytest.raises(UsageError, match="memory_limit: found '1GB', but Spark is already running"):
        plan.run(memory_limit="1GB")


# Executors die, tasks run twice


class DiesOnce:
    """Kills the worker that draws, the first time in each task, after the words were drawn."""

    is_test = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def words(self, count: int, purpose: str, keys: Any = None) -> Any:
        drawn = SystemRandomness().words(count, purpose, keys)
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
        host.gather("users", Words())
        host.run("words_level", released=Object(None), **bounds(host, bare_level(1), "noise"))
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
    from dphh.udfs.draws.noise import draw_rounded_gaussian

    class Drawn:
        is_test = False

        def __init__(self, words: Any) -> None:
            self.drawn = words

        def words(self, count: int, purpose: str, keys: Any = None) -> Any:
            return self.drawn

    found: list[int] = []
    for name in folder.glob(f"*-{attempt}.npy"):
        words = np.load(name)
        found += draw_rounded_gaussian(Drawn(words), 16, len(words), "noise").tolist()
    return found


@pytest.mark.parametrize("sips", [False, True])
def test_what_is_too_large_to_send_is_refused_with_its_size(tmp_path, monkeypatch, ledger, sips):
    pl.DataFrame({"who": range(900), "what": ["a b c"] * 900}).write_parquet(tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what")
    monkeypatch.setattr(functions, "SENT_WHOLE", 100)
    plan = (
        items(corpus, epsilon=8, delta=1e-4, method="sips")
        if sips
        else dphh.counts(corpus, of=[f"w{i}" for i in range(50)], epsilon=8, delta=1e-4)
    )
    told = r"(released|asked) takes [\d,]+ bytes, and Spark's executors are sent 100 at most: find"
    with pytest.raises(EngineOutOfMemory, match=told):
        plan.run(engine="spark", ledger=ledger)


def test_blocks_that_hold_the_same_get_their_own_values(tmp_path):
    """Users of one item each: all blocks of one number of users are equal."""
    pl.DataFrame({"who": range(400), "what": ["a"] * 400}).write_parquet(tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", item="what")
    with host_on("spark", corpus, SystemRandomness()) as host:
        host.gather("users", Words())
        blocks = host._tables["users"]
        host.write("users", blocks.unionAll(blocks))
        host.write("told_before", host.ask("told", "SELECT 'a' AS key, 1000000 AS told", {}))
        host.bring("w", "weights_of_round", "users", parts=1, deviation=1, threshold=1)
        bounding = bounds(host, bare_level(1), "noise")
        host.run("words_of_round", released=Object(None), **bounding)
        assert host.take("released_of_round", threshold=-(10**9)).num_rows == 1


def test_a_word_whose_value_is_lost_is_an_error(tmp_path):
    corpus = small(tmp_path)
    with host_on("spark", corpus, SystemRandomness()) as host:
        host.gather("users", Words())
        host.write("told_before", host.ask("told", "SELECT 'a' AS key, 1000000 AS told", {}))
        host.bring("w", "weights_of_round", "users", parts=1, deviation=1, threshold=1)
        with pytest.raises(EngineError):
            host.run(
                "words_of_round", released=Object(None), **bounds(host, bare_level(1), "noise")
            )


def test_a_session_of_spark_connect_is_refused_before_payment(tmp_path):
    pytest.importorskip("grpc", reason="needs pyspark[connect]")
    pl.DataFrame(ROWS).write_parquet(tmp_path / "c.parquet")
    assert seen_by(tmp_path, "connect") == [2, 0]


# What is left behind


def test_an_event_log_that_is_on_is_warned_of(spark, monkeypatch):
    corpus = Corpus(as_frame(spark)["source"], user="who", text="what")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_host("spark", corpus, SystemRandomness(), Limits()).close()
    get = type(spark.conf).get
    logged = "spark.eventLog.enabled"
    monkeypatch.setattr(
        type(spark.conf),
        "get",
        lambda conf, name, *no: "true" if name == logged else get(conf, name, *no),
    )
    with pytest.warns(UserWarning, match=r"spark.eventLog.enabled is on: .* these are private"):
        open_host("spark", corpus, SystemRandomness(), Limits()).close()


def test_what_still_runs_when_a_run_ends_is_ended(spark, tmp_path):
    """As after an interrupt: Spark would go on with the job that nobody waits for."""
    corpus = small(tmp_path)
    host: Any = open_host("spark", corpus, SystemRandomness(), Limits())
    slow = "SELECT java_method('java.lang.Thread', 'sleep', 60000 + id) FROM range(2)"
    result: list[BaseException] = []
    context = spark.sparkContext

    def wait() -> None:
        try:
            host.ask("slow", slow, {}).collect()
        except BaseException as problem:
            result.append(problem)

    from pyspark import InheritableThread

    waiting = InheritableThread(wait)
    waiting.start()
    while not context.statusTracker().getActiveJobsIds():
        time.sleep(0.05)
    host.close()
    waiting.join(250)
    assert len(result) == 1
    assert "cancel" in str(result[0]).lower()
    assert not list(context.getJobTags())


def test_a_run_leaves_nothing_in_its_folder_and_nobody_else_reads_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    corpus = small(tmp_path)
    with host_on("spark", corpus, SystemRandomness()) as host:
        host.gather("users", Words(ends=True))
        (folder,) = (path for path in tmp_path.iterdir() if path.name.startswith("dphh-"))
        assert folder.stat().st_mode & 0o777 == 0o700
        assert any(folder.rglob("*.parquet"))
    assert [path.name for path in tmp_path.iterdir()] == ["c.parquet"]


def test_blocks_are_written_and_read_one_by_one(tmp_path):
    """Who held all blocks of a task ran out of Java's memory."""
    corpus = small(tmp_path)
    with host_on("spark", corpus, SystemRandomness()) as host:
        blocks = "SELECT CAST(repeat('many words ', 2000000 + id) AS BINARY) FROM range(0, 3, 1, 1)"
        host.write("three", host.ask("three", blocks, {}))
        (path,) = Path(host._folder.path.removeprefix("file://")).rglob("*three/*.parquet")
        assert pq.ParquetFile(path).num_row_groups == 3


def test_the_folder_goes_even_where_spark_no_longer_answers(tmp_path, monkeypatch):
    from py4j.protocol import Py4JNetworkError

    def gone() -> None:
        raise Py4JNetworkError

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    corpus = small(tmp_path)
    host: Any = open_host("spark", corpus, SystemRandomness(), Limits())
    host.gather("users", Words(ends=True))
    host.when_closed(gone)
    host.close()
    assert [path.name for path in tmp_path.iterdir()] == ["c.parquet"]


def test_where_java_ends_the_error_says_so_and_the_next_run_starts_another(tmp_path):
    """A traceback out of `close` stood in the error's place."""
    pl.DataFrame(ROWS).write_parquet(tmp_path / "c.parquet")
    here = str(tmp_path)
    *errors, kind = seen_by(tmp_path, "ended", TMPDIR=here, SPARK_CONF_DIR=here)
    assert len(errors) == 2
    for error in errors:
        assert re.search("Spark's Java process ended in the step '.*more .*the memory limit", error)
    assert kind == "Release"
    assert not list(tmp_path.glob("dphh-*"))


def test_rows_that_a_spark_of_its_own_shuffles_are_for_nobody_else(tmp_path, monkeypatch):
    said: dict[str, str] = {}

    class Builder:
        def config(self, setting, value):
            said[setting] = value
            return self

        def appName(self, _):  # noqa: N802 - Spark's
            return self

        master = appName

        def getOrCreate(self):  # noqa: N802 - Spark's
            context = SimpleNamespace(setLogLevel=str, _accumulatorServer=SimpleNamespace())
            return SimpleNamespace(sparkContext=context)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cluster, "SparkSession", SimpleNamespace(builder=Builder()))
    cluster._start_local_spark(Limits())
    (private,) = tmp_path.glob("dphh-run-*")
    assert private.stat().st_mode & 0o077 == 0
    assert Path(said["spark.local.dir"]).parent == private
    assert Path(said["spark.sql.warehouse.dir"]).parent == private
    assert said["spark.io.encryption.enabled"] == "true"
    assert said["spark.shuffle.service.removeShuffle"] == "true"
    assert said["spark.eventLog.enabled"] == "false"
    assert "log4j2.configurationFile=file:" in said["spark.driver.defaultJavaOptions"]


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("how", ["variable", "file"])
def test_a_collector_that_somebody_chose_is_the_only_one(tmp_path, monkeypatch, how):
    """Java does not start with two."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert "-XX:+UseParallelGC" in cluster._java_options()
    if how == "variable":
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC")
    else:
        chosen = "spark.driver.extraJavaOptions -XX:+UseG1GC"
        (tmp_path / "spark-defaults.conf").write_text(chosen)
    assert "-XX:+UseParallelGC" not in cluster._java_options()


@pytest.mark.parametrize("run", spark_process.PLANS)
def test_the_driver_is_given_what_is_released_and_no_more(tmp_path, run):
    """By Spark's own log, of a corpus of 200,000 pairs that somebody holds: results of all tasks
    together, with Spark's own numbers for each, and the largest broadcast."""
    told = seen_by(tmp_path, "told", run, SPARK_CONF_DIR=str(tmp_path))
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
    description: str
    frame: Any

    def planned(self) -> str:
        return str(self.frame._jdf.queryExecution().executedPlan().toString())


@pytest.fixture
def queries(monkeypatch) -> list[Query]:
    """All that are asked in a test."""
    from dphh.engines.spark.host import SparkHost

    seen: list[Query] = []
    ask = SparkHost.ask

    def listen(self: Any, step: str, select: str, parameters: dict[str, Any]) -> Any:
        frame = ask(self, step, select, parameters)
        described = self.spark.sparkContext.getLocalProperty("spark.job.description")
        seen.append(Query(step, select, parameters, str(described), frame))
        return frame

    monkeypatch.setattr(SparkHost, "ask", listen)
    return seen


#: As a plan names what draws.
DRAWS = re.compile(r"dphh_(noise|votes|word|report|absent_\w+|lifted\w*)\(")
ASKED = {
    "dpne": lambda: ngrams(max_n=3, epsilon=8, delta=1e-4, method="dpne"),
    "forecast": lambda: ngrams(max_n=2, epsilon=8, delta=1e-4),
    "adaptive": lambda: items(epsilon=8, delta=1e-4, method="adaptive"),
    "counts": lambda: dphh.counts(of=[("a",), ("b",)], epsilon=8, delta=1e-4),
}


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("verb", ASKED)
def test_nothing_drawn_is_shuffled_before_it_is_written_and_nothing_private_is_told_or_broadcast(
    tmp_path, queries, verb
):
    """A task that runs again draws again: two tasks that read its rows could read two draws. What
    dphh sets as descriptions and writes as SQL has no word of the corpus."""
    texts = [f"SENTINEL SENTINELb{user % 3} SENTINELc{user % 5}" for user in range(600)]
    path = tmp_path / "c.parquet"
    pl.DataFrame({"who": range(600), "what": texts}).write_parquet(path)
    ASKED[verb]().run(corpus=Corpus(path, user="who", text="what"), engine="spark")
    assert len(queries) > 1
    assert any(query.description.startswith("dphh: ") for query in queries)
    for query in queries:
        told = query.frame._jdf.queryExecution().toString()
        assert "SENTINEL" not in f"{query.description} {query.select} {query.parameters} {told}"
    nodes = [node for query in queries for node in nodes_of(query.planned())]
    assert any(DRAWS.search(node) for node, _ in nodes)
    for node, above in nodes:
        if DRAWS.search(node):
            assert not [each for each in above if "Exchange" in each or "Sort" in each]
        if "FileScan" in node:
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


COUNTS_USERS = {
    "trie": lambda corpus: trie(
        corpus, epsilon=8, delta=1e-2, max_length=1, accounting="paper", users=2_000
    ),
    "ldp_trie": lambda corpus: ldp_trie(
        corpus, local_epsilon=6, delta=1e-6, users_per_level=200, contributions=1, max_length=1,
        keep=8, character_set=["a"], pad=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", COUNTS_USERS)
def test_no_query_is_given_how_many_users_there_are(tmp_path, queries, verb):
    """What the driver asks of two corpora, one of which has a user more; and Spark's plan for users
    who are made up broadcasts nothing, for it would collect their number on the driver."""
    asked = []
    for users in (150, 151):
        path = tmp_path / f"{users}.parquet"
        pl.DataFrame({"who": range(users), "what": ["aa"] * users}).write_parquet(path)
        COUNTS_USERS[verb](Corpus(path, user="who", item="what")).run(engine="spark")
        asked.append([(query.step, query.select, query.parameters) for query in queries])
        idle = [query for query in queries if query.step in ("ldp_seats", "trie_batch_level")]
        assert idle
        for query in idle:
            if "dphh_word(" in query.select:
                assert "CartesianProduct" in query.planned()
                assert "Broadcast" not in query.planned()
        queries.clear()
    assert asked[0] == asked[1]
