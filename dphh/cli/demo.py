"""`dphh demo`: a corpus with known truth, a release, and a look at what was found."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from dphh.asking.verbs import items
from dphh.cli.demo_corpus import USERS, outcomes, write_corpus
from dphh.corpus import Corpus
from dphh.errors import BudgetRefused
from dphh.ledger import Ledger
from dphh.ledger.spending import accounts_text

EPSILON, DELTA = 1.0, 1e-8


@click.command()
def demo() -> None:
    """Release shared words of 100,000 made-up people, with the truth beside.

    Everything happens in a temporary folder; your own ledger is not touched.
    """
    with tempfile.TemporaryDirectory(prefix="dphh-demo-") as folder:
        path = Path(folder) / "messages.parquet"
        click.secho(f"1. A corpus of {USERS:,} people's messages, made up here", bold=True)
        write_corpus(path)
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

        click.secho("\n4. Against the truth, which only a made-up corpus may show", bold=True)
        for outcome in outcomes(path, release):
            share = outcome.found / outcome.there
            click.echo(
                f"   {outcome.kind:<30} {outcome.there:>8,} words  "
                f"{outcome.found:>7,} found  {share:>6.1%}"
            )

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
