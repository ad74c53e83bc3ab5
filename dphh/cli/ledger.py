"""`dphh ledger`: name corpora, cap them, see what is spent, get releases back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from math import fsum
from typing import Any

import click

from dphh.cli.options import (
    confirm_higher_cap,
    corpus_options,
    corpus_options_given,
    existing_ledger,
    json_option,
    ledger_option,
    quiet_option,
)
from dphh.cli.signatures import as_flag
from dphh.engines import open_host
from dphh.errors import DphhError, UsageError
from dphh.ledger import Account, Entry, Ledger
from dphh.ledger.asked import asked_in_words
from dphh.ledger.budget import RULES, Rule, percent, share_used
from dphh.ledger.places import label_of
from dphh.ledger.spending import account_lines, accounts_text
from dphh.privacy.events import costs_of
from dphh.reader.corpus import ROWS_WITHOUT_USER_MESSAGE, Corpus, unit_and_columns
from dphh.reader.paths import files_named, is_remote
from dphh.reader.rows import Limits
from dphh.release import stored_release
from dphh.report.sentences import odds_in_words
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.wording.lines import visible_text, with_noun, wrapped
from dphh.wording.options import respell_options

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
    named = Corpus(corpus, **content)
    notes = _notes_on_corpus(named)
    book = Ledger(ledger_file)
    made = book.add(account, named, epsilon, delta, rule, if_missing=if_missing, replace=replace)
    if (made.cap.epsilon, made.cap.delta, rule or made.cap.rule) != (epsilon, delta, made.cap.rule):
        said = f"({made.cap.epsilon:g}, {made.cap.delta:g}), rule {made.cap.rule}"
        notes.append(f"{account} exists and keeps its cap {said}")
    if others := [each.name for each in book.accounts_of(made.corpus) if each.id != made.id]:
        notes.append(f"files of it are those of {', '.join(others)} too: each run on them pays all")
    for note in notes if not quiet else ():
        click.echo(f"note: {note}", err=True)
    click.echo(accounts_text([made]))


def _notes_on_corpus(corpus: Corpus) -> list[str]:
    """Open the corpus before its first run: refuse wrong columns, and report rows with a NULL user
    id."""
    if not any(is_remote(place) or files_named(place) for place in corpus.where):
        return [f"no file is at {', '.join(corpus.where)} yet"]
    try:
        with closing(open_host("duckdb", corpus, SystemRandomness(), Limits())) as host:
            if corpus.content.null_users == "refuse" and host.has_rows_without_user():
                found = respell_options(ROWS_WITHOUT_USER_MESSAGE, as_flag)
                return [f"{found}; until one is done, every run is refused"]
    except DphhError as problem:
        problem.args = (f"{problem}. Nothing was added",)
        raise
    return []


@ledger.command()
@click.argument("account")
@click.option("--epsilon", type=float, required=True, help="The new cap on epsilon.")
@click.option("--delta", type=float, required=True, help="The new cap on delta.")
@_rule_option
@click.option("--yes", is_flag=True, help="Raise the cap without asking.")
@ledger_option
def cap(
    account: str,
    epsilon: float,
    delta: float,
    rule: Rule | None,
    yes: bool,
    ledger_file: str | None,
) -> None:
    """Change an account's cap; until it has runs, also how costs are added up under it. Raising a
    cap asks first."""
    book = existing_ledger(ledger_file)
    if not yes:
        confirm_higher_cap(
            f"{account}: raise the cap of",
            *(book.status(account).cap, epsilon, delta),
            "People were promised the lower cap, and what is spent beyond it cannot be taken back",
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
        of_column = ", ".join(declared.get(column, ("none",)))
        click.echo(f"{account}: declared groups of {column}: {of_column}")
    if by is None and not declared:
        click.echo(f"{account}: no groups are declared")


@ledger.command()
@click.argument("account", required=False)
@json_option
@quiet_option
@ledger_option
def show(account: str | None, as_json: bool, ledger_file: str | None, **_: Any) -> None:
    """Show what was spent, the caps, and what is left; of one ACCOUNT also its runs and history.

    Without ACCOUNT, also the runs that no account paid for.
    """
    book = existing_ledger(ledger_file)
    found = book.accounts() if account is None else [book.status(account)]
    payer = None if account is None else found[0]
    runs = [run for run in book.runs(account) if account is not None or not run.accounts]
    changes = [] if account is None else book.history(account)
    if as_json:
        listed = [
            {"run_id": run.run_id, "verb": run.verb, "state": run.state, "epsilon": run.epsilon,
             "delta": run.delta, "when": run.when.isoformat(), "who": run.analyst or run.who,
             "since": run.changed.isoformat(), "local_epsilon": local_epsilon(run),
             "asked": asked_in_words(run), "used": payer and share_used([run.booking], payer.cap)}
            for run in runs
        ]  # fmt: skip
        accounts = [each.to_json() for each in found]
        if account is None:
            click.echo(json.dumps({"accounts": accounts, "runs_of_no_account": listed}))
        else:
            history = [change.to_json() for change in changes]
            click.echo(json.dumps({**accounts[0], "runs": listed, "history": history}))
        return
    click.echo(accounts_text(found))
    if account is None and runs:
        click.echo("of no account, so that no cap holds:")
    for run in runs:
        cost = f"({run.epsilon:g}, {run.delta:g})"
        click.echo(
            f"   {run.when:%Y-%m-%d} {run.verb:<8} {run.state:<7} {cost:<14} {run.run_id} "
            f"{visible_text(run.analyst or run.who)}"
        )
        for line in wrapped(visible_text(_asked_and_share(run, payer), 10_000), " " * 14, " " * 14):
            click.echo(line)
        if (told := local_epsilon(run)) is not None:
            click.echo(f"{'':<14}to those who get the reports: local epsilon {told:g} a user")
    for change in changes:
        click.echo("\n".join(wrapped(visible_text(str(change), 10_000), "   ", "      ")))


@ledger.command()
@click.argument("account")
@ledger_option
def statement(account: str, ledger_file: str | None) -> None:
    """Print one page on an account, for those who check it: its promise, runs and who made them,
    totals, versions."""
    click.echo(statement_of(existing_ledger(ledger_file), account))


@ledger.command()
@click.argument("run_id")
@click.option("--out", metavar="DIR", help="Write release.parquet and release.json there.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
@ledger_option
def release(run_id: str, out: str | None, as_json: bool, ledger_file: str | None) -> None:
    """Get a release back that was made before; it costs nothing."""
    found = stored_release(existing_ledger(ledger_file), run_id)
    if out:
        found.save(out)
    click.echo(found.dumps() if as_json else repr(found))


@ledger.command()
@click.argument("file")
@click.option("--replace", is_flag=True, help="If FILE exists, write it anew.")
@quiet_option
@ledger_option
def export(file: str, replace: bool, quiet: bool, ledger_file: str | None) -> None:
    """Write every run to FILE, .parquet or .csv. It is written whole or not at all."""
    runs = existing_ledger(ledger_file).export(file, replace=replace)
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
    runs = existing_ledger(ledger_file).backup(file)
    if not quiet:
        click.echo(f"a copy of the ledger, with {with_noun(runs, 'run')}: {file}", err=True)


def statement_of(book: Ledger, account: str) -> str:
    """The statement on an account, as Markdown that reads well as plain text."""
    found, runs = book.status(account), book.runs(account)
    lines = [
        f"# Statement of the account {found.name}",
        f"By dphh {version('dphh')}, from the ledger {book.path}.",
        f"Data: {label_of(found.corpus)}; "
        f"what is protected: {unit_and_columns(found.corpus.user)}.",
        *(f"{text[0].upper()}{text[1:]}." for text in account_lines(found)),
        *([] if found.used > 1 else [f"In words: {_odds_of(found)} (docs/officers.md)"]),
        "\n## Runs, each with its own epsilon and delta",
        *(_statement_on_run(run, found) for run in runs),
        "\n## Totals",
        *(
            f"- {verb} by {who}: {with_noun(times, 'run')}"
            for (verb, who), times in sorted(
                Counter((run.verb, run.analyst or run.who) for run in runs).items()
            )
        ),
        _sums_in_words(found, runs),
        "Of a settled run the ledger has the release. A run that did not finish (running, failed) "
        "is spent all the same. Names are those of analysts or of logins on the machine: notes, "
        "not proofs.",
        "\n## Changes",
        *(f"- {change}" for change in book.history(account)),
    ]
    return "\n".join(
        visible_text(part, 10_000) if part else "" for line in lines for part in line.split("\n")
    )


def _odds_of(account: Account) -> str:
    what = "one person's rows" if len(account.corpus.user) == 1 else "one combination's rows"
    said = odds_in_words(account.cap.epsilon, account.cap.delta, what)
    return f"{said[0].lower()}{said[1:]}"


def _sums_in_words(account: Account, runs: Sequence[Entry]) -> str:
    """What the runs' own epsilons and deltas add up to, and what that has to do with the cap."""
    sums = [fsum(each) for each in ([run.epsilon for run in runs], [run.delta for run in runs])]
    said = f"The runs' own epsilons add up to {sums[0]:.4g}, their deltas to {sums[1]:.4g}"
    if account.cap.rule == "sums":
        return f"{said}. By this account's rule these sums are what counts."
    return (
        f"{said}. That is no measure of what the runs show together, and may be more than was "
        "promised: each number is of its run alone, and several draws of noise hide more than the "
        f"sum says. What counts is the share of the promise that is used, {percent(account.used)}."
    )


def _statement_on_run(run: Entry, payer: Account) -> str:
    """The statement on a run. Of a settled run also the version of dphh and the engine."""
    line = f"- {run.when:%Y-%m-%d} {run.verb} ({run.epsilon:g}, {run.delta:g}) {run.state}, by "
    line += run.analyst or run.who
    if run.made_with:
        line += f", made with {run.made_with}"
    return f"{line}, run {run.run_id}\n  {_asked_and_share(run, payer)}"


def _asked_and_share(run: Entry, payer: Account | None) -> str:
    """What a run was asked for, and which share of the payer's cap it took."""
    if payer is None:
        return f"asked for: {asked_in_words(run)}"
    took = percent(share_used([run.booking], payer.cap))
    return f"asked for: {asked_in_words(run, payer.corpus)}; took {took} of the cap"


def local_epsilon(run: Entry) -> float | None:
    """The epsilon of all reports of one user, against those who collect them; None if the run has
    no reports."""
    epsilons = [cost.uncharged_epsilon for cost in costs_of(run.events)]
    sent = [epsilon for epsilon in epsilons if epsilon is not None]
    return sum(sent) if sent else None
