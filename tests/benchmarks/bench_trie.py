"""One run of `trie` over one word a user, Parquet to release: time and peak memory.

    python tests/benchmarks/bench_trie.py [--repeat 3] [--threads 2] [--full | --users N]
        [--memory-limit 4GB]

658,769 users, as many as the papers have: a generated table of one word a user, and
`tweets.parquet` resampled to so many users, each with the most frequent of their words after the
papers' preprocessing, or with all of them (of which the run draws one). --full adds 100 million
users' generated table (about 1 GB of temporary disk), by the path accountant alone; --users N has
nothing but a generated table of N. epsilon 4, delta 2.3e-12 and L 10, the
settings of the authors' code. Each measurement is a process of its own; of several, the fastest and
its peak memory count.
Imports come before; planning counts.
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

from dphh.rows.content import TRIEHH_WORDS

TWEETS = Path(__file__).parents[3] / "shared" / "data" / "tweets.parquet"
USERS, MANY = 658_769, 100_000_000
ASK = {"epsilon": 4.0, "delta": 2.3e-12, "max_length": 10}
WAYS = ("path", "paper")


def resample(path: Path, every_word: bool) -> None:
    """Users of tweets.parquet, drawn with replacement, each draw a user of its own."""
    with duckdb.connect() as con:
        con.execute(
            f"""
            COPY (
                WITH spoken AS (
                    SELECT user_id, unnest(list_transform(
                        string_split_regex(lower(text), '\\s+'), lambda w: trim(w, ',.;?!')
                    )) AS word
                    FROM '{TWEETS}'
                ),
                people AS (
                    SELECT
                        row_number() OVER (ORDER BY user_id) - 1 AS person,
                        {"list" if every_word else "mode"}(word) AS words
                    FROM spoken
                    WHERE regexp_full_match(word, $keep) AND NOT regexp_full_match(word, $drop)
                    GROUP BY user_id
                ),
                draws AS (
                    SELECT i, hash(i, 'draw') % (SELECT count(*) FROM people) AS person
                    FROM range({USERS}) AS r(i)
                )
                SELECT i AS user_id, {"unnest(words)" if every_word else "words"} AS word
                FROM draws INNER JOIN people USING (person)
            ) TO '{path}' (FORMAT parquet)
            """,
            {name: TRIEHH_WORDS[name] for name in ("keep", "drop")},
        )


def generate(path: Path, users: int) -> None:
    """Words of 2 to 9 letters by a long-tailed law over a million of them."""
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false; SET preserve_insertion_order = false")
        con.execute(
            f"""
            COPY (
                SELECT
                    i AS user_id,
                    left(
                        translate(CAST(hash(word) AS VARCHAR), '0123456789', 'etaoinshrd'),
                        CAST(2 + hash(word, 'length') % 8 AS INTEGER)
                    ) AS word
                FROM (
                    SELECT
                        i,
                        CAST(pow(1e6, hash(i, 'word') / 18446744073709551616.0) AS BIGINT) AS word
                    FROM range({users}) AS r(i)
                )
            ) TO '{path}' (FORMAT parquet)
            """
        )


def grow(path: str, way: str, users: int, threads: int, memory: str) -> int:
    from dphh import Corpus, trie

    corpus = Corpus(path, user="user_id", item="word")
    options = {"accounting": way} | ({"users": users} if way == "paper" else {})
    plan = trie(corpus, **ASK, **options)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"
        return len(plan.run(ledger=ledger, threads=threads, memory_limit=memory or None))


def child(arguments: list[str]) -> None:
    path, way, users, threads, memory = arguments
    import dphh

    found = len(dphh.__all__)
    used = resource.getrusage(resource.RUSAGE_SELF)
    before = used.ru_utime + used.ru_stime
    start = time.perf_counter()
    if way != "imports":
        found = grow(path, way, int(users), int(threads), memory)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    measured = {
        "seconds": seconds,
        "processor": used.ru_utime + used.ru_stime - before,
        "megabytes": used.ru_maxrss / 1024,
        "rows": found,
    }
    print(json.dumps(measured))


def measure(repeat: int, *arguments: object) -> dict[str, float]:
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--child", *map(str, arguments)],
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
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--full", action="store_true", help="100 million users too")
    parser.add_argument("--users", type=int, help="so many users of a generated table alone")
    parser.add_argument("--memory-limit", default="", help="what DuckDB may take, such as 4GB")
    asked = parser.parse_args()
    print(f"DuckDB {duckdb.__version__}, {asked.threads} threads, best of {asked.repeat}\n")
    print(f"{'':<52}{'seconds':>10}{'of CPU':>10}{'peak MB':>10}{'released':>10}")
    alone = measure(asked.repeat, "", "imports", 0, 1, "")
    print(f"{'importing dphh, beforehand':<52}{'':>20}{alone['megabytes']:>10,.0f}")
    with tempfile.TemporaryDirectory() as folder:
        corpora = [("generated", USERS, lambda path: generate(path, USERS))]
        if TWEETS.exists():
            corpora += [
                ("tweets, one word each", USERS, lambda path: resample(path, False)),
                ("tweets, all words", USERS, lambda path: resample(path, True)),
            ]
        if asked.users:
            corpora = [("generated", asked.users, lambda path: generate(path, asked.users))]
        if asked.full:
            corpora.append(("generated", MANY, lambda path: generate(path, MANY)))
        for kind, users, write in corpora:
            path = Path(folder) / f"{kind}-{users}.parquet"
            write(path)
            large = users > 10_000_000  # fixed batches look at every user by name
            for way in WAYS[:1] if large else WAYS:
                run = measure(
                    1 if large else asked.repeat, path, way, users, asked.threads,
                    asked.memory_limit,
                )  # fmt: skip
                name = f"{kind}, {users:,} users, {way}"
                print(
                    f"{name:<52}{run['seconds']:>10.2f}{run['processor']:>10.2f}"
                    f"{run['megabytes']:>10,.0f}{run['rows']:>10,}"
                )
            path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
