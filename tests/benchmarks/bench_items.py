"""`items` beside the same non-private GROUP BY in DuckDB, in the same run: time and peak memory.

    python tests/benchmarks/bench_items.py [--rows 10000000] [--repeat 3] [--threads 2]

Each measurement is a process of its own; of several, the fastest and its peak memory count. Imports
are measured apart. Both sides read the same Parquet file, with the same reading of its content. The
non-private side counts distinct users per item and fetches every count: what one would write
without dphh.
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

MSNBC = Path(__file__).parents[3] / "shared" / "data" / "msnbc.parquet"
EPSILON, DELTA = 1.0, 1e-7


def generate(path: Path, rows: int) -> None:
    """One item a row: 10 rows a user, items by a long-tailed law over as many as there are rows."""
    with duckdb.connect() as con:
        con.execute(
            f"""
            COPY (
                SELECT
                    hash(i, 'user') % {max(rows // 10, 1)} AS user_id,
                    'item-' || CAST(floor(pow({rows}, hash(i, 'item') / 18446744073709551616.0))
                        AS BIGINT) AS text
                FROM range({rows}) AS r(i)
            ) TO '{path}' (FORMAT parquet)
            """
        )


def private(path: str, reading: str, method: str, threads: int) -> int:
    from dphh import Corpus, items

    corpus = Corpus(path, user="user_id", text="text", as_=reading)
    plan = items(corpus, epsilon=EPSILON, delta=DELTA, method=method)
    with tempfile.TemporaryDirectory() as folder:
        return len(plan.run(ledger=Path(folder) / "ledger.sqlite", threads=threads))


def plain(path: str, reading: str, threads: int) -> int:
    word = "unnest(string_split(text, ' '))" if reading == "words" else "text"
    with duckdb.connect(config={"threads": threads}) as con:
        con.execute("SET enable_progress_bar = false")
        found = con.sql(
            f"""
            SELECT word, count(DISTINCT user_id) AS users
            FROM (SELECT user_id, {word} AS word FROM '{path}') WHERE word <> '' GROUP BY word
            """
        ).to_arrow_table()
        return found.num_rows


def imports() -> int:
    """What both sides pay before they begin, and dphh besides."""
    import dphh

    return len(dphh.__all__)


def child(arguments: list[str]) -> None:
    kind, path, reading, threads = arguments
    if kind not in ("plain", "imports"):
        imports()
    start = time.perf_counter()
    if kind == "imports":
        rows = imports()
    elif kind == "plain":
        rows = plain(path, reading, int(threads))
    else:
        rows = private(path, reading, kind, int(threads))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": peak, "rows": rows}))


def measure(repeat: int, *arguments: str) -> dict[str, float]:
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--child", *arguments],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
        )
        for _ in range(repeat)
    ]
    return min(runs, key=lambda run: run["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        generated = Path(folder) / "generated.parquet"
        generate(generated, asked.rows)
        corpora = [(f"generated, {asked.rows:,} rows", generated, "whole")]
        if MSNBC.exists():
            corpora.insert(0, ("msnbc.parquet, 989,818 rows", MSNBC, "words"))
        print(f"DuckDB {duckdb.__version__}, {asked.threads} threads, best of {asked.repeat}\n")
        print(f"{'':<30}{'seconds':>10}{'ratio':>8}{'peak MB':>10}{'ratio':>8}{'items':>12}")
        shared = measure(asked.repeat, "imports", "", "", "1")
        print(
            f"{'importing dphh':<30}{shared['seconds']:>10.2f}{'':8}{shared['megabytes']:>10,.0f}"
        )
        for name, path, reading in corpora:
            print(f"\n{name}, as {reading}")
            base = measure(asked.repeat, "plain", str(path), reading, str(asked.threads))
            for kind in ("plain", "gaussian", "sips"):
                run = (
                    base
                    if kind == "plain"
                    else measure(asked.repeat, kind, str(path), reading, str(asked.threads))
                )
                label = "not private: GROUP BY" if kind == "plain" else f"items, {kind}"
                print(
                    f"  {label:<28}{run['seconds']:>10.2f}{run['seconds'] / base['seconds']:>8.2f}"
                    f"{run['megabytes']:>10,.0f}{run['megabytes'] / base['megabytes']:>8.2f}"
                    f"{run['rows']:>12,}"
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
