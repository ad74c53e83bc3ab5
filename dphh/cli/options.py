"""Options that all verbs share, and what they do with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dphh.asking.corpora_of_ledger import corpus_of_account
from dphh.cli.grouped import CORPUS, SHOW, WHERE, Option
from dphh.cli.signatures import flag, given, option
from dphh.corpus import HELP, WHICH_ROWS, Corpus
from dphh.engines import ENGINES, look_at_columns
from dphh.errors import DphhError
from dphh.ledger import Ledger
from dphh.report.sentences import items_in
from dphh.rows.conditions import both, rows_kept
from dphh.wording.unseen import steerless_json

if TYPE_CHECKING:
    from dphh.plan import Plan
    from dphh.release import Release

Command = TypeVar("Command", bound=Callable[..., Any])

_PARAMETERS = signature(Corpus.__init__, eval_str=True).parameters
#: What a command says of a corpus: not what a verb says, what opens it, or what it is called.
_CONTENT_OPTIONS = {name: _PARAMETERS[name] for name in HELP}


def _option(*names: str, group: str, **said: Any) -> Callable[[Command], Command]:
    return click.option(*names, cls=Option, group=group, **said)


ledger_option = _option(
    "--ledger",
    "ledger_file",
    group=WHERE,
    metavar="FILE",
    help="Its file, if not $DPHH_LEDGER or your own.",
)
engine_option = _option(
    "--engine",
    group=WHERE,
    type=click.Choice(ENGINES),
    default="duckdb",
    show_default=True,
    metavar="ENGINE",
    help="duckdb, polars or spark.",
)
json_option = _option(
    "--json", "as_json", group=SHOW, is_flag=True, help="Print one JSON object, for programs."
)
_RUN_OPTIONS = [
    _option(
        "--files", group=CORPUS, multiple=True, metavar="PATH",
        help="Of a named corpus these files alone.",
    ),
    ledger_option,
    engine_option,
    _option(
        "--memory-limit", group=WHERE, metavar="SIZE", help="Memory that it may use, such as 4GB."
    ),
    _option(
        "--threads", group=WHERE, type=click.IntRange(min=1), metavar="N",
        help="Threads that it may use.",
    ),
    _option(
        "--run-id", group=WHERE, metavar="ID",
        help="A name for the run, which gives its release again.",
    ),
    _option("--again", group=WHERE, is_flag=True, help="Spend again on what was paid for."),
    _option("--plan", "plan_only", group=SHOW, is_flag=True, help="The price; spend nothing."),
    _option("--details", group=SHOW, is_flag=True, help="With --plan: noise and theorem."),
    _option(
        "--sql", "show_sql", group=SHOW, is_flag=True,
        help="The queries of a run on DuckDB; spend nothing.",
    ),
    _option(
        "--out", group=SHOW, metavar="DIR", help="Write release.parquet and release.json there."
    ),
    json_option,
    _option("--quiet", group=SHOW, is_flag=True, help="Errors alone on standard error."),
]  # fmt: skip


def corpus_options(beside: Collection[str] = ()) -> Callable[[Command], Command]:
    """The options of a corpus, beside those of a verb."""

    def add(command: Command) -> Command:
        options = [
            option(
                parameter,
                HELP[name],
                CORPUS,
                _option_name(name, beside),
                required=False,
                often=name == "user" or name in WHICH_ROWS,
            )
            for name, parameter in _CONTENT_OPTIONS.items()
        ]
        return with_options(command, options)

    return add


def content_options_given(context: click.Context, beside: Collection[str] = ()) -> dict[str, Any]:
    """The options of the corpus that were given, as keywords of `Corpus`. Conditions on rows are
    joined to one, all parts of which must be true."""
    names = {_option_name(name, beside): name for name in _CONTENT_OPTIONS}
    said = {names[called]: value for called, value in given(context, list(names)).items()}
    conditions = [
        rows_kept(**{"where": None, "since": None, "until": None, name: each})
        for name in ("where", "since", "until")
        for each in said.pop(name, ())
    ]
    return said if not conditions else {**said, "where": both(*conditions)}


def _option_name(name: str, beside: Collection[str]) -> str:
    """The name of a corpus option: `keep_tokens` instead of `keep` for verbs with an own
    `--keep`."""
    return f"{name}_tokens" if name in beside else name


def run_options(command: Command) -> Command:
    return with_options(command, _RUN_OPTIONS)


def with_options(command: Command, options: list[Callable[[Any], Any]]) -> Command:
    for each in reversed(options):
        command = each(command)
    return command


def corpus_of_command(
    asked: str, ledger: Ledger, content: dict[str, Any], files: Sequence[str] = ()
) -> Corpus:
    """The corpus of a command: an account of the ledger, or a path or glob."""
    if (found := corpus_of_account(ledger, asked, content, flag, files)) is not None:
        return found
    if files:
        raise click.UsageError(
            f"--files: the ledger has no account {asked!r}; for a corpus without one, give its "
            "files as CORPUS"
        )
    if "user" not in content:
        names = ledger.names()
        known = f" (the ledger has {', '.join(sorted(names))})" if names else ""
        raise click.UsageError(
            f"--user: the ledger has no account {asked!r}{known}, so it is read as a path: "
            "name its user column with --user, and its content with --text or --item"
        )
    return Corpus(asked, **content)


def _budget_left(plan: Plan, book: Ledger) -> list[dict[str, Any]]:
    """What is left in the accounts that pay for this corpus; empty if none has a cap."""
    assert plan.corpus is not None
    return [account.to_json() for account in book.accounts_of(plan.corpus)]


def finish(plan: Plan, book: Ledger, run: dict[str, Any]) -> None:
    """Show the plan or its queries, or run it and show the release."""
    if run["show_sql"]:
        click.echo(plan.sql(), nl=False)
        return
    if run["plan_only"]:
        from dphh.report.terminal import plan_text  # with Polars

        assert plan.corpus is not None
        look_at_columns(plan.corpus)
        said = plan_text(plan.price, plan.corpus, book, details=run["details"])
        click.echo(json.dumps(plan.to_json()) if run["as_json"] else said)
        return
    from dphh.replay import Note  # with what running needs, which no help text waits for

    if run["quiet"] or not sys.stderr.isatty():
        console = status = None
    else:
        from rich.console import Console

        console = Console(stderr=True)
        status = console.status("starting")

    def progress(said: str) -> None:
        if console is not None and status is not None:
            console.print(said, highlight=False, markup=False)
            status.update(said)
        elif isinstance(said, Note) and not run["quiet"]:
            click.echo(said, err=True)

    if status is not None:
        status.start()
    try:
        release = plan.run(
            ledger=book,
            engine=run["engine"],
            run_id=run["run_id"],
            again=run["again"],
            out=run["out"],
            memory_limit=run["memory_limit"],
            threads=run["threads"],
            progress=progress,
        )
    except DphhError as problem:
        problem.spent = bool(book.paid_here)
        raise
    finally:
        if status is not None:
            status.stop()
    _show_release(release, plan, book, run, spent=release.run_id in book.paid_here)


def _show_release(
    release: Release, plan: Plan, book: Ledger, run: dict[str, Any], *, spent: bool
) -> None:
    if run["as_json"]:
        said = {
            "found": items_in(release.table),
            "spent": spent,
            "left": _budget_left(plan, book),
        }
        outcome = {**release.manifest, **said}
        shown = json.dumps(outcome, indent=2, ensure_ascii=False, sort_keys=True)
        click.echo(steerless_json(shown))
        return
    click.echo(repr(release))
    if run["quiet"]:
        return
    if run["out"]:
        click.echo(f"written to {run['out']}", err=True)
    else:
        click.echo(f"kept in the ledger: dphh ledger release {release.run_id} --out DIR", err=True)
