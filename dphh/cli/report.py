"""`dphh report`: a release as one page for people."""

from __future__ import annotations

import click

from dphh.cli.options import ledger_option
from dphh.ledger import Ledger
from dphh.release import Release


@click.command()
@click.argument("folder")
@click.option("-o", "--output", required=True, metavar="FILE", help="The page: one HTML file.")
@click.option("--title", help="Its heading.")
@click.option("--counts", metavar="DIR", help="A saved release that counts people.")
@click.option("--budget", is_flag=True, help="Show what the ledger has left for the corpus.")
@ledger_option
def report(
    folder: str,
    output: str,
    title: str | None,
    counts: str | None,
    budget: bool,
    ledger_file: str | None,
) -> None:
    """Write a saved release as a page: what was found, what is promised, what is left.

    FOLDER is what --out wrote. It costs nothing. The page is one file and asks no network.

    \b
    dphh report phrases/ -o phrases.html --title "What people write about soup"
    """
    release = Release.load(folder)
    written = release.report(
        output,
        title=title,
        counts=None if counts is None else Release.load(counts),
        ledger=Ledger(ledger_file) if budget or ledger_file else None,
    )
    click.echo(f"written to {written}", err=True)
