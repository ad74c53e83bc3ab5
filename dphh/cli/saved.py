"""Commands about a saved release: `dphh report`, `dphh verify` and `dphh why`. All are free."""

from __future__ import annotations

import click

from dphh.cli.options import ledger_option
from dphh.errors import UnknownRunError
from dphh.ledger import Ledger
from dphh.release import Release


@click.command()
@click.argument("folder")
@click.option("-o", "--output", metavar="FILE", help="The page: one HTML file.")
@click.option("--csv", "csv_file", metavar="FILE", help="The table, as a CSV file.")
@click.option("--title", help="The page's heading.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=25,
    show_default=True,
    help="Rows of each table that are not folded.",
)
@click.option("--budget", is_flag=True, help="Show what is left in the accounts that paid.")
@ledger_option
def report(
    folder: str,
    output: str | None,
    csv_file: str | None,
    title: str | None,
    top: int,
    budget: bool,
    ledger_file: str | None,
) -> None:
    """Write a saved release as a page: what was found, what is promised, what is left.

    FOLDER is what --out wrote. It costs nothing. The page is one file and asks no network.

    \b
    dphh report phrases/ -o phrases.html --title "What people write about soup"
    dphh report phrases/ --csv phrases.csv
    """
    if output is None and csv_file is None:
        raise click.UsageError("give a file: -o PAGE.html, or --csv TABLE.csv")
    release = Release.load(folder)
    if csv_file is not None:
        click.echo(f"written to {release.to_csv(csv_file)}", err=True)
    if output is not None:
        written = release.report(
            output,
            title=title,
            ledger=Ledger(ledger_file) if budget or ledger_file else None,
            top=top,
        )
        click.echo(f"written to {written}", err=True)


@click.command()
@click.argument("folder")
@ledger_option
def verify(folder: str, ledger_file: str | None) -> None:
    """Check whether a saved release was edited or damaged. It costs nothing.

    FOLDER is what --out wrote. It must agree with itself, and be what the ledger has stored for its
    run; a folder alone does not show who made it. Exit code 2 if it is not right.
    """
    release = Release.load(folder)
    book = Ledger(ledger_file)
    try:
        lines = release.verify(book)
    except UnknownRunError:
        if ledger_file is not None:
            raise
        lines = release.verify()
    for what, said in lines:
        click.echo(f"+ {what:<8}  {said}")
    if "ledger" not in dict(lines):
        click.echo(
            "? ledger    your ledger does not know this run, so nothing shows who made the "
            "release; give --ledger FILE"
        )


@click.command()
@click.argument("folder")
@click.argument("phrase")
def why(folder: str, phrase: str) -> None:
    """Say why a phrase is not in a saved release. It costs nothing, and reads no data.

    FOLDER is what --out wrote. PHRASE is read as the corpus was: dphh why phrases/ "see you later"
    """
    click.echo(repr(Release.load(folder).why(phrase)))
