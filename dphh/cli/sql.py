"""`dphh sql`: where the SQL is that a DuckDB shell loads."""

from __future__ import annotations

from importlib.resources import files

import click


@click.command()
def sql() -> None:
    """Print the path of the SQL for a DuckDB shell: planning, and looking at releases.

    \b
    duckdb -init "$(dphh sql)"
    """
    click.echo(str(files("dphh.sql").joinpath("shell.sql")))
