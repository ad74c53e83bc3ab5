"""`dphh check`: what would make a run cost more, or say less, than was meant."""

from __future__ import annotations

import json
from typing import Any

import click

from dphh.checking import check as look_at
from dphh.cli.options import (
    content_options_given,
    corpus_of_command,
    corpus_options,
    engine_option,
    existing_ledger,
    json_option,
    ledger_option,
)
from dphh.cli.signatures import Command, as_flag
from dphh.wording.options import respelled


@click.command(cls=Command)
@click.argument("corpus")
@corpus_options()
@engine_option
@ledger_option
@json_option
@click.pass_context
def check(
    context: click.Context,
    /,
    corpus: str,
    engine: str | None,
    as_json: bool,
    ledger_file: str | None,
    **_: Any,
) -> None:
    """Look at a corpus before anything is spent on it. It is free, and says nothing of any user.

    Whether its columns are there, in all files and of one type; whether rows are without a user;
    who pays, and what each costs if it is wrong. Exit code 2 if a run would not go through.

    CORPUS is a Parquet path, a glob, a folder, or a name in the ledger.
    """
    book = existing_ledger(ledger_file, if_named=True)
    read = corpus_of_command(corpus, book, content_options_given(context))
    checked = look_at(read, ledger=book, engine=engine)
    corpus, lines, found = repr(checked).partition("\n")
    said = corpus + lines + respelled(found, as_flag)
    click.echo(json.dumps(checked.to_json()) if as_json else said)
    context.exit(0 if checked.ok else 2)
