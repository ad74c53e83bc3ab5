"""`dphh sql`: what a DuckDB shell loads, where there is no Python."""

from __future__ import annotations

from importlib.resources import files

import click

from dphh.files.paths import written_here


@click.command()
@click.option("--prices", metavar="FILE", help="Write what runs would cost and find, as Parquet.")
@click.option("--epsilon", "epsilons", type=float, multiple=True, help="For --prices; repeatable.")
@click.option("--delta", "deltas", type=float, multiple=True, help="For --prices; repeatable.")
@click.option("--max-items", type=int, multiple=True, help="For --prices; repeatable.")
@click.option("--length", "lengths", type=int, multiple=True, help="For --prices; repeatable.")
def sql(
    prices: str | None,
    epsilons: tuple[float, ...],
    deltas: tuple[float, ...],
    max_items: tuple[int, ...],
    lengths: tuple[int, ...],
) -> None:
    """Print the path of the SQL for a DuckDB shell, which looks at releases.

    \b
    duckdb -init "$(dphh sql)"

    With --prices, write a table of what `items`, `ngrams` and `trie` would cost and find: the
    numbers of their plans, for each combination of these options. --length is the longest n-gram or
    sequence. Nothing is read, nothing spent.
    """
    if prices is None:
        if epsilons or deltas or max_items or lengths:
            raise click.UsageError(
                "--epsilon, --delta, --max-items, --length: apply only to --prices; add --prices, "
                "or leave them out"
            )
        click.echo(str(files("dphh.sql").joinpath("shell.sql")))
        return
    from dphh.planning import prices as priced  # with the mathematics, which no path waits for

    table = priced.price_table(
        epsilons or priced.EPSILONS,
        deltas or priced.DELTAS,
        max_items or priced.MAX_ITEMS,
        lengths or priced.LENGTHS,
    )
    try:
        priced.write_prices(table, written_here("--prices", prices))
    except OSError as problem:
        raise click.UsageError(
            f"--prices: cannot write {prices!r}: {problem.strerror}; give a file in a folder that "
            "you can write to"
        ) from None
