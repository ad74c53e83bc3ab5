"""`dphh ledger`: name corpora, cap them, see what is spent, get releases back."""

from __future__ import annotations

import json
from typing import Any
from warnings import catch_warnings, simplefilter

import click

from dphh.cli.options import (
    content_options_given,
    corpus_options,
    ledger_option,
    refuse_missing_columns,
)
from dphh.cli.raising import confirm, describe_raise
from dphh.corpus import Corpus, corpus_from_json, in_groups
from dphh.engines import open_session
from dphh.errors import DphhError, Notice, UsageError
from dphh.ledger import Entry, Ledger, Source
from dphh.ledger.budget import SETTLED_BY_OWNERS, Kept
from dphh.ledger.origins import source_of
from dphh.ledger.wording import accounts_text, missing_files_text
from dphh.privacy.events import Json, costs_of, events_to_json
from dphh.release import Release
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.wording.lines import plural, wrapped
from dphh.wording.shown import shown

_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


_kept_option = click.option(
    "--kept",
    type=click.Choice(SETTLED_BY_OWNERS),
    default="open",
    show_default=True,
    help="How the cap is kept: divergence for Gaussian noise (items, ngrams, counts), sums for "
    "trie and ldp-trie; open leaves it to the first run.",
)


_person_options = [
    click.option(
        f"--person-{what}",
        type=float,
        help=f"Of a corpus with --period: the {what} of a person over all periods.",
    )
    for what in ("epsilon", "delta")
]


def _person_cap(epsilon: float | None, delta: float | None) -> tuple[float, float] | None:
    if epsilon is None and delta is None:
        return None
    if epsilon is None or delta is None:
        raise click.UsageError("--person-epsilon, --person-delta: give both, or neither")
    return epsilon, delta


@click.group()
def ledger() -> None:
    """The budget that survives the process: one SQLite file."""


@ledger.command()
@click.argument("name")
@click.argument("corpus")
@corpus_options()
@click.option("--epsilon", type=float, required=True, help="The cap.")
@click.option("--delta", type=float, required=True, help="The cap.")
@_person_options[0]
@_person_options[1]
@_kept_option
@click.option("--if-missing", is_flag=True, help="Where it is there, leave it, and its cap, alone.")
@click.option("--unseen", is_flag=True, help="Do not look whether the files have the columns.")
@ledger_option
@click.pass_context
def add(
    context: click.Context,
    /,
    name: str,
    corpus: str,
    epsilon: float,
    delta: float,
    person_epsilon: float | None,
    person_delta: float | None,
    kept: Kept,
    if_missing: bool,
    unseen: bool,
    ledger_file: str | None,
    **_: Any,
) -> None:
    """Name a corpus and cap what may ever be spent on it.

    CORPUS is a path, a glob or a folder (docs/sources.md). What was spent on its files before
    counts. The names and types of its columns are looked at, and no row. With --period the cap is
    for each period by itself (docs/periods.md).
    """
    content = content_options_given(context)
    if "user" not in content:
        raise click.UsageError("--user: missing; give the column of user ids")
    named = Corpus(corpus, **content)
    if not unseen:
        _check_columns(named)
    book, source = Ledger(ledger_file), source_of(named)
    _say_moved(book, source)
    with catch_warnings():
        simplefilter("ignore", Notice)  # which say the same
        person = _person_cap(person_epsilon, person_delta)
        account = book.add(name, source, epsilon, delta, kept, person, if_missing=if_missing)
    if account.cap is not None and (account.cap.epsilon, account.cap.delta) != (epsilon, delta):
        said = f"({account.cap.epsilon:g}, {account.cap.delta:g}), and was left alone"
        click.echo(f"note: {name} is there, with the cap {said}; dphh ledger cap sets it", err=True)
    click.echo(accounts_text([account]))
    if not book.moved_here(source):
        _say_other_names(book, name)


def _say_other_names(book: Ledger, name: str) -> None:
    """Note other accounts of the same data: a run is paid by all of them, so the strictest cap
    counts."""
    others = [other for other in book.accounts_touched(name) if other != name]
    if others:
        said = f"a run on {name} is also paid by {', '.join(others)}, while that has room"
        click.echo("\n".join(wrapped(said, "note: ", "      ")), err=True)


def _check_columns(corpus: Corpus) -> None:
    """Open the corpus, so that a wrong column is refused now and not by the first run."""
    try:
        open_session("duckdb", corpus, SystemRandomness(), Limits()).close()
    except DphhError as problem:
        problem.add_note("nothing was added; --unseen adds a corpus whose files are not there yet")
        raise


def _say_moved(book: Ledger, source: Source) -> None:
    for said in book.moved_here(source):
        click.echo(f"note: {said}", err=True)


def _existing_ledger(ledger_file: str | None) -> Ledger:
    """The ledger, for commands that only read it. Refuses a ledger that does not exist."""
    book = Ledger(ledger_file)
    book.refuse_absent()
    return book


@ledger.command()
@click.argument("name")
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--yes", is_flag=True, help="Move it though the files cannot be told to be its own.")
@click.option("--deleted", is_flag=True, help="They lie nowhere: no run says so any more.")
@ledger_option
def move(
    name: str, paths: tuple[str, ...], yes: bool, deleted: bool, ledger_file: str | None
) -> None:
    """Say where the data of an account lie now: its cap stays, and what it spent.

    PATH is a path, a glob or a folder; several are one corpus. Without --yes the files there must
    be known as the account's, and none may be left at the old place.
    """
    if deleted == bool(paths):
        raise click.UsageError("PATH: missing; give the data's path, or --deleted if it is gone")
    book = _existing_ledger(ledger_file)
    click.echo(accounts_text([book.deleted(name) if deleted else book.move(name, paths, sure=yes)]))


@ledger.command()
@click.argument("name")
@ledger_option
def remove(name: str, ledger_file: str | None) -> None:
    """Forget an account that nothing was ever charged to."""
    book = Ledger(ledger_file)
    analysts = [share.analyst for share in book.shares() if share.account == name]
    declared = list(book.declared_groups().get(name, ()))
    book.remove(name)
    click.echo(f"{name} is removed")
    if analysts:
        click.echo(f"with it went the shares of {', '.join(analysts)}", err=True)
    if declared:
        click.echo(f"with it went the declared groups of {', '.join(declared)}", err=True)


@ledger.command()
@click.argument("name")
@click.argument("new")
@ledger_option
def rename(name: str, new: str, ledger_file: str | None) -> None:
    """Give an account that nothing was ever charged to another name."""
    click.echo(accounts_text([Ledger(ledger_file).rename(name, new)]))


@ledger.command()
@click.argument("name")
@click.option("--epsilon", type=float, required=True, help="The new cap.")
@click.option("--delta", type=float, required=True, help="The new cap.")
@_person_options[0]
@_person_options[1]
@_kept_option
@click.option("--yes", is_flag=True, help="Raise it without asking.")
@ledger_option
def cap(
    name: str,
    epsilon: float,
    delta: float,
    person_epsilon: float | None,
    person_delta: float | None,
    kept: Kept,
    yes: bool,
    ledger_file: str | None,
) -> None:
    """Change a corpus's cap, or how it is kept. Raising it asks first. A person's cap stays where
    none is given."""
    book = _existing_ledger(ledger_file)
    before, person = book.status(name), _person_cap(person_epsilon, person_delta)
    raised = [describe_raise(before.cap, epsilon, delta)]
    if person is not None:
        raised.append(describe_raise(None if before.person is None else before.person.cap, *person))
    if (higher := " and, of a person, ".join(filter(None, raised))) and not yes:
        confirm(
            f"{name}: raise the cap of {higher}? People were promised the lower one, and what is "
            "spent of a higher one is never taken back"
        )
    click.echo(accounts_text([book.set_cap(name, epsilon, delta, kept, person)]))


def _refuse_absent_column(book: Ledger, name: str, by: str) -> None:
    """Local text files too, whose first lines `Ledger.declare_groups` does not read."""
    source = book.status(name).source
    if source.kind == "path":
        corpus = in_groups(corpus_from_json(source.to_json()), by)
        refuse_missing_columns(corpus, "Nothing was declared")


@ledger.command()
@click.argument("name")
@click.option("--by", metavar="COLUMN", help="The column that holds the groups, such as country.")
@click.option(
    "--groups", help="The values, with commas between; '' revokes them. Without it, they are shown."
)
@ledger_option
def groups(name: str, by: str | None, groups: str | None, ledger_file: str | None) -> None:
    """Declare values of a column that everybody may know, such as countries; or show them.

    Then `--by COLUMN` of a verb counts within these, and analysts at the gateway may say it too.
    """
    book = _existing_ledger(ledger_file)
    if groups is not None:
        if by is None:
            raise UsageError("--by: missing; name the column that holds the groups")
        _refuse_absent_column(book, name, by)
        book.declare_groups(name, by, groups)
    book.status(name)  # refuses a name that the ledger does not have
    declared = book.declared_groups().get(name, {})
    for column in [by] if by is not None else [*declared]:
        click.echo(f"{name}, by {column}: {', '.join(declared.get(column, ('none',)))}")
    if by is None and not declared:
        click.echo(f"{name}: no groups are declared")


@ledger.command()
@click.argument("file")
@ledger_option
def backup(file: str, ledger_file: str | None) -> None:
    """Copy the ledger to FILE, as it is at one moment, whoever runs meanwhile."""
    book = _existing_ledger(ledger_file)
    book.backup(file)
    click.echo(f"{book.path} is copied to {file}", err=True)
    from dphh.gateway.analysts import Analysts

    if (tokens := Analysts.of(book).path).exists():
        click.echo(f"the analysts' tokens are not in it: copy {tokens} too", err=True)


@ledger.command()
@click.argument("name", required=False)
@_json_option
@ledger_option
def show(name: str | None, as_json: bool, ledger_file: str | None) -> None:
    """What was spent, what the caps are, what is left; with NAME, its runs, and who changed what.

    NAME is a name in the ledger or, of a corpus that has none, its path.
    """
    book = _existing_ledger(ledger_file)
    name = None if name is None else book.label_of(name)
    accounts = book.accounts() if name is None else [book.status(name)]
    runs = [] if name is None else book.runs(name)
    gone = {account.name for account in book.gone()}
    if (said := book.behind()) is not None:
        click.echo(f"warning: {said}", err=True)
    if as_json:
        listed_accounts = [{**each.to_json(), "gone": each.name in gone} for each in accounts]
        if name is None:
            click.echo(json.dumps({"accounts": listed_accounts}))
        else:
            listed = [
                {"run_id": run.run_id, "verb": run.verb, "state": run.state,
                 "epsilon": run.epsilon, "delta": run.delta, "when": run.when.isoformat(),
                 "local_epsilon": local_epsilon(run), "drawn": _drawn_events_if_fewer(run)}
                for run in runs
            ]  # fmt: skip
            changed = [change.to_json() for change in book.history(name)]
            click.echo(json.dumps({**listed_accounts[0], "runs": listed, "history": changed}))
        return
    click.echo(accounts_text(accounts))
    for account in accounts:
        if account.name in gone:
            said = missing_files_text(account, account.source.where)
            click.echo("\n".join(wrapped(said, "warning: ", "         ")))
    if name is not None and accounts[0].cap is not None:
        _say_other_names(book, name)
    for run in runs:
        cost = f"({run.epsilon:g}, {run.delta:g})"  # with a long one, a line is 80 columns
        click.echo(f"   {run.when:%Y-%m-%d} {run.verb:<8} {run.state:<9} {cost:<14} {run.run_id}")
        if run.drawn is not None:
            click.echo(f"{'':<14}drew less than was reserved, and the rest was given back")
        if (told := local_epsilon(run)) is not None:
            click.echo(f"{'':<14}to the curator, beside it: local epsilon {told:g} a user")
    for change in [] if name is None else book.history(name):
        click.echo("\n".join(wrapped(shown(str(change), 10_000), "   ", "      ")))


@ledger.command()
@click.argument("run_id")
@click.option("--out", metavar="DIR", help="Write release.parquet and release.json there.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
@ledger_option
def release(run_id: str, out: str | None, as_json: bool, ledger_file: str | None) -> None:
    """Get a release back that was made before; it costs nothing."""
    manifest, parquet = _existing_ledger(ledger_file).release(run_id)
    found = Release.from_parquet(parquet, manifest)
    if out:
        found.save(out)
    click.echo(found.dumps() if as_json else repr(found))


@ledger.command()
@click.argument("file")
@click.option("--history", is_flag=True, help="In their place who changed caps, shares and tokens.")
@ledger_option
def export(file: str, history: bool, ledger_file: str | None) -> None:
    """Write every run to FILE, .parquet or .csv."""
    book = _existing_ledger(ledger_file)
    book.export(file, history=history)
    many = plural(len(book.history()), "change") if history else plural(len(book.runs()), "run")
    click.echo(f"{many} written to {file}", err=True)


def _drawn_events_if_fewer(run: Entry) -> list[Json] | None:
    """The events that a settled run drew, if it drew less than it had reserved."""
    return None if run.drawn is None else events_to_json(run.drawn)


def local_epsilon(run: Entry) -> float | None:
    """The epsilon of a user's own messages for their receiver; None if no messages were sent."""
    told = [cost.beside for cost in costs_of(run.events) if cost.beside is not None]
    return sum(told) if told else None
