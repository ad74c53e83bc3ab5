"""Options that all verbs share, and what they do with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click
from rich.console import Console

from dphh.corpus import MAX_TOKEN_LENGTH, Characters, Corpus
from dphh.engines import ENGINES
from dphh.ledger import Ledger
from dphh.ledger.corpora import corpus_of as account_corpus
from dphh.plan import Plan

Command = TypeVar("Command", bound=Callable[..., Any])

#: What the content options become as keywords of `Corpus`.
CONTENT_NAMES = (
    "user", "text", "item", "as_", "lower", "split", "strip", "keep", "drop",
    "max_token_length", "too_long", "characters",
)  # fmt: skip

#: What they are where nothing is said.
DEFAULTS = (None, False, "", "white space", "truncate", MAX_TOKEN_LENGTH, "code points")

_CONTENT = [
    click.option("--user", metavar="COLUMN", help="The column that says whose row it is."),
    click.option("--text", metavar="COLUMN", help="The content column, read as words."),
    click.option("--item", metavar="COLUMN", help="The content column, each row taken whole."),
    click.option(
        "--as",
        "as_",
        type=click.Choice(["words", "characters", "whole", "list"]),
        help="How the content becomes tokens, if not as --text or --item say.",
    ),
    click.option("--lower", is_flag=True, help="Lower case first."),
    click.option(
        "--split",
        default="white space",
        show_default=True,
        help="Words: 'white space', 'unicode', or a regular expression that matches a word.",
    ),
    click.option("--strip", default="", metavar="CHARS", help="Strip these from both ends."),
    click.option("--drop", metavar="REGEX", help="Drop tokens that match it as a whole."),
    click.option(
        "--max-token-length",
        default=MAX_TOKEN_LENGTH,
        show_default=True,
        help="Characters of the longest token.",
    ),
    click.option(
        "--too-long",
        type=click.Choice(["truncate", "drop", "error"]),
        default="truncate",
        show_default=True,
        help="What to do with longer ones.",
    ),
    click.option(
        "--characters",
        type=click.Choice(get_args(Characters)),
        default="code points",
        show_default=True,
        help="What a character is, for --as characters and for trie.",
    ),
]

ledger_option = click.option(
    "--ledger",
    "ledger_file",
    metavar="FILE",
    help="The ledger's file, if not $DPHH_LEDGER or your own.",
)

_RUN = [
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="duckdb",
        show_default=True,
        help="What runs the queries.",
    ),
    ledger_option,
    click.option("--out", metavar="DIR", help="Write release.parquet and release.json there."),
    click.option("--json", "as_json", is_flag=True, help="Print the manifest (or plan) as JSON."),
    click.option("--plan", "plan_only", is_flag=True, help="Show the price and stop."),
    click.option(
        "--run-id",
        metavar="ID",
        help="Name the run: the same request again returns its release, or goes on if cut short.",
    ),
    click.option("--memory-limit", metavar="SIZE", help="What the engine may take, such as 4GB."),
    click.option("--threads", type=click.IntRange(min=1), help="How many the engine may use."),
    click.option("--quiet", is_flag=True, help="Nothing on standard error but errors."),
]


def corpus_options(command: Command) -> Command:
    return _with(command, [*_CONTENT, _keep_option("--keep")])


def corpus_options_beside_keep(command: Command) -> Command:
    """For a verb that keeps something else: `--keep` is its own."""
    return _with(command, [*_CONTENT, _keep_option("--keep-tokens")])


def _keep_option(flag: str) -> Callable[[Any], Any]:
    return click.option(flag, metavar="REGEX", help="Keep only tokens that match it as a whole.")


def run_options(command: Command) -> Command:
    return _with(command, _RUN)


def budget_options(command: Command) -> Command:
    return _with(
        command,
        [
            click.option(
                "--epsilon", type=float, required=True, help="The promise: 1 is strict, 8 is weak."
            ),
            click.option(
                "--delta",
                type=float,
                required=True,
                help="How often it may fail: well below one over the number of users.",
            ),
        ],
    )


def _with(command: Command, options: list[Callable[[Any], Any]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def corpus_of(asked: str, ledger: Ledger, content: dict[str, Any]) -> Corpus:
    """The corpus of a command: a name in the ledger, or a Parquet path or glob."""
    named = {account.name: account for account in ledger.accounts() if account.name}
    account = named.get(asked)
    if account is None:
        if content["user"] is None:
            known = f" (the ledger names {', '.join(sorted(named))})" if named else ""
            raise click.UsageError(
                f"--user: {asked!r} is no name in the ledger{known}, so it is read as a path: "
                "say which column is the user with --user, and the content with --text or --item"
            )
        return Corpus(asked, **content)
    corpus = account_corpus(account.source, asked)
    given = sorted(
        f"--{key.rstrip('_').replace('_', '-')}"
        for key, value in content.items()
        if value not in DEFAULTS
    )
    if given:
        raise click.UsageError(
            f"{', '.join(given)}: {asked!r} is a corpus that the ledger names, and its owner "
            "has said how it is read; leave these out"
        )
    return corpus


def finish(plan: Plan, book: Ledger, run: dict[str, Any]) -> None:
    """Show the plan, or run it and show the release."""
    if run["plan_only"]:
        click.echo(json.dumps(plan.to_json()) if run["as_json"] else plan.describe(book))
        return
    console = Console(stderr=True)
    silent = run["quiet"] or not sys.stderr.isatty()
    status = None if silent else console.status("starting")

    def progress(said: str) -> None:
        if status is not None:
            console.print(said, highlight=False, markup=False)
            status.update(said)
        elif said.startswith("note:") and not run["quiet"]:
            click.echo(said, err=True)

    if status is not None:
        status.start()
    try:
        release = plan.run(
            ledger=book,
            engine=run["engine"],
            run_id=run["run_id"],
            out=run["out"],
            memory_limit=run["memory_limit"],
            threads=run["threads"],
            progress=progress,
        )
    finally:
        if status is not None:
            status.stop()
    if run["as_json"]:
        click.echo(release.dumps())
        return
    click.echo(repr(release))
    if run["quiet"]:
        return
    if run["out"]:
        click.echo(f"written to {run['out']}", err=True)
    else:
        click.echo(f"kept in the ledger: dphh ledger release {release.run_id} --out DIR", err=True)
