"""`ngrams` on Spark beside DuckDB and plain Spark, how its cost grows with users, what it shuffles.

    python -m tests.benchmarks.bench_spark --plain [--runs 3]
    python -m tests.benchmarks.bench_spark --short 500000 [--words 10] [--runs 3]
    python -m tests.benchmarks.bench_spark --scale 0.1 1 10

Of the default `ngrams` to n = 3, each in a process of its own.
`--plain` compares `items` and `ngrams`, of 500,000 texts of 10 words by 60,000 users, with an exact
count in Spark SQL (explode, distinct, group) in a Spark of the same threads: processor seconds as
by `--short`, of each of `--runs` runs.
`--short` compares so many users of 10 words (`--words`), at epsilon 4, with DuckDB: processor
seconds of the second run of a process and all below it, in a Spark that dphh started, of two
threads. The first run, of 2,000 users, starts Java and workers and reaches each step. With `--runs`
the corpus is read so often, and the last run is what counts: Java compiles less and less.
`--scale` makes the table of scale.md, beside this file: so many million users of 10 words each, on
DuckDB and on a standalone cluster of two workers, what more users add between two sizes, and what a
billion would take by that. Steps are read from Spark's event log: bytes shuffled and written.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from math import log10
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.benchmarks.bench import HERE, measured
from tests.benchmarks.corpora import short_texts, texts_of_users
from tests.engines.standalone import standalone

COMMAND = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.bench_spark"]


def run(engine: str, path: str, epsilon: float, verb: str = "ngrams") -> None:
    import dphh

    corpus = dphh.Corpus(path, user="who", text="what", split="white space", lower=False)
    asked = {"max_n": 3} if verb == "ngrams" else {}
    plan = getattr(dphh, verb)(corpus, epsilon=epsilon, delta=1e-7, **asked)
    with tempfile.TemporaryDirectory() as folder:
        ledger = dphh.Ledger(Path(folder) / "ledger.sqlite", create=True)
        plan.run(engine=engine, ledger=ledger)


def scale_child(path: str, log: str) -> None:
    """Prints what the run took; the numbers are those of COSTS."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(HERE)}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, standalone(Path(folder), "3g") as master:
        asked = {
            "ui.enabled": "false", "ui.showConsoleProgress": "false", "driver.memory": "2g",
            "executor.memory": "3g", "local.dir": folder,
            "executor.defaultJavaOptions": "-XX:+UseParallelGC -XX:NewRatio=1",
            "eventLog.enabled": "true", "eventLog.compress": "false",
            "eventLog.rolling.enabled": "false", "eventLog.dir": f"file://{log}",
        }  # fmt: skip
        builder = SparkSession.builder.master(master)
        for name, value in asked.items():
            builder = builder.config(f"spark.{name}", value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        describe_jobs(spark)
        run("spark", path, 1.0)
        tree = processes()
        driver = {os.getpid(), spark.sparkContext._gateway.proc.pid}
        cluster = {pid for pid, (parent, _) in tree.items() if parent == os.getpid()} - driver
        peaks = [sum(map(peak, pids)) for pids in (driver, tree.keys() - driver - cluster)]
        seconds = time.perf_counter() - start
        print(*(sum(used for _, used in tree.values()), seconds, *peaks), flush=True)
        spark.stop()


def describe_jobs(spark: SparkSession) -> None:
    """From here on, Spark's event log says of each job which step it is of."""
    from dphh.engines.spark.host import SparkHost

    lazy_frame = SparkHost.lazy_frame

    def describing(self: SparkHost, step: str, *asked: Any) -> Any:
        spark.sparkContext.setJobDescription(step)
        return lazy_frame(self, step, *asked)

    SparkHost.lazy_frame = describing  # type: ignore[method-assign]


def short_child(engine: str, path: str, few: str, runs: str) -> None:
    from dphh.reader.rows import Limits

    stop = None
    if engine == "spark":
        from dphh.engines.spark.cluster import find_or_start_spark

        stop = find_or_start_spark(None, Limits(threads=2))[0].stop
    for each in [few, *[path] * (int(runs) - 1)]:
        run(engine, each, 4.0)
    before = used()
    run(engine, path, 4.0)
    print(f"{used() - before:.2f}", flush=True)
    if stop is not None:
        stop()


#: A user's words, and a user's runs of up to three words, each as one text.
WORDS = "SELECT who, explode(split(what, ' ')) AS held FROM texts"
RUNS = " UNION ALL ".join(
    f"SELECT who, explode(transform(sequence(1, size(words) - {n - 1}), "
    f"place -> concat_ws(' ', slice(words, place, {n})))) AS held "
    f"FROM (SELECT who, split(what, ' ') AS words FROM texts) WHERE size(words) >= {n}"
    for n in (1, 2, 3)
)
HELD = {"items": WORDS, "ngrams": RUNS}


def plain_child(way: str, verb: str, path: str, few: str, runs: str) -> None:
    """Prints the processor seconds of each run after the first, which is of few texts."""
    from dphh.engines.spark.cluster import find_or_start_spark
    from dphh.reader.rows import Limits

    if way == "plain":
        settings = {"ui.enabled": "false", "driver.memory": "2g", "sql.shuffle.partitions": "2"}
        builder = SparkSession.builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(f"spark.{name}", value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    else:
        spark, _ = find_or_start_spark(None, Limits(threads=2))
    took = []
    for each in [few, *[path] * int(runs)]:
        before = used()
        if way == "plain":
            spark.read.parquet(each).createOrReplaceTempView("texts")
            held = f"SELECT DISTINCT who, held FROM ({HELD[verb]})"
            counted = spark.sql(f"SELECT held, count(*) AS users FROM ({held}) GROUP BY held")
            counted.write.format("noop").mode("overwrite").save()
        else:
            run("spark", each, 4.0, verb)
        took.append(used() - before)
    print(*(f"{seconds:.2f}" for seconds in took[1:]), flush=True)
    spark.stop()


def show_plain(folder: Path, runs: int) -> None:
    path, few = folder / "texts.parquet", folder / "few.parquet"
    texts_of_users(path, 500_000, 60_000)
    texts_of_users(few, 2000, 500)
    print(f"\n{'':<10}{'plain':>10}{'dphh':>10}{'ratio':>10}", flush=True)
    for verb in HELD:
        ways = [said("--plain-child", way, verb, path, few, runs) for way in ("plain", "dphh")]
        for plain, own in zip(*ways, strict=True):
            print(f"{verb:<10}{plain:10.2f}{own:10.2f}{own / plain:10.2f}", flush=True)


def used() -> float:
    return sum(ticks for _, ticks in processes().values())


def processes() -> dict[int, tuple[int, float]]:
    """This process and all below it: the parent of each, and the processor seconds that it and
    those of its children that have ended took."""
    found: dict[int, tuple[int, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        found[int(folder.name)] = int(fields[1]), ticks
    own, count = {os.getpid()}, 0
    while len(own) > count:
        count = len(own)
        own |= {pid for pid, (parent, _) in found.items() if parent in own}
    return {pid: found[pid] for pid in own if pid in found}


def peak(pid: int) -> float:
    """The most memory that a process had, in megabytes; nothing of one that has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int((status.partition("VmHWM:")[2].split() or [0])[0]) / 1024


def show_short(folder: Path, users: int, words: int, runs: int) -> None:
    path, few = folder / "users.parquet", folder / "few.parquet"
    short_texts(path, users, words)
    short_texts(few, 2000, words)
    print(f"\n{users:,} users of {words} words, n up to 3, without start-up, of processors")
    print(f"{'duckdb':>10}{'spark':>10}{'ratio':>10}", flush=True)
    (duckdb,), (spark,) = (
        said("--short-child", engine, path, few, runs) for engine in ("duckdb", "spark")
    )
    print(f"{duckdb:10.2f}{spark:10.2f}{spark / duckdb:10.1f}", flush=True)


def said(*arguments: object) -> list[float]:
    """The numbers in the last line that a process of this program prints."""
    command = [*COMMAND, *map(str, arguments)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return [float(number) for number in printed.splitlines()[-1].split()]


def by_step(log: str) -> dict[str, list[int]]:
    """Of Spark's event log, what all tasks of a step together did (HEADS)."""
    (events,) = (file for file in Path(log).rglob("*") if file.is_file())
    steps: dict[int, str] = {}
    totals: dict[str, list[int]] = defaultdict(lambda: [0] * len(HEADS))
    for line in events.open():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            said = event["Properties"].get("spark.job.description", "other")
            steps |= dict.fromkeys(event["Stage IDs"], said)
        elif event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
            metrics = event["Task Metrics"]
            shuffle, output = metrics["Shuffle Write Metrics"], metrics["Output Metrics"]
            found = totals[steps.get(event["Stage ID"], "other")]
            found[0] += shuffle["Shuffle Bytes Written"]
            found[1] += shuffle["Shuffle Records Written"]
            found[2] += output["Bytes Written"]
            found[3] += output["Records Written"]
            found[4] += metrics["Executor Run Time"]
            found[5] += metrics["Result Size"]
    return totals


#: Of DuckDB's whole process, and of all processes of a cluster from its start.
COSTS = (
    "duckdb, CPU s", "seconds", "peak, MB",
    "spark, CPU s", "seconds", "driver, MB", "executors, MB",
)  # fmt: skip
HEADS = ("shuffled, bytes", "rows", "written, bytes", "rows", "task ms", "to the driver")


def show_steps(totals: dict[str, list[int]]) -> None:
    print(f"\n{'step, all levels':<32}" + "".join(f"{head:>16}" for head in HEADS))
    for step, found in totals.items():
        print(f"{step:<32}" + "".join(f"{number:16,}" for number in found), flush=True)


def show_scale(folder: Path, millions: list[float]) -> None:
    """Of each size; and for a billion, along the line through the two largest sizes and along the
    power of the number of users that joins them."""
    heads = (*COSTS, *HEADS)
    sizes = [int(each * 1e6) for each in millions]
    found = []
    for users in sizes:
        path = folder / f"{users}.parquet"
        short_texts(path, users, 10)
        duckdb = measured(*COMMAND, "--duckdb-child", str(path))
        with tempfile.TemporaryDirectory() as log:
            spark = said("--scale-child", path, log)
            totals = by_step(log)
        show_steps(totals)
        steps = (sum(column) for column in zip(*totals.values(), strict=True))
        found.append([*duckdb, *spark, *steps])
    print(f"\n{'':<16}" + "".join(f"{users:>14,}" for users in sizes), end="")
    print(f"{'more, a user':>14}{'10^9, line':>14}{'10^9, power':>14}")
    (x, z), (low, high) = sizes[-2:], found[-2:]
    for row, head in enumerate(heads):
        slope = (high[row] - low[row]) / (z - x)
        line = high[row] + slope * (1e9 - z)
        power = high[row] * (1e9 / z) ** (log10(high[row] / low[row]) / log10(z / x))
        print(f"{head:<16}" + "".join(f"{size[row]:>14,.0f}" for size in found), end="")
        print(f"{slope:>14.2g}{line:>14.3g}{power:>14.3g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, nargs="*", default=[], help="millions, two or more")
    parser.add_argument("--plain", action="store_true", help="beside an exact count in Spark")
    parser.add_argument("--short", type=int, help="users")
    parser.add_argument("--words", type=int, default=10, help="of a user, with --short")
    parser.add_argument("--runs", type=int, default=1, help="of a process")
    asked = parser.parse_args()
    if asked.scale and len(asked.scale) < 2:
        parser.error("--scale compares sizes: give two or more")
    with tempfile.TemporaryDirectory() as folder:
        if asked.plain:
            show_plain(Path(folder), asked.runs)
        if asked.short:
            show_short(Path(folder), asked.short, asked.words, asked.runs)
        if asked.scale:
            show_scale(Path(folder), asked.scale)


if __name__ == "__main__":
    children = {
        "--duckdb-child": lambda path: run("duckdb", path, 1.0),
        "--scale-child": scale_child,
        "--short-child": short_child,
        "--plain-child": plain_child,
    }
    if sys.argv[1:2] and sys.argv[1] in children:
        children[sys.argv[1]](*sys.argv[2:])
    else:
        main()
