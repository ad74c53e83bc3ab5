"""One run of `ldp_trie`, Parquet to release, time and peak memory.

    python tests/benchmarks/bench_ldp_trie.py [--threads 2] [--passes 2] [--levels 15]
                                              [--users-per-level 500000]

A generated table of words of 2 to 9 letters, by a long-tailed law over a million of them, one for
each of passes x levels x users per level users (15 million as is); string.printable, local epsilon
10, keep 10,000, so that reports hold 46 of 1,010,001 values. One report a user. Each measurement is
a process of its own; imports come before, planning counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from bench_trie import generate


def run(path: str, users: int, levels: int, passes: int, threads: int) -> dict[str, float]:
    from dphh import Corpus, ldp_trie

    start = time.perf_counter()
    plan = ldp_trie(
        Corpus(path, user="user_id", item="word"),
        local_epsilon=10.0,
        delta=1e-10,
        users_per_level=users,
        contributions=1,
        max_length=levels,
        keep=10_000,
        passes=passes,
    )
    with tempfile.TemporaryDirectory() as folder:
        said: list[str] = []
        release = plan.run(
            ledger=Path(folder) / "ledger.sqlite",
            threads=threads,
            progress=lambda line: said.append(f"{time.perf_counter() - start:8.1f} s  {line}"),
        )
    if os.environ.get("DPHH_FULL") == "1":
        print("\n".join(said), file=sys.stderr)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
        "words": sum(release.to_arrow().column("ended").to_pylist()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--users-per-level", type=int, default=500_000)
    parser.add_argument("--levels", type=int, default=15)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    size = (asked.users_per_level, asked.levels, asked.passes)
    if asked.child:
        print(json.dumps(run(asked.child, *size, asked.threads)))
        return
    users = asked.users_per_level * asked.levels * asked.passes
    print(f"DuckDB {duckdb.__version__}, {asked.threads} threads, {users:,} users\n")
    print(f"{'seconds':>10}{'CPU s':>10}{'peak MB':>10}{'words':>10}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.parquet"
        generate(path, users)
        options = zip(
            ("--users-per-level", "--levels", "--passes", "--threads", "--child"),
            (*size, asked.threads, path),
            strict=True,
        )
        found = json.loads(
            subprocess.run(
                [sys.executable, __file__, *(str(x) for option in options for x in option)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
        )
        print(
            f"{found['seconds']:>10.1f}{found['cpu']:>10.1f}"
            f"{found['megabytes']:>10,.0f}{found['words']:>10,}"
        )


if __name__ == "__main__":
    main()
