"""Each verb beside the exact query that one would write without privacy: time and memory.

    python -m tests.benchmarks.bench [WORD ...] [--size N] [--users N] [--engines duckdb,polars]
        [--memory 3GB] [--threads 2] [--frame] [--data DIR]

runs the rows of TABLE with a WORD in their names. Every line is a process of its own: its whole
seconds, imports and planning included, the processor seconds of all threads, which say more on a
busy machine, how many times those of the row's first line they are, and peak memory. dphh runs as
it does where it is installed: compiled beforehand. `bench_spark.py` has Spark, `items_found.py`
what is found.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import corpora

HERE = Path(__file__).parents[2]
COST = {"epsilon": 1.0, "delta": 1e-7}
ITEMS = [f"item-{i}" for i in range(1, 1001)]
LETTERS = 10

POSITIONS = """
CREATE TEMP TABLE p AS
WITH t AS (SELECT who, row_number() OVER () AS r, string_split(what, ' ') AS w FROM '{path}')
SELECT who, r, unnest(range(len(w))) AS i, unnest(w) AS token FROM t
"""


def n_grams_by_windows(max_n: int) -> list[str]:
    """For each length the users of every n-gram, as one counts them without privacy."""
    queries = [POSITIONS]
    for n in range(1, max_n + 1):
        words = ", ' ', ".join(["token", *(f"lead(token, {j}) OVER w" for j in range(1, n))])
        last = f"lead(token, {n - 1}) OVER w" if n > 1 else "token"
        queries.append(
            f"WITH g AS (SELECT who, concat({words}) AS gram, {last} AS l "
            "FROM p WINDOW w AS (PARTITION BY r ORDER BY i)) "
            "SELECT gram, count(DISTINCT who) AS users FROM g WHERE l IS NOT NULL GROUP BY gram"
        )
    return queries


USERS_OF_ITEMS = "SELECT what, count(DISTINCT who) FROM '{path}' GROUP BY what"
USERS_OF_WORDS = (
    "SELECT w, count(DISTINCT who) FROM (SELECT who, unnest(string_split(what, ' ')) AS w "
    "FROM '{path}') GROUP BY w"
)
USERS_OF_LISTED = (
    f"SELECT what, count(DISTINCT who) FROM '{{path}}' WHERE what IN {tuple(ITEMS)} GROUP BY what"
)
PREFIXES = [f"SELECT left(what, {k}), count(*) FROM '{{path}}' GROUP BY ALL"
            for k in range(1, LETTERS + 1)]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A corpus of a size that `--size` replaces, exact queries, and what verbs are asked for."""

    write: Callable[..., None]
    size: int
    exact: dict[str, list[str]]
    private: dict[str, tuple[str, dict[str, Any]]]
    #: Whether a row of the corpus is one item or a text.
    content: str = "text"
    users: int = 0


DPNE = {"max_n": 6, "method": "dpne", "max_items": 10}
TABLE = {
    "msnbc": Row(
        corpora.msnbc, 1, {"exact, windows": n_grams_by_windows(6)},
        {"dpne": ("ngrams", DPNE), "forecast": ("ngrams", {"max_n": 6}),
         "trie": ("trie", {"max_length": 6})},
    ),
    "text": Row(
        corpora.running_text, 20_000_000,
        {"floor": ["floor"], "exact, words": [USERS_OF_WORDS]},
        {"dpne": ("ngrams", {"max_n": 5, "method": "dpne", "max_items": 300}),
         "forecast": ("ngrams", {"max_n": 5}), "items": ("items", {"max_items": 300})},
        users=20_000,
    ),
    "items, many": Row(
        corpora.items_of_ten, 10_000_000, {"exact": [USERS_OF_ITEMS]}, {"items": ("items", {})},
        "item",
    ),
    "items, by name": Row(
        corpora.items_by_name, 10_000_000, {"exact": [USERS_OF_ITEMS]}, {"items": ("items", {})},
        "item",
    ),
    "counts": Row(
        corpora.items_of_ten, 3_000_000, {"exact": [USERS_OF_LISTED]},
        {"counts": ("counts", {"of": ITEMS})}, "item",
    ),
    "trie": Row(
        corpora.one_word_each, 3_000_000, {"exact": PREFIXES},
        {"trie": ("trie", {"max_length": LETTERS})}, "item",
    ),
    "ldp_trie": Row(
        corpora.one_word_each, 1_500_000, {},
        {"ldp_trie": ("ldp_trie", {"local_epsilon": 10.0, "delta": 1e-10, "max_length": 15,
                                   "users_per_level": 50_000, "contributions": 1, "keep": 10_000,
                                   "passes": 2, "pad": True})},
        "item",
    ),
}  # fmt: skip


def exactly(path: str, queries: list[str], threads: int) -> None:
    import duckdb
    import pyarrow as pa

    con = duckdb.connect(config={"threads": threads})
    if queries == ["floor"]:  # to read, split and number the words, and nothing else
        reader = con.sql(f"SELECT string_split(what, ' ') AS w FROM '{path}'").to_arrow_reader()
        pa.chunked_array(batch.column("w").flatten() for batch in reader).dictionary_encode()
        return
    for query in queries:
        found = con.sql(query.format(path=path))
        if found is not None:
            found.to_arrow_table()


def privately(row: Row, way: str, engine: str, path: str, asked: argparse.Namespace) -> None:
    import dphh

    verb, options = row.private[way]
    # What the exact queries split by.
    words = {"split": "white space", "lower": False} if row.content == "text" else {}
    source: Any = path
    if asked.frame:
        import polars as pl

        source = pl.scan_parquet(path)
    corpus = dphh.Corpus(source, user="who", **{row.content: "what"}, **words)
    price = {} if verb == "ldp_trie" else COST
    plan = getattr(dphh, verb)(corpus, **{**price, **options})
    limits = {"threads": asked.threads, "memory_limit": asked.memory} if engine == "duckdb" else {}
    with tempfile.TemporaryDirectory() as folder:
        ledger = dphh.Ledger(Path(folder) / "ledger.sqlite", create=True)
        plan.run(engine=engine, ledger=ledger, **limits)


def measured(*command: str) -> tuple[float, float, float]:
    """Processor seconds of a process and of all that it waited for, seconds, peak megabytes."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=HERE, env=environment) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} failed")
    seconds = time.perf_counter() - start
    return used.ru_utime + used.ru_stime, seconds, used.ru_maxrss / 1024


def show(name: str, row: Row, asked: argparse.Namespace, folder: Path) -> None:
    path = folder / f"{name}.parquet"
    row.write(path, asked.size or row.size, asked.users or row.users, asked.data)
    print(f"\n{name}, size {asked.size or row.size:,}\n{'':<28}{'CPU s':>8}{'times':>8}"
          f"{'seconds':>9}{'MB':>8}", flush=True)  # fmt: skip
    ways = [(way, "exact") for way in row.exact]
    ways += [(way, engine) for way in row.private for engine in asked.engines.split(",")]
    base = None
    for way, how in ways:
        command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.bench", name]
        command += ["--child", way, how, str(path), "--threads", str(asked.threads)]
        command += ["--memory", asked.memory] if asked.memory else []
        command += ["--frame"] if asked.frame else []
        cpu, seconds, megabytes = measured(*command)
        base = base or cpu
        print(f"{f'{way}, {how}':<28}{cpu:>8.1f}{cpu / base:>8.1f}{seconds:>9.1f}"
              f"{megabytes:>8,.0f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", default=[""])
    parser.add_argument("--size", type=int, help="rows or words; of MSNBC, how many times over")
    parser.add_argument("--users", type=int, help="of running text")
    parser.add_argument("--engines", default="duckdb,polars")
    parser.add_argument("--threads", type=int, default=2, help="of DuckDB")
    parser.add_argument("--frame", action="store_true", help="dphh gets a lazy Polars frame")
    parser.add_argument("--memory", help="what DuckDB may take, such as 3GB")
    parser.add_argument("--data", type=Path, default=HERE.parent / "shared" / "data")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        way, how, path = asked.child
        row = TABLE[asked.words[0]]
        if how == "exact":
            exactly(path, row.exact[way], asked.threads)
        else:
            privately(row, way, how, path, asked)
        return
    compiling = [sys.executable, "-m", "compileall", "-q", "dphh", "udfs"]
    subprocess.run(compiling, cwd=HERE, check=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, row in TABLE.items():
            if any(word in name for word in asked.words):
                show(name, row, asked, Path(folder))


if __name__ == "__main__":
    main()
