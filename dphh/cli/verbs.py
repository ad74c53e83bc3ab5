"""One command a verb, made from what the registry says of it."""

from __future__ import annotations

from typing import Any

import click

from dphh.cli.options import (
    content_options_given,
    corpus_of_command,
    corpus_options,
    finish,
    run_options,
    with_options,
)
from dphh.cli.signatures import Command, given, option
from dphh.ledger import Ledger
from dphh.plan import verb_function
from dphh.public.asked import with_public
from dphh.registry import VERBS, Verb


def command(verb: Verb[...]) -> click.Command:
    """`dphh VERB CORPUS ...`: the options of the corpus, of the verb and of any run."""

    @click.pass_context
    def run(context: click.Context, /, corpus: str, **options: Any) -> None:
        book = Ledger(options["ledger_file"])
        read = corpus_of_command(
            corpus, book, content_options_given(context, verb.options), options["files"]
        )
        asked = with_public(given(context, list(verb.options)), read, book)
        plan = verb_function(verb)(read, **asked)
        finish(plan, book, options)

    options = [
        option(each, verb.help[each.name], verb.group_of(each.name))
        for each in verb.options.values()
    ]
    named = click.command(verb.name.replace("_", "-"), cls=Command, help=_help(verb))
    shown = corpus_options(beside=verb.options)(with_options(*options)(run_options(run)))
    return named(click.argument("corpus")(shown))


def _help(verb: Verb[...]) -> str:
    return f"{verb.summary}\n\nCORPUS is a Parquet path, a glob, a folder, or a name in the ledger."


COMMANDS = tuple(command(verb) for verb in VERBS.values())
