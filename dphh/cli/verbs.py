"""Commands about a corpus: a command for each verb, made from the registry, and `dphh check`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import click

from dphh.cli.options import (
    corpus_of_command,
    corpus_options,
    corpus_options_given,
    engine_option,
    json_option,
    ledger_option,
    options_given,
    quiet_option,
    run_option,
    run_options,
    with_options,
)
from dphh.cli.signatures import CORPUS, SHOW, GroupedCommand, as_flag, grouped_option, option
from dphh.errors import BudgetRefused, DphhError, UsageError
from dphh.ledger import Ledger, Request
from dphh.plan import Plan, verb_function
from dphh.reader.rows import check_columns
from dphh.registry import VERBS, Verb
from dphh.report.plan_lines import plan_text
from dphh.report.sentences import number_of_items
from dphh.run import HELP as RUN_HELP
from dphh.run import Note
from dphh.wording.lines import printable_json
from dphh.wording.options import respell_options

_options_of_any_run = with_options(
    grouped_option(
        "--files", group=CORPUS, multiple=True, metavar="PATH",
        help="Only these files of a corpus in the ledger.",
    ),
    run_options,
    run_option("run_id"),
    run_option("again"),
    run_option("require_account"),
    grouped_option(
        "--plan", "plan_only", group=SHOW, is_flag=True,
        help="Show the price; spend nothing; exit as a run would if the ledger refuses it.",
    ),
    grouped_option("--details", group=SHOW, is_flag=True, help="With --plan: noise and theorem."),
    grouped_option(
        "--sql", "show_sql", group=SHOW, is_flag=True,
        help="Show the run's queries as DuckDB SQL; spend nothing.",
    ),
    run_option("out", SHOW),
    json_option,
    quiet_option,
)  # fmt: skip


def _verb_command(verb: Verb[...]) -> click.Command:
    """`dphh VERB CORPUS ...`: the options of the corpus, of the verb and of any run."""

    @click.pass_context
    def run(context: click.Context, /, corpus: str, **options: Any) -> None:
        book = Ledger(options["ledger_file"])
        book.booked_here = context.ensure_object(set)
        read = corpus_of_command(corpus, book, corpus_options_given(context), options["files"])
        plan = verb_function(verb, book)(read, **options_given(context, verb.options))
        _show_or_run(plan, book, options)

    text = f"{verb.summary}\n\nCORPUS: files (Parquet, CSV, ...), a folder or a name in the ledger."
    command: click.Command = with_options(
        click.command(verb.name.replace("_", "-"), cls=GroupedCommand, help=text),
        click.argument("corpus"),
        corpus_options(verb_options=verb.options),
        *(
            option(parameter, verb.help[name], verb.heading_of(name))
            for name, parameter in verb.options.items()
        ),
        _options_of_any_run,
    )(run)
    return command


def _show_or_run(plan: Plan, book: Ledger, options: dict[str, Any]) -> None:
    """Show the plan or its queries, or run it and show the release."""
    if options["show_sql"]:
        click.echo(plan.sql(), nl=False)
        return
    if options["plan_only"]:
        _show_price(plan, book, options)
        return
    status = None
    if not options["quiet"] and sys.stderr.isatty():
        from rich.console import Console

        status = Console(stderr=True).status("starting")

    notes: list[str] = []

    def show_progress(line: str) -> None:
        is_note, line = isinstance(line, Note), respell_options(line, as_flag)
        if is_note:
            notes.append(line.removeprefix("note: "))
        if status is not None:
            status.console.print(line, highlight=False, markup=False)
            status.update(line)
        elif not options["quiet"]:  # for a job's log, which several runs may share
            run = " ".join([plan.verb, *book.booked_here])
            click.echo(f"dphh: {run}: {line}", err=True)

    with status or nullcontext(), _warnings_kept(notes):
        options_of_run = {name: options[name] for name in RUN_HELP}
        release = plan.run(ledger=book, progress=show_progress, **options_of_run)
    if options["as_json"]:
        assert plan.corpus is not None
        outcome = {
            **release.manifest,
            "found": number_of_items(release.table),
            "spent": release.spent,
            "accounts": [account.to_json() for account in book.accounts_of(plan.corpus)],
            "notes": notes,
        }
        shown = json.dumps(outcome, indent=2, ensure_ascii=False, sort_keys=True)
        click.echo(printable_json(shown))
        return
    click.echo(repr(release))
    if options["out"]:
        show_progress(f"written to {options['out']}")
    else:
        show_progress(f"kept in the ledger: dphh ledger release {release.run_id} --out DIR")


def _show_price(plan: Plan, book: Ledger, options: dict[str, Any]) -> None:
    """Show the plan, and end with the exit code that a run would have if the ledger refused it."""
    assert plan.corpus is not None
    check_columns(plan.corpus)
    refusal = _refusal(plan, book, options)
    if options["as_json"]:
        outlook = {**_outlook(plan, book), "refused": refusal and str(refusal)}
        click.echo(json.dumps({**plan.to_json(), "ledger": outlook}))
        click.get_current_context().exit(refusal.exit_code if refusal else 0)
    click.echo(plan_text(plan.price, plan.corpus, book, details=options["details"]))
    if refusal:
        raise refusal


def _refusal(plan: Plan, book: Ledger, options: dict[str, Any]) -> DphhError | None:
    """The error with which the ledger would refuse a run of this plan now, whatever its data."""
    assert plan.corpus is not None
    given = {name: options[name] for name in ("run_id", "again", "require_account")}
    try:
        book.before_reading(Request.of(plan.price, plan.corpus), None, **given)
    except (BudgetRefused, UsageError) as problem:
        return problem
    return None


def _outlook(plan: Plan, book: Ledger) -> dict[str, Any]:
    """The accounts that would pay for a run of this plan now, and the share of the cap it takes."""
    assert plan.corpus is not None
    outlook = book.outlook(Request.of(plan.price, plan.corpus))
    _, takes, runs_left = outlook.scarcest or (None, None, None)
    return {
        "accounts": [account.to_json() for account in outlook.accounts],
        "takes": takes,
        "runs_left": runs_left,
    }


@contextmanager
def _warnings_kept(notes: list[str]) -> Iterator[None]:
    """Within the block, warnings are shown as usual and also added to `notes`, for `--json`."""
    shown = warnings.showwarning

    def show_and_keep(message: Warning | str, *more: Any, **named: Any) -> None:
        notes.append(str(message))
        shown(message, *more, **named)

    with warnings.catch_warnings():
        warnings.showwarning = show_and_keep
        yield


for _verb in VERBS.values():
    globals()[_verb.name] = _verb_command(_verb)


@click.command(cls=GroupedCommand)
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

    CORPUS: files (Parquet, CSV, ...), a folder or a name in the ledger.
    """
    from dphh.checking import check as look_at

    book = Ledger(ledger_file)
    read = corpus_of_command(corpus, book, corpus_options_given(context))
    checked = look_at(read, ledger=book, engine=engine)
    first_line, newline, findings = repr(checked).partition("\n")
    text = first_line + newline + respell_options(findings, as_flag)
    click.echo(json.dumps(checked.to_json()) if as_json else text)
    context.exit(0 if checked.ok else 2)
