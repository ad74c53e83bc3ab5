"""`ngrams` beside the exact, non-private count of the same n-grams, in one run.

    python tests/benchmarks/bench_ngrams.py [--data DIR] [--profile]

Every row is a process of its own: its whole time, imports and planning included, its processor time
and its peak memory. `bench_text.py` has running text. Five exact counts are measured, because how
one writes it matters more than anything: self-joins of positions, window functions within each
text, and strings by a running window, in DuckDB; strings in Polars, and numbers, since so few kinds
of words are there that n of them fit one integer.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import HERE, measured  # type: ignore[import-not-found]

if TYPE_CHECKING:
    import polars as pl

POSITIONS = """
CREATE TEMP TABLE p AS
WITH t AS (
    SELECT {user} AS u, row_number() OVER () AS r, string_split({text}, ' ') AS w FROM '{path}'
)
SELECT u, r, unnest(range(len(w))) AS i, unnest(w) AS token FROM t
"""


def exact_by_self_joins(con, path: str, user: str, text: str, max_n: int) -> None:
    con.execute(POSITIONS.format(path=path, user=user, text=text, split="white space", lower=False))
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
    con.execute(POSITIONS.format(path=path, user=user, text=text, split="white space", lower=False))
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


def words_in_polars(path: str, user: str, text: str) -> pl.DataFrame:
    """(r, u, w): every word with its row and its user."""

    import polars as pl

    rows = pl.read_parquet(path, columns=[user, text]).with_row_index("r")
    return rows.select("r", u=user, w=pl.col(text).str.split(" ")).explode("w")


def users_of_grams(words: pl.DataFrame, gram: pl.Expr, n: int) -> pl.DataFrame:
    import polars as pl

    within = pl.col("r") == pl.col("r").shift(1 - n)
    held = words.lazy().select("u", g=pl.when(within).then(gram)).drop_nulls("g").unique()
    return held.group_by("g").agg(users=pl.len()).collect()


def exact_by_polars_strings(path: str, user: str, text: str, max_n: int) -> None:
    import polars as pl

    words = words_in_polars(path, user, text)
    for n in range(1, max_n + 1):
        grams = pl.concat_str([pl.col("w").shift(-i) for i in range(n)], separator=" ")
        users_of_grams(words, grams, n)


def exact_by_polars_numbers(path: str, user: str, text: str, max_n: int) -> None:
    import polars as pl

    words = words_in_polars(path, user, text)
    words = words.with_columns(w=pl.col("w").cast(pl.Categorical).to_physical().cast(pl.Int64))
    kinds = int(words["w"].max()) + 1
    if kinds**max_n >= 2**63:
        raise SystemExit(f"{max_n} of {kinds} kinds of words do not fit one integer")
    gram = pl.lit(0, pl.Int64)
    for n in range(1, max_n + 1):
        gram = gram * kinds + pl.col("w").shift(1 - n)
        users_of_grams(words, gram, n)


EXACT = {
    "exact: self-joins": exact_by_self_joins,
    "exact: windows in texts": exact_by_windows,
    "exact: strings": exact_by_strings,
}
EXACT_IN_POLARS = {
    "exact: Polars, strings": exact_by_polars_strings,
    "exact: Polars, numbers": exact_by_polars_numbers,
}


PRIVATE = [f"{how}, {engine}" for how in ("dpne", "forecast") for engine in ("duckdb", "polars")]


def run_exact(how: str, path: str, user: str, text: str, max_n: int, memory: str) -> None:
    if how in EXACT_IN_POLARS:
        EXACT_IN_POLARS[how](path, user, text, max_n)
        return
    import duckdb

    con = duckdb.connect(config={"threads": 2, "memory_limit": memory})
    EXACT[how](con, path, user, text, max_n)


def run_private(
    method: str, engine: str, path: str, user: str, text: str, max_n: int, memory: str,
    max_items: int, profile: bool,
) -> None:  # fmt: skip
    import dphh

    if profile:
        _show_steps()
    corpus = dphh.Corpus(path, user=user, text=text, split="white space", lower=False)
    plan = dphh.ngrams(
        corpus, max_n=max_n, epsilon=1, delta=1e-7, max_items=max_items, method=method
    )
    with tempfile.TemporaryDirectory() as folder:
        limits = {"threads": 2, "memory_limit": memory} if engine == "duckdb" else {}
        plan.run(engine=engine, ledger=Path(folder) / "ledger.sqlite", **limits)


def _show_steps() -> None:
    from dphh.engines.duckdb.host import DuckDBHost

    run = DuckDBHost.run

    def timed(self, name, **parameters):
        wall, cpu = time.perf_counter(), time.process_time()
        run(self, name, **parameters)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"    {wall:8.2f} s  {cpu:8.2f} s of processors  {name}", file=sys.stderr)

    DuckDBHost.run = timed  # type: ignore[method-assign]


def compare(title: str, exact: list[str], corpus: list[str], max_items: int, profile: bool) -> None:
    print(f"\n{title}\n{'':28}{'seconds':>9}{'CPU s':>8}{'times':>9}{'CPU':>9}{'MB':>8}")
    flag = ["--profile"] if profile else []
    this = (sys.executable, __file__, "--child")
    rows = {how: measured(*this, how, *corpus) for how in exact}
    for way in PRIVATE:
        rows[way] = measured(*this, way, *corpus, "--max-items", str(max_items), *flag)
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
        compare("MSNBC, n up to 6", [*EXACT, *EXACT_IN_POLARS], corpus, 10, asked.profile)
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
    if x.how in PRIVATE:
        method, engine = x.how.split(", ")
        run_private(
            method, engine, x.path, x.user, x.text, x.max_n, x.memory, x.max_items, x.profile
        )
    else:
        run_exact(x.how, x.path, x.user, x.text, x.max_n, x.memory)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
