"""`dphh why`: why a phrase is not in a release."""

from __future__ import annotations

import click

from dphh.release import Release


@click.command()
@click.argument("folder")
@click.argument("phrase")
def why(folder: str, phrase: str) -> None:
    """Say why a phrase is not in a saved release. It costs nothing, and reads no data.

    FOLDER is what --out wrote. PHRASE is read as the corpus was: dphh why phrases/ "see you later"
    """
    click.echo(repr(Release.load(folder).why(phrase)))
