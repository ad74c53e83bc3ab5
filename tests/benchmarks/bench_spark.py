"""`ngrams` on Spark beside a plain PySpark job, how its time grows, and what it shuffles.

    python tests/benchmarks/bench_spark.py [--data DIR] [--users 1 2 5 10] [--tokens 20]
                                            [--shuffle] [--skip-msnbc]
    python tests/benchmarks/bench_spark.py --skip-msnbc --scale 0.1 1 10
    python tests/benchmarks/bench_spark.py --skip-msnbc --short 500000 [--times 2] [--words 10]
                                            [--runs 3]

Every row is a process of its own with `local[2]`: wall seconds, and the processor seconds of all
its processes, which are what to compare on a machine that others use. The plain job is what one
writes first: at each level it spells out every k-gram as a string, leaves out repetitions of a
user, and counts. It is not private. `--users` are millions, of a generated corpus of 8 words each
and n to 3; `--tokens` are millions, of users with 500 words each and n to 5.
`--shuffle` reads Spark's event log: bytes shuffled and written by each step.
`--scale` makes the table of scale.md, beside this file: the default `ngrams` to n = 3 of so many
million users of 10 words each, what more users add between two sizes, and what a billion would
take by that.
`--short` compares the default `ngrams` of so many users of 10 words (`--words`), at epsilon 4, with
DuckDB's: processor seconds of the second run of a process and all below it, in a Spark that dphh
started. The first run, of 2,000 users, starts Java and workers and reaches each step. With `--runs`
the corpus is read so often, and the last run is what counts: Java compiles less and less.
"""

from __future__ import annotations

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

HERE = Path(__file__).parents[2]
MASTER = "local[2]"
DEFAULT = "ngrams, forecast"


def session(memory: str, log: str | None) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", memory)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if log is not None:
        builder = builder.config("spark.eventLog.enabled", "true")
        builder = builder.config("spark.eventLog.compress", "false")
        builder = builder.config("spark.eventLog.rolling.enabled", "false")
        builder = builder.config("spark.eventLog.dir", f"file://{log}")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def plain(spark: Any, path: str, max_n: int) -> None:
    """Counts the users of every k-gram, level by level, over exploded strings."""
    from pyspark.sql import functions as f

    words = spark.read.parquet(path).select("user_id", f.split("text", " ").alias("words"))
    for n in range(1, max_n + 1):
        starts = f.sequence(f.lit(1), f.size("words") - n + 1)
        grams = f.transform(starts, lambda i: f.array_join(f.slice("words", i, n), " "))  # noqa: B023
        held = words.filter(f.size("words") >= n).select("user_id", f.explode(grams).alias("gram"))
        counts = held.distinct().groupBy("gram").count()
        counts.write.mode("overwrite").format("noop").save()


def private(path: str, max_n: int, method: str) -> None:
    import dphh

    corpus = dphh.Corpus(path, user="user_id", text="text", split="white space", lower=False)
    plan = dphh.ngrams(corpus, max_n=max_n, epsilon=1, delta=1e-7, max_items=10, method=method)
    with tempfile.TemporaryDirectory() as folder:
        plan.run(engine="spark", ledger=Path(folder) / "ledger.sqlite")


def child(how: str, path: str, max_n: str, memory: str, log: str) -> None:
    spark = session(memory, log or None)
    start = time.perf_counter()
    if how == "plain":
        plain(spark, path, int(max_n))
    else:
        private(path, int(max_n), "forecast" if how == DEFAULT else "dpne")
    print(f"{time.perf_counter() - start:.1f}", flush=True)
    java = spark.sparkContext._gateway.proc
    spark.stop()
    java.stdin.close()  # it ends then, and what it took is counted
    java.wait()


def measured(how: str, path: Path, max_n: int, log: str = "") -> tuple[float, float]:
    """Seconds of the job, Spark's start left out; processor seconds of the whole process tree."""
    out, inlet = os.pipe()
    arguments = [sys.executable, __file__, "--child", how, str(path), str(max_n), "6g", log]
    pid = os.posix_spawn(
        sys.executable,
        arguments,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, inlet, 1), (os.POSIX_SPAWN_CLOSE, out)],
    )
    os.close(inlet)
    with os.fdopen(out) as said:
        seconds = float(said.read().split()[-1])
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"{how}: failed")
    return seconds, used.ru_utime + used.ru_stime


def generated(folder: Path, users: int, words: int = 8) -> Path:
    """So many words a user, frequent words first: word n comes with probability about 1/n."""
    import duckdb

    path = folder / f"{users}-{words}.parquet"
    word = "'w' || CAST(floor(pow(100000, hash(u, i) / 18446744073709551616.0)) AS INTEGER)"
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT u AS user_id, string_agg({word}, ' ') AS text "
            f"FROM range({users}) AS a(u), range({words}) AS b(i) GROUP BY u) TO '{path}' "
            "(FORMAT parquet)"
        )
    return path


def show(title: str, path: Path, max_n: int, ways: list[str]) -> None:
    print(f"\n{title}\n{'':28}{'seconds':>9}{'of processors':>15}", flush=True)
    for how in ways:
        seconds, processors = measured(how, path, max_n)
        print(f"{how:<28}{seconds:9.1f}{processors:15.1f}", flush=True)


def short_child(engine: str, path: str, few: str, runs: str) -> None:
    from dphh import Corpus
    from dphh.engines.host import Limits

    stop = None
    if engine == "spark":
        from dphh.engines.spark.cluster import find_spark

        stop = find_spark(
            Corpus(few, user="user_id", text="text", split="white space", lower=False),
            Limits(threads=2),
        )[0].stop
    for each in [few, *[path] * (int(runs) - 1)]:
        short_run(engine, each)
    before = used_by_tree()
    short_run(engine, path)
    print(f"{used_by_tree() - before:.2f}", flush=True)
    if stop is not None:
        stop()


def short_run(engine: str, path: str) -> None:
    import dphh

    corpus = dphh.Corpus(path, user="user_id", text="text", split="white space", lower=False)
    plan = dphh.ngrams(corpus, max_n=3, epsilon=4, delta=1e-7)
    with tempfile.TemporaryDirectory() as folder:
        plan.run(engine=engine, ledger=Path(folder) / "ledger.sqlite")


def used_by_tree() -> float:
    """Processor seconds of this process and all below it, also of those that have ended."""
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
    return sum(found[pid][1] for pid in own if pid in found)


def show_short(folder: Path, users: int, words: int, times: int, runs: int) -> None:
    path, few = generated(folder, users, words), generated(folder, 2000, words)
    print(f"\n{users:,} users of {words} words, n up to 3, without start-up, of processors")
    print(f"{'duckdb':>10}{'spark':>10}{'ratio':>10}", flush=True)
    for _ in range(times):
        duckdb, spark = (
            float(
                subprocess.run(
                    [sys.executable, __file__, "--short-child", engine, path, few, str(runs)],
                    stdout=subprocess.PIPE,
                    check=True,
                ).stdout.split()[-1]
            )
            for engine in ("duckdb", "spark")
        )
        print(f"{duckdb:10.2f}{spark:10.2f}{spark / duckdb:10.1f}", flush=True)


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


HEADS = ("shuffled, bytes", "rows", "written, bytes", "rows", "task ms", "to the driver")


def show_steps(totals: dict[str, list[int]]) -> None:
    print(f"\n{'step, all levels':<32}" + "".join(f"{head:>16}" for head in HEADS))
    for step, found in totals.items():
        print(f"{step:<32}" + "".join(f"{number:16,}" for number in found), flush=True)


def show_shuffle(path: Path, max_n: int) -> None:
    with tempfile.TemporaryDirectory() as log:
        measured("ngrams, private", path, max_n, log)
        show_steps(by_step(log))


def show_scale(folder: Path, millions: list[float]) -> None:
    """Of each size; and for a billion, along the line through the two largest sizes and along the
    power of the number of users that joins them."""
    heads = ("seconds", "of processors", *HEADS)
    sizes = [int(each * 1e6) for each in millions]
    found = []
    for users in sizes:
        with tempfile.TemporaryDirectory() as log:
            spent = measured(DEFAULT, generated(folder, users, 10), 3, log)
            totals = by_step(log)
        show_steps(totals)
        found.append([*spent, *(sum(column) for column in zip(*totals.values(), strict=True))])
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=str(HERE.parent / "shared" / "data"))
    parser.add_argument("--users", type=float, nargs="*", default=[], help="millions")
    parser.add_argument("--tokens", type=float, nargs="*", default=[], help="millions")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--scale", type=float, nargs="*", default=[], help="millions, two or more")
    parser.add_argument("--short", type=int, help="users")
    parser.add_argument("--words", type=int, default=10, help="of a user, with --short")
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--runs", type=int, default=1, help="of a process, with --short")
    parser.add_argument("--skip-msnbc", action="store_true")
    asked = parser.parse_args()
    msnbc = Path(asked.data) / "msnbc.parquet"
    if not msnbc.exists():
        print(f"skipped: {msnbc} is not there")
    elif not asked.skip_msnbc:
        show("MSNBC, n up to 6, local[2]", msnbc, 6, ["ngrams, private", "plain"])
    with tempfile.TemporaryDirectory() as folder:
        for millions in asked.users:
            path = generated(Path(folder), int(millions * 1e6))
            title = f"{millions:g} million users of 8 words, n up to 3"
            show(title, path, 3, ["ngrams, private", "plain"])
            if asked.shuffle:
                show_shuffle(path, 3)
        for millions in asked.tokens:
            path = generated(Path(folder), int(millions * 1e6) // 500, 500)
            title = f"{millions:g} million tokens, 500 a user, n up to 5"
            show(title, path, 5, ["ngrams, private", "plain"])
        if asked.short:
            show_short(Path(folder), asked.short, asked.words, asked.times, asked.runs)
        if asked.scale:
            show_scale(Path(folder), asked.scale)
    if asked.shuffle and msnbc.exists() and not asked.skip_msnbc:
        show_shuffle(msnbc, 6)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    elif sys.argv[1:2] == ["--short-child"]:
        short_child(*sys.argv[2:])
    else:
        main()
