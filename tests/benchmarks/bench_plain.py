"""`counts` and `trie` beside the exact queries that one would write without privacy, in DuckDB.

    python tests/benchmarks/bench_plain.py [--rows 3000000]

Processor seconds from planning to the release, each in a process of its own; imports are left out.
`counts` of 1,000 items on 10 rows a user, beside `count(DISTINCT user)` of the same items; `trie`
to ten letters on one word a user, beside a `GROUP BY` of each of the ten prefixes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa
from bench_items import generate  # type: ignore[import-not-found]  # a script's neighbour

COST = {"epsilon": 1.0, "delta": 1e-7}
ITEMS = [f"item-{i}" for i in range(1, 1001)]
LETTERS = 10


def exactly(verb: str, path: str) -> None:
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.register("asked", pa.table({"item": ITEMS}))
        queries = [
            f"SELECT left(text, {k}), count(*) FROM '{path}' GROUP BY ALL"
            for k in range(1, LETTERS + 1)
        ]
        if verb == "counts":
            queries = [
                f"SELECT text, count(DISTINCT user_id) FROM '{path}' JOIN asked ON text = item "
                "GROUP BY text"
            ]
        for query in queries:
            con.sql(query).to_arrow_table()


def privately(verb: str, path: str, engine: str) -> None:
    from dphh import Corpus, counts, trie

    corpus = Corpus(path, user="user_id", item="text")
    plan = (
        counts(corpus, of=ITEMS, **COST)
        if verb == "counts"
        else trie(corpus, max_length=LETTERS, **COST)
    )
    with tempfile.TemporaryDirectory() as folder:
        plan.run(engine=engine, ledger=Path(folder) / "ledger.sqlite")


def child(verb: str, path: str, how: str) -> None:
    if how != "exactly":
        from dphh.engines.duckdb import host as _  # noqa: F401
        from dphh.engines.polars import host as _other  # noqa: F401
    before = time.process_time()
    if how == "exactly":
        exactly(verb, path)
    else:
        privately(verb, path, how)
    print(f"{verb:<8}{how:<10}{time.process_time() - before:>8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        for verb, per_user in (("counts", 10), ("trie", 1)):
            path = Path(folder) / f"{verb}.parquet"
            generate(path, rows, per_user, per_user == 1, 50_000)
            for how in ("exactly", "duckdb", "polars"):
                asked = [sys.executable, __file__, "--child", verb, str(path), how]
                subprocess.run(asked, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
