"""`dphh trend`: the releases of several weeks side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dphh.release import Release
from dphh.report.trends import trend_of


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@click.option(
    "-o", "--output", multiple=True, metavar="FILE",
    help="Write the chart (.html, .svg) or the table (.csv); may be given often.",
)  # fmt: skip
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True,
              help="How many items the chart shows.")  # fmt: skip
@click.option("--confidence", type=float, default=0.95, show_default=True,
              help="Of each claim that an item is new.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON, a row a line.")
def trend(
    folders: tuple[str, ...], output: tuple[str, ...], top: int, confidence: float, as_json: bool
) -> None:
    """Show counts over several weeks, and what is new in the last.

    Each DIR is what --out wrote. It costs nothing. Releases of one period are one week; other
    folders are weeks in the order given.

    \b
    dphh trend week-45 week-46 week-47 -o trend.html
    """
    pairs = [(Path(folder).name, Release.load(folder)) for folder in folders]
    found = trend_of(pairs, confidence, by_period=True)
    for file in output:
        click.echo(f"written to {found.save(file, top)}", err=True)
    if as_json:
        for row in found.to_polars().iter_rows(named=True):
            click.echo(json.dumps(row))
    elif not output:
        click.echo(repr(found.chart(top)))
