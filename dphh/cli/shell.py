"""`dphh shell`: SQL on a connection of `dphh.connect()`, typed, from a file or from one option."""

from __future__ import annotations

import csv
import re
import signal
import sqlite3
import sys
from contextlib import suppress

import click
import duckdb

from dphh.asking.connect import connect
from dphh.cli.options import engine_option, ledger_option
from dphh.files.stopping import received_signal, stopping
from dphh.ledger import Ledger

_LEAVE = {".exit", ".quit", "exit", "quit"}


@click.command()
@click.argument("database", default=":memory:")
@click.option("-c", "--command", metavar="SQL", help="Run this, and end.")
@click.option("--csv", "as_csv", is_flag=True, help="Print tables as CSV.")
@engine_option
@ledger_option
def shell(
    database: str, command: str | None, as_csv: bool, engine: str | None, ledger_file: str | None
) -> None:
    """SQL with dphh's macros in it: FROM dphh_help(); lists them.

    Over tables, views and files, and the corpora of your ledger. DATABASE is a DuckDB file; without
    one, tables are in memory. A statement ends with a semicolon. From a file:
    dphh shell < report.sql
    """
    con = connect(database, ledger=Ledger(ledger_file), engine=engine)
    try:
        if command is None and sys.stdin.isatty():
            _run_what_is_typed(con, as_csv)
        else:
            _run(con, sys.stdin.read() if command is None else command, as_csv)
    finally:
        con.close()


def _run_what_is_typed(con: duckdb.DuckDBPyConnection, as_csv: bool) -> None:
    with suppress(ImportError):  # where there is one, `input` has lines that can be edited
        import readline  # noqa: F401
    click.echo("FROM dphh_help(); lists the macros. Ctrl-D ends.")
    text = ""
    while True:
        try:
            with stopping():  # Ctrl-C ends the statement, and not the shell
                text += input("  ...> " if text else "dphh> ") + "\n"
                if text.strip().rstrip(";") in _LEAVE:
                    return
                if sqlite3.complete_statement(text):
                    whole, text = text, ""
                    _run(con, whole, as_csv)
        except EOFError:
            click.echo()
            return
        except click.ClickException as problem:
            problem.show()
        except KeyboardInterrupt:
            if received_signal() not in (None, signal.SIGINT):
                raise
            text = ""
            click.echo("\ninterrupted; what is paid stays paid, and the same request goes on")


def _run(con: duckdb.DuckDBPyConnection, text: str, as_csv: bool) -> None:
    """Run each statement and print its table. Tables are fetched: a relation would run again."""
    try:
        for statement in con.extract_statements(text):
            has_rows = duckdb.ExpectedResultType.QUERY_RESULT in statement.expected_result_type
            if not has_rows or statement.type == duckdb.StatementType.CREATE:
                con.execute(statement)
                continue
            table = con.from_arrow(con.sql(statement).to_arrow_table())
            if statement.type == duckdb.StatementType.EXPLAIN:
                click.echo(table.fetchall()[0][1])
            elif as_csv:
                rows = table.project("CAST(COLUMNS(*) AS VARCHAR)").fetchall()
                csv.writer(sys.stdout, lineterminator="\n").writerows([table.columns, *rows])
            else:
                table.show(max_rows=1_000)
    except duckdb.Error as problem:
        message = str(problem)
        if mismatch := re.match(r"Binder Error: Macro dphh_(?:plan_)?(\w+)\(\)", message):
            message = f"{message}\nFROM dphh_options('{mismatch[1]}'); says what each is"
        raise click.ClickException(message) from None
