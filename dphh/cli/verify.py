"""`dphh verify`: whether a saved release agrees with itself, and with the ledger that paid."""

from __future__ import annotations

import click

from dphh.cli.options import ledger_option
from dphh.errors import UnknownRunError, UsageError
from dphh.ledger import Ledger
from dphh.release import Release


@click.command()
@click.argument("folder")
@ledger_option
def verify(folder: str, ledger_file: str | None) -> None:
    """Look whether a saved release was edited or damaged. It costs nothing.

    FOLDER is what --out wrote. It must agree with itself, and be what the ledger has stored for its
    run; a folder alone does not show who made it. Exit code 2 if it is not right.
    """
    release = Release.load(folder)
    lines = release.verify()
    book = Ledger(ledger_file)
    if ledger_file is not None and (why := book.absent()) is not None:
        raise UsageError(why)
    try:
        lines = release.verify(book)
    except UnknownRunError:
        if ledger_file is not None:
            raise
    for what, said in lines:
        click.echo(f"+ {what:<8}  {said}")
    if "ledger" not in dict(lines):
        click.echo(
            "? ledger    yours does not know this run, so who made the release is not shown; "
            "give --ledger FILE"
        )
