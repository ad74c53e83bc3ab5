"""`ngrams` beside the exact, non-private count of the same n-grams in DuckDB, in one run.

    python tests/benchmarks/bench_ngrams.py [--data DIR] [--profile]

Every row is a process of its own: its whole time, imports and planning included, its processor time
and its peak memory. `bench_text.py` has running text. Three exact counts are measured, because how
one writes it matters more than anything: self-joins of positions, window functions within each
text, and strings by a running window.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from measuring import HERE, measured  # type: ignore[import-not-found]

from dphh.asking.without_pandas import leave_pandas_out

POSITIONS = """
CREATE TEMP TABLE p AS
WITH t AS (
    SELECT {user} AS u, row_number() OVER () AS r, string_split({text}, ' ') AS w FROM '{path}'
)
SELECT u, r, unnest(range(len(w))) AS i, unnest(w) AS token FROM t
"""


def exact_by_self_joins(con, path: str, user: str, text: str, max_n: int) -> None:
    con.execute(POSITIONS.format(path=path, user=user, text=text))
    con.execute("CREATE TEMP TABLE g AS SELECT u, r, i, token AS gram FROM p")
    for n in range(1, max_n + 1):
        if n > 1:
            con.execute(
                "CREATE OR REPLACE TEMP TABLE g AS SELECT g.u, g.r, g.i, "
                "g.gram || ' ' || p.token AS gram "
                f"FROM g JOIN p ON g.r = p.r AND p.i = g.i + {n - 1}"
            )
        con.execute(
            f"CREATE TEMP TABLE c{n} AS "
            "SELECT gram, count(DISTINCT u) AS users FROM g GROUP BY gram"
        )


def exact_by_windows(con, path: str, user: str, text: str, max_n: int) -> None:
    con.execute(POSITIONS.format(path=path, user=user, text=text))
    for n in range(1, max_n + 1):
        words = ", ' ', ".join(["token", *(f"lead(token, {j}) OVER w" for j in range(1, n))])
        last = f"lead(token, {n - 1}) OVER w" if n > 1 else "token"
        con.execute(
            f"CREATE TEMP TABLE c{n} AS WITH g AS (SELECT u, concat({words}) AS gram, {last} AS l "
            "FROM p WINDOW w AS (PARTITION BY r ORDER BY i)) "
            "SELECT gram, count(DISTINCT u) AS users FROM g WHERE l IS NOT NULL GROUP BY gram"
        )


def exact_by_strings(con, path: str, user: str, text: str, max_n: int) -> None:
    con.execute(
        f"CREATE TEMP TABLE p AS WITH t AS (SELECT {user} AS u, "
        f"list_append(string_split({text}, ' '), NULL) AS w FROM '{path}') "
        "SELECT u, unnest(w) AS token FROM t"
    )
    for n in range(1, max_n + 1):
        gram = "token" + "".join(f" || ' ' || lead(token, {j}) OVER ()" for j in range(1, n))
        con.execute(
            f"CREATE TEMP TABLE c{n} AS WITH g AS (SELECT u, {gram} AS gram FROM p), "
            "d AS (SELECT DISTINCT u, gram FROM g WHERE gram IS NOT NULL) "
            "SELECT gram, count(*) AS users FROM d GROUP BY gram"
        )


EXACT = {
    "exact: self-joins": exact_by_self_joins,
    "exact: windows in texts": exact_by_windows,
    "exact: strings": exact_by_strings,
}


def run_exact(how: str, path: str, user: str, text: str, max_n: int, memory: str) -> None:
    import duckdb

    con = duckdb.connect(config={"threads": 2, "memory_limit": memory})
    EXACT[how](con, path, user, text, max_n)


def run_private(
    engine: str, path: str, user: str, text: str, max_n: int, memory: str, max_items: int,
    profile: bool,
) -> None:  # fmt: skip
    leave_pandas_out()
    import dphh

    if profile:
        _show_steps()
    corpus = dphh.Corpus(path, user=user, text=text)
    plan = dphh.ngrams(
        corpus, max_n=max_n, epsilon=1, delta=1e-7, max_items=max_items, method="dpne"
    )
    with tempfile.TemporaryDirectory() as folder:
        limits = {"threads": 2, "memory_limit": memory} if engine == "duckdb" else {}
        plan.run(engine=engine, ledger=Path(folder) / "ledger.sqlite", **limits)


def _show_steps() -> None:
    from dphh.engines.duckdb.run import DuckDBRun

    execute = DuckDBRun.execute

    def timed(self, name, **parameters):
        wall, cpu = time.perf_counter(), time.process_time()
        execute(self, name, **parameters)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"    {wall:8.2f} s  {cpu:8.2f} s of processors  {name}", file=sys.stderr)

    DuckDBRun.execute = timed  # type: ignore[method-assign]


def compare(title: str, exact: list[str], corpus: list[str], max_items: int, profile: bool) -> None:
    print(f"\n{title}\n{'':28}{'seconds':>9}{'CPU s':>8}{'times':>9}{'CPU':>9}{'MB':>8}")
    flag = ["--profile"] if profile else []
    this = (sys.executable, __file__, "--child")
    rows = {how: measured(*this, how, *corpus) for how in exact}
    for engine in ("duckdb", "polars"):
        options = (*corpus, "--max-items", str(max_items), *flag)
        rows[f"dpne, {engine}"] = measured(*this, engine, *options)
    fastest = [min(rows[how][kind] for how in exact) for kind in (0, 1)]
    for name, (seconds, processors, megabytes) in rows.items():
        ratios = f"{seconds / fastest[0]:9.2f}{processors / fastest[1]:9.2f}"
        print(f"{name:<28}{seconds:9.2f}{processors:8.1f}{ratios}{megabytes:8.0f}", flush=True)
    print("(times: of the fastest exact count, seconds and CPU seconds)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=str(HERE.parent / "shared" / "data"))
    parser.add_argument("--profile", action="store_true", help="the time of every step")
    asked = parser.parse_args()
    msnbc = Path(asked.data) / "msnbc.parquet"
    if msnbc.exists():
        corpus = [str(msnbc), "user_id", "text", "6", "8GB"]
        compare("MSNBC, n up to 6", list(EXACT), corpus, 10, asked.profile)
    else:
        print(f"skipped: {msnbc} is not there")


def child(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("how")
    parser.add_argument("path")
    parser.add_argument("user")
    parser.add_argument("text")
    parser.add_argument("max_n", type=int)
    parser.add_argument("memory")
    parser.add_argument("--max-items", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    x = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if x.how in ("duckdb", "polars"):
        run_private(x.how, x.path, x.user, x.text, x.max_n, x.memory, x.max_items, x.profile)
    else:
        run_exact(x.how, x.path, x.user, x.text, x.max_n, x.memory)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
