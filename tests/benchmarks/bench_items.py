"""`items` beside the GROUP BY that one would write without privacy, in DuckDB, in the same run.

    python tests/benchmarks/bench_items.py [--rows 10000000] [--repeat 3] [--threads 2]

Each measurement is a process of its own: its seconds and processor seconds from planning to the
release, and its peak memory; of several the one of fewest processor seconds counts. Imports are
measured apart. Both sides read the same Parquet file, with the same reading of its content. Without
privacy the question of `items` is how many distinct users hold each item, `count(DISTINCT user)`,
and every count is fetched; `count(*)`, which lets a user count many times, is there to compare.

Corpora are one item a row, items by a long-tailed law over as many as there are rows (a fifth of
them is found) or over 50,000; and MSNBC's words, where it is at hand.
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
#: What is measured: a plain query, or `items` on an engine by a method.
PLAIN = {"count(DISTINCT user)": "count(DISTINCT user_id)", "count(*)": "count(*)"}
PRIVATE = {
    "items, duckdb": ("duckdb", "gaussian"),
    "items, polars": ("polars", "gaussian"),
    "items, duckdb, sips": ("duckdb", "sips"),
}


def generate(path: Path, rows: int, per_user: int, names: bool, kinds: int) -> None:
    """One item a row: so many rows a user, items by a long-tailed law over so many kinds."""
    number = f"hash(i, 'user') % {max(rows // per_user, 1)}" if per_user > 1 else "i"
    user = f"printf('user-%09d', CAST({number} AS BIGINT))" if names else number
    with duckdb.connect() as con:
        con.execute(
            f"""
            COPY (
                SELECT
                    {user} AS user_id,
                    'item-' || CAST(floor(pow({kinds}, hash(i, 'item') / 18446744073709551616.0))
                        AS BIGINT) AS text
                FROM range({rows}) AS r(i)
            ) TO '{path}' (FORMAT parquet)
            """
        )


def private(path: str, reading: str, engine: str, method: str, threads: int) -> int:
    from dphh import Corpus, items

    words = {"split": "white space", "lower": False} if reading == "words" else {}
    corpus = Corpus(path, user="user_id", text="text", as_=reading, **words)
    plan = items(corpus, epsilon=EPSILON, delta=DELTA, method=method)
    limits = {"threads": threads} if engine == "duckdb" else {}
    with tempfile.TemporaryDirectory() as folder:
        return len(plan.run(engine=engine, ledger=Path(folder) / "ledger.sqlite", **limits))


def plain(path: str, reading: str, counted: str, threads: int) -> int:
    word = "unnest(string_split(text, ' '))" if reading == "words" else "text"
    with duckdb.connect(config={"threads": threads}) as con:
        con.execute("SET enable_progress_bar = false")
        found = con.sql(
            f"""
            SELECT word, {counted} AS users
            FROM (SELECT user_id, {word} AS word FROM '{path}') WHERE word <> '' GROUP BY word
            """
        ).to_arrow_table()
        return found.num_rows


def imports() -> int:
    """What a process pays before it begins: dphh, with what planning and running need of it."""
    from dphh import Corpus, items
    from dphh.engines.duckdb.host import DuckDBHost
    from dphh.engines.polars.host import PolarsHost

    return len([Corpus, items, DuckDBHost, PolarsHost])


def child(arguments: list[str]) -> None:
    kind, path, reading, threads = arguments
    if kind in PRIVATE:
        imports()
    start, spent = time.perf_counter(), time.process_time()
    if kind == "imports":
        rows = imports()
    elif kind in PLAIN:
        rows = plain(path, reading, PLAIN[kind], int(threads))
    else:
        rows = private(path, reading, *PRIVATE[kind], int(threads))
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - start,
                "cpu": time.process_time() - spent,
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "rows": rows,
            }
        )
    )


def measure(repeat: int, threads: int, *arguments: str) -> dict[str, float]:
    environment = os.environ | {"POLARS_MAX_THREADS": str(threads)}
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--child", *arguments, str(threads)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            ).stdout
        )
        for _ in range(repeat)
    ]
    return min(runs, key=lambda run: run["cpu"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sips", action="store_true", help="its three rounds too")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    rows = asked.rows
    with tempfile.TemporaryDirectory() as folder:
        corpora = [("MSNBC's words, 989,818 rows", MSNBC, "words")] if MSNBC.exists() else []
        for name, per_user, names, kinds in (
            ("10 rows a user, many items", 10, False, rows),
            ("10 rows a user, 50,000 items, users by name", 10, True, 50_000),
            ("one row a user, 50,000 items, users by name", 1, True, 50_000),
        ):
            path = Path(folder) / f"{len(corpora)}.parquet"
            generate(path, rows, per_user, names, kinds)
            corpora.append((f"{rows:,} rows: {name}", path, "whole"))
        print(f"DuckDB {duckdb.__version__}, {asked.threads} threads, best of {asked.repeat}\n")
        print(f"{'':<28}{'CPU s':>8}{'ratio':>8}{'seconds':>9}{'peak MB':>9}{'items':>12}")
        once = measure(asked.repeat, asked.threads, "imports", "", "")
        print(f"{'importing dphh':<28}{once['cpu']:>8.2f}{'':>8}{once['seconds']:>9.2f}")
        for name, path, reading in corpora:
            print(f"\n{name}, as {reading}", flush=True)
            base = None
            for kind in (*PLAIN, *PRIVATE):
                if kind.endswith("sips") and not asked.sips:
                    continue
                run = measure(asked.repeat, asked.threads, kind, str(path), reading)
                base = base or run
                print(
                    f"  {kind:<26}{run['cpu']:>8.2f}{run['cpu'] / base['cpu']:>8.2f}"
                    f"{run['seconds']:>9.2f}{run['megabytes']:>9,.0f}{run['rows']:>12,}",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
