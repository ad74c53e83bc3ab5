"""`dphh demo`: a corpus with known truth, a release, and a look at what was found."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
import duckdb

from dphh.errors import BudgetRefused
from dphh.ledger import Ledger
from dphh.ledger.spending import accounts_text
from dphh.plan import items
from dphh.reader.corpus import Corpus
from dphh.release import Release
from dphh.sql import literal, query

USERS, WORDS = 100_000, 5_000
EPSILON, DELTA = 1.0, 1e-8


@click.command()
def demo() -> None:
    """Release the shared words of 100,000 made-up people, and compare them with the truth.

    Everything happens in a temporary folder; your own ledger is not touched.
    """
    with tempfile.TemporaryDirectory(prefix="dphh-demo-") as folder:
        path = Path(folder) / "messages.parquet"
        click.secho(f"1. A corpus of {USERS:,} people's messages, made up here", bold=True)
        with duckdb.connect() as con:
            made = con.sql(query("demo_corpus"), params={"users": USERS, "words": WORDS})
            made.write_parquet(str(path))
        book = Ledger(Path(folder) / "ledger.sqlite")
        corpus = Corpus(str(path), user="author", text="body", account="messages")
        book.add("messages", corpus, EPSILON, DELTA)
        click.echo(f"   {path.name}: columns author, body; capped at ({EPSILON:g}, {DELTA:g})\n")

        click.secho("2. The plan: its price and what it detects, before any row is read", bold=True)
        plan = items(corpus, epsilon=EPSILON, delta=DELTA, max_items=20)
        click.echo(plan.describe(book))

        click.secho("\n3. The release", bold=True)
        release = plan.run(ledger=book)
        click.echo(repr(release))

        click.secho("\n4. Compared with the truth, which only a made-up corpus may show", bold=True)
        for kind, total, found in _compared_with_truth(path, release):
            click.echo(f"   {kind:<30} {total:>8,} words  {found:>7,} found  {found / total:>6.1%}")

        click.secho("\n5. What it cost", bold=True)
        click.echo(accounts_text(book.accounts()))
        click.secho("\n6. Once more? The ledger says no", bold=True)
        try:
            plan.run(ledger=book, again=True)
        except BudgetRefused as refusal:
            click.echo(f"   {refusal}")

        click.secho("\n7. Next: your own table, with a plan that reads nothing", bold=True)
        program = sys.argv[0] if sys.argv[0].endswith("dphh") else "dphh"
        click.echo(f"   {program} ngrams --help")


def _compared_with_truth(path: Path, release: Release) -> list[tuple[str, int, int]]:
    """For each kind of words: how many there are, and how many of these were released. This is for
    a corpus without real people only."""
    with duckdb.connect() as con:
        con.register("release", release.table)
        return con.execute(
            f"""
            WITH words AS (
                SELECT author, unnest(string_split(body, ' ')) AS word FROM {literal(str(path))}
            ),
            truth AS (SELECT word, count(DISTINCT author) AS users FROM words GROUP BY word)
            SELECT
                CASE
                    WHEN truth.users = 1 THEN 'held by one person alone'
                    WHEN truth.users <= 5 THEN 'held by 2 to 5 people'
                    WHEN truth.users < 100 THEN 'held by 6 to 99 people'
                    WHEN truth.users < 1000 THEN 'held by 100 to 999 people'
                    ELSE 'held by 1,000 people or more'
                END AS kind,
                count(*),
                count(release.item)
            FROM truth LEFT JOIN release ON truth.word = release.item
            GROUP BY kind ORDER BY max(truth.users) DESC
            """
        ).fetchall()
