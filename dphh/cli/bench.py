"""`dphh bench`: what the verbs take on this machine, beside a count without privacy."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import duckdb

from dphh.asking.verbs import items, ngrams, trie
from dphh.cli.demo_corpus import USERS, write_corpus
from dphh.corpus import Corpus
from dphh.engines import ENGINES
from dphh.plan import Plan
from dphh.sources.quoted import literal

EPSILON, DELTA = 1.0, 1e-8
TIMES = 3


@click.command()
@click.option("--users", default=USERS, show_default=True, help="People of the made-up corpus.")
@click.option(
    "--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True, help="Engine."
)
def bench(users: int, engine: str) -> None:
    """Time every central verb on a made-up corpus, beside a plain GROUP BY in DuckDB.

    The best of three runs each, from Parquet to release; nothing of yours is read or spent.
    """
    with tempfile.TemporaryDirectory(prefix="dphh-bench-") as folder:
        path = Path(folder) / "messages.parquet"
        write_corpus(path, users)
        corpus = Corpus(str(path), user="author", text="body")
        plans = {
            "items": items(corpus, epsilon=EPSILON, delta=DELTA, max_items=20),
            "ngrams to 3": ngrams(corpus, epsilon=EPSILON, delta=DELTA, max_items=20, max_n=3),
            "trie to 3": trie(corpus, epsilon=EPSILON, delta=DELTA, max_length=3),
        }
        plain = _best_seconds(lambda: _count_with_group_by(path))
        click.echo(f"{users:,} people, {engine}; ratio: to the plain count of words")
        click.echo(f"{'plain count':<14}{plain:>9.2f} s")
        for name, plan in plans.items():
            seconds = _best_seconds(lambda plan=plan: _run_once(plan, folder, engine))  # type: ignore[misc]
            click.echo(f"{name:<14}{seconds:>9.2f} s{seconds / plain:>9.1f}")


def _best_seconds(job: Callable[[], None]) -> float:
    took = []
    for _ in range(TIMES):
        start = time.perf_counter()
        job()
        took.append(time.perf_counter() - start)
    return min(took)


def _run_once(plan: Plan, folder: str, engine: str) -> None:
    plan.run(ledger=Path(folder) / "ledger.sqlite", engine=engine, again=True)


def _count_with_group_by(path: Path) -> None:
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE counts AS SELECT word, count(DISTINCT author) AS users FROM "
            f"(SELECT author, unnest(string_split(body, ' ')) AS word FROM {literal(str(path))}) "
            "GROUP BY word"
        )
