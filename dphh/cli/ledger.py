"""`dphh ledger`: name corpora, cap them, see what is spent, get releases back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dphh.cli.options import (
    confirm,
    confirm_higher_cap,
    corpus_options,
    corpus_options_given,
    existing_ledger,
    json_option,
    ledger_option,
    quiet_option,
)
from dphh.errors import DphhError, UsageError
from dphh.ledger import Ledger
from dphh.ledger.budget import RULES, Rule, checked_cap, fits
from dphh.ledger.spending import accounts_text
from dphh.reader.corpus import Corpus
from dphh.reader.paths import files_named, is_remote
from dphh.reader.rows import check_columns
from dphh.release import stored_release
from dphh.report.statement import lines_on_runs, statement_as_json, statement_of
from dphh.wording.lines import with_noun

_rule_option = click.option(
    "--rule",
    type=click.Choice(RULES),
    help="How costs are added up under the cap: divergence (the default; for items, ngrams, "
    "counts), or sums (for trie and ldp-trie).",
)


@click.group()
def ledger() -> None:
    """The budget that survives the process: one SQLite file."""


@ledger.command()
@click.argument("account")
@click.argument("corpus")
@corpus_options()
@click.option("--epsilon", type=float, required=True, help="The cap on epsilon.")
@click.option("--delta", type=float, required=True, help="The cap on delta.")
@_rule_option
@click.option("--if-missing", is_flag=True, help="If the account exists, change nothing.")
@click.option(
    "--replace",
    is_flag=True,
    help="If the account exists, make it pay for this corpus from now on; its cap and runs stay.",
)
@quiet_option
@ledger_option
@click.pass_context
def add(
    context: click.Context,
    /,
    account: str,
    corpus: str,
    epsilon: float,
    delta: float,
    rule: Rule | None,
    if_missing: bool,
    replace: bool,
    quiet: bool,
    ledger_file: str | None,
    **_: Any,
) -> None:
    """Name a corpus and cap what may ever be spent on it.

    CORPUS is a path, a glob or a folder (docs/corpus.md). Earlier runs on its files count as
    spent. The names and types of its columns are looked at.
    """
    content = corpus_options_given(context)
    if "user" not in content:
        raise click.UsageError("--user: missing; give the column of user ids")
    described = Corpus(corpus, **content)
    notes = _notes_on_corpus(described)
    book = Ledger(ledger_file)
    added = book.add(
        account, described, epsilon, delta, rule, if_missing=if_missing, replace=replace
    )
    cap = added.cap
    if (cap.epsilon, cap.delta, rule or cap.rule) != (epsilon, delta, cap.rule):
        kept = f"({cap.epsilon:g}, {cap.delta:g}), rule {cap.rule}"
        notes.append(f"{account} exists and keeps its cap {kept}")
    payers = book.accounts_of(added.corpus)
    if others := [payer.name for payer in payers if payer.id != added.id]:
        notes.append(f"files of it are those of {', '.join(others)} too: each run on them pays all")
    for note in notes if not quiet else ():
        click.echo(f"note: {note}", err=True)
    click.echo(accounts_text([added]))


def _notes_on_corpus(corpus: Corpus) -> list[str]:
    """Notes for the owner on a corpus that is being added. Wrong columns are refused."""
    if not any(is_remote(place) or files_named(place) for place in corpus.where):
        return [f"no file is at {', '.join(corpus.where)} yet"]
    try:
        check_columns(corpus)
    except DphhError as problem:
        problem.args = (f"{problem}. Nothing was added",)
        raise
    return []


@ledger.command()
@click.argument("account")
@click.option("--epsilon", type=float, required=True, help="The new cap on epsilon.")
@click.option("--delta", type=float, required=True, help="The new cap on delta.")
@_rule_option
@click.option("--yes", is_flag=True, help="Change the cap without asking.")
@quiet_option
@ledger_option
def cap(
    account: str,
    epsilon: float,
    delta: float,
    rule: Rule | None,
    yes: bool,
    ledger_file: str | None,
    **_: Any,
) -> None:
    """Change an account's cap; until it has runs, also how costs are added up under it. Raising a
    cap asks first, and so does lowering it below what is spent."""
    book = existing_ledger(ledger_file)
    if not yes:
        before = book.status(account)
        confirm_higher_cap(
            f"{account}: raise the cap of",
            *(before.cap, epsilon, delta),
            "People were promised the lower cap, and what is spent beyond it cannot be taken back",
        )
        kept = before.cap.rule if delta > 0 else None
        if not fits(before.bookings, checked_cap(epsilon, delta, rule or kept)):
            confirm(
                f"{account}: lower the cap to ({epsilon:g}, {delta:g})? More is spent already, so "
                "it would be broken: every further run is refused, and `dphh verify` refuses the "
                "releases that were made"
            )
    click.echo(accounts_text([book.set_cap(account, epsilon, delta, rule)]))


@ledger.command()
@click.argument("account")
@ledger_option
def remove(account: str, ledger_file: str | None) -> None:
    """Remove an ACCOUNT that has no run. What was spent stays spent: one that has runs is
    refused."""
    existing_ledger(ledger_file).remove(account)


@ledger.command("groups")
@click.argument("account")
@click.option("--by", metavar="COLUMN", help="The column that holds the groups, such as country.")
@click.option(
    "--groups",
    help="The values, with commas between; '' revokes them. Without --groups, they are shown.",
)
@ledger_option
def declare_or_show_groups(
    account: str, by: str | None, groups: str | None, ledger_file: str | None
) -> None:
    """Declare values of a column that everybody may know, such as countries; or show them.

    Then `--by COLUMN` of a verb counts within these, and analysts at the gateway may say it too.
    """
    book = existing_ledger(ledger_file)
    if groups is not None:
        if by is None:
            raise UsageError("--by: missing; name the column that holds the groups")
        book.declare_groups(account, by, groups)
    declared = book.status(account).groups
    for column in [by] if by is not None else [*declared]:
        names = ", ".join(declared.get(column, ("none",)))
        click.echo(f"{account}: declared groups of {column}: {names}")
    if by is None and not declared:
        click.echo(f"{account}: no groups are declared")


@ledger.command()
@click.argument("account", required=False)
@json_option
@quiet_option
@ledger_option
def show(account: str | None, as_json: bool, ledger_file: str | None, **_: Any) -> None:
    """Show what was spent, the caps, and what is left; of one ACCOUNT a page for those who check
    it: its promise in words, what each run was asked for and by whom, and what was changed.

    Without ACCOUNT, also the runs that no account paid for.
    """
    book = existing_ledger(ledger_file)
    if as_json:
        click.echo(json.dumps(statement_as_json(book, account)))
    elif account is not None:
        click.echo(statement_of(book, account))
    else:
        click.echo(accounts_text(book.accounts()))
        if runs := [run for run in book.runs() if not run.accounts]:
            click.echo("\n".join(["of no account, so that no cap holds:", *lines_on_runs(runs)]))


@ledger.command()
@click.argument("run_id")
@click.option("--out", metavar="DIR", help="Write release.parquet and release.json there.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
@ledger_option
def release(run_id: str, out: str | None, as_json: bool, ledger_file: str | None) -> None:
    """Get a release back that was made before; it costs nothing."""
    book = existing_ledger(ledger_file)
    stored = stored_release(book, run_id)
    if out:
        stored.save(out)
    click.echo(stored.dumps() if as_json else repr(stored))


@ledger.command()
@click.argument("file")
@click.option("--replace", is_flag=True, help="If FILE exists, write it anew.")
@quiet_option
@ledger_option
def export(file: str, replace: bool, quiet: bool, ledger_file: str | None) -> None:
    """Write every run to FILE, .parquet or .csv. It is written whole or not at all."""
    book = existing_ledger(ledger_file)
    runs = book.export(file, replace=replace)
    if not quiet:
        click.echo(f"{with_noun(runs, 'run')} written to {file}", err=True)


@ledger.command()
@click.argument("file")
@quiet_option
@ledger_option
def backup(file: str, quiet: bool, ledger_file: str | None) -> None:
    """Copy the ledger to FILE, while others may use it. An earlier copy of it is replaced.

    docs/ledger.md says how to put a copy back, and what it forgets.
    """
    is_first = not Path(file).exists()
    runs = Ledger(ledger_file).backup(file)
    if not quiet:
        click.echo(f"a copy of the ledger, with {with_noun(runs, 'run')}: {file}", err=True)
        if is_first and runs:
            click.echo(
                "no earlier copy is there, so nothing shows whether these runs were edited before",
                err=True,
            )
