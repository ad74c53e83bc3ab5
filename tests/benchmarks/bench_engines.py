"""The same run on every engine, in one go, and how its cost grows with the number of users.

    python tests/benchmarks/bench_engines.py [--data DIR] [--engines duckdb,polars] [--millions 1,5]

First `ngrams` to six words on all of MSNBC, the engines in turn, a few times each. Then the same
on MSNBC's users taken 1 to 10 times over (each copy is another user), and `trie` on one word each
of as many users. Every row is a process of its own: its whole time, imports and planning included,
its processor time (user and system, all threads), which says more on a busy machine, and its peak
memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).parents[2]
ENGINES = ("duckdb", "polars")


def run_verb(verb: str, engine: str, path: str, max_n: int = 6) -> None:
    import dphh

    corpus = dphh.Corpus(path, user="user_id", text="text", split="white space", lower=False)
    cost = {"epsilon": 1.0, "delta": 1e-7}
    plan = (
        dphh.ngrams(corpus, max_n=max_n, max_items=10, method="dpne", **cost)
        if verb == "ngrams"
        else dphh.trie(corpus, max_length=max_n, **cost)
    )
    with tempfile.TemporaryDirectory() as folder:
        plan.run(engine=engine, ledger=Path(folder) / "ledger.sqlite")


def measured(verb: str, engine: str, path: Path) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak megabytes of one child process."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, __file__, "--child", verb, engine, str(path)], cwd=HERE
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{verb} on {engine} failed")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def copies(path: Path, times: int, folder: Path) -> Path:
    """A corpus so many times over: each copy of a user is a user of its own.

    Written by a process of its own: what this one held would count as its children's peak.
    """
    grown = folder / f"{times}.parquet"
    if not grown.exists():
        query = (
            f"COPY (SELECT user_id + 1_000_000 * copy AS user_id, text FROM '{path}', "
            f"range({times}) AS c(copy)) TO '{grown}' (FORMAT parquet)"
        )
        write = "import duckdb, sys; duckdb.connect().execute(sys.argv[1])"
        subprocess.run([sys.executable, "-c", write, query], check=True)
    return grown


def say(label: str, engine: str, runs: list[tuple[float, float, float]]) -> None:
    wall, cpu, peak = (median(values) for values in zip(*runs, strict=True))
    least, most = (f"{pick(run[1] for run in runs):.1f}" for pick in (min, max))
    print(
        f"{label:<28} {engine:<8} {wall:>8.1f} {cpu:>12.1f} {peak:>9,.0f}   {least} to {most}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parent / "shared" / "data")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--millions", default="1,2,5,10")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    msnbc = asked.data / "msnbc.parquet"
    if not msnbc.exists():
        raise SystemExit(f"no {msnbc.name} in {asked.data}; say --data DIR")
    engines = asked.engines.split(",")

    print(f"{os.cpu_count()} processors; the median of the runs, and the range of their seconds")
    print(f"{'':<28} {'engine':<8} {'wall s':>8} {'processor s':>12} {'peak MB':>9}")
    runs: dict[str, list[tuple[float, float, float]]] = {engine: [] for engine in engines}
    for _ in range(asked.times):
        for engine in engines:
            runs[engine].append(measured("ngrams", engine, msnbc))
    for engine in engines:
        say("ngrams to 6, MSNBC", engine, runs[engine])
    with tempfile.TemporaryDirectory() as folder:
        for verb in ("ngrams", "trie"):
            for millions in map(int, asked.millions.split(",")):
                path = copies(msnbc, millions, Path(folder))
                for engine in engines:
                    label = f"{verb}, {millions} million users"
                    say(label, engine, [measured(verb, engine, path)])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run_verb(*sys.argv[2:])
    else:
        main()
