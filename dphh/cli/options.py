"""Options that several commands share, and how commands read them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from inspect import signature
from itertools import product
from typing import Any

import click
from click.core import ParameterSource

from dphh.asking.parsed import narrowed_corpus_of_account
from dphh.cli.signatures import CORPUS, SHOW, WHERE, flag, grouped_option, option
from dphh.engines import ENGINES
from dphh.errors import LedgerError, UsageError
from dphh.ledger import Ledger
from dphh.ledger.budget import Cap
from dphh.reader.conditions import combined_condition, joined_by_and
from dphh.reader.corpus import CORPUS_OPTIONS, HELP, ROW_OPTIONS, Corpus
from dphh.run import HELP as RUN_HELP
from dphh.run import run


def with_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator that adds these options to a command, in this order."""

    def add_to(command: Any) -> Any:
        for add_option in reversed(options):
            command = add_option(command)
        return command

    return add_to


ledger_option = grouped_option(
    "--ledger",
    "ledger_file",
    group=WHERE,
    metavar="FILE",
    help="Ledger file; else $DPHH_LEDGER, else one in ~/.local/share/dphh.",
)


def run_option(name: str, group: str = WHERE, **settings: Any) -> Callable[[Any], Any]:
    """The command-line option for an option of `Plan.run`."""
    parameters = signature(run, eval_str=True).parameters
    return option(parameters[name], RUN_HELP[name], group, **settings)


engine_option = run_option("engine", type=click.Choice(ENGINES))
#: The options that say which ledger and engine a run uses, and how much memory and threads.
run_options = with_options(
    ledger_option,
    engine_option,
    run_option("memory_limit"),
    run_option("threads", type=click.IntRange(min=1)),
)
json_option = grouped_option(
    "--json", "as_json", group=SHOW, is_flag=True, help="Print one JSON object, for programs."
)
quiet_option = grouped_option(
    "--quiet", group=SHOW, is_flag=True, help="Only errors on standard error."
)


def corpus_options(verb_options: Collection[str] = ()) -> Callable[[Any], Any]:
    """A decorator that adds the options of a corpus to a command that also has these options of a
    verb. The corpus's `keep` becomes `keep_tokens` if the verb has an option `keep` too."""
    return with_options(
        *(
            option(
                CORPUS_OPTIONS[name],
                help_line,
                CORPUS,
                f"{name}_tokens" if name in verb_options else name,
                required=False,
                multiple=name == "user" or name in ROW_OPTIONS,
            )
            for name, help_line in HELP.items()
        )
    )


def corpus_options_given(context: click.Context) -> dict[str, Any]:
    """The options of the corpus that were given, as keywords of `Corpus`. Conditions on rows are
    joined by AND into one."""
    names = {
        f"{name}_tokens" if f"{name}_tokens" in context.params else name: name for name in HELP
    }
    given = {names[name]: value for name, value in options_given(context, names).items()}
    for since, until in product(given.get("since", ()), given.get("until", ())):
        combined_condition(since=since, until=until)  # refuses a pair with nothing between
    conditions = [
        combined_condition(**{name: condition})
        for name in ("where", "since", "until")
        for condition in given.pop(name, ())
    ]
    return given if not conditions else {**given, "where": joined_by_and(*conditions)}


def options_given(context: click.Context, names: Iterable[str]) -> dict[str, Any]:
    """The options that the caller gave, including those given with their default value."""
    return {
        name: context.params[name]
        for name in names
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def corpus_of_command(
    account_or_path: str, ledger: Ledger, options: dict[str, Any], files: Sequence[str] = ()
) -> Corpus:
    """The corpus of the account with this name or, if the ledger has none, of the path or glob."""
    corpus = narrowed_corpus_of_account(ledger, account_or_path, options, flag, files)
    if corpus is not None:
        return corpus
    if files:
        raise click.UsageError(
            f"--files: the ledger has no account {account_or_path!r}; for a corpus without one, "
            "give its files as CORPUS"
        )
    if "user" not in options:
        names = ledger.names()
        known = f" (the ledger has {', '.join(sorted(names))})" if names else ""
        raise click.UsageError(
            f"--user: missing for {account_or_path!r}, which is read as a path, as the ledger has "
            f"no such account{known}; correct the name, or give --user and --text or --item"
        )
    return Corpus(account_or_path, **options)


def existing_ledger(file: str | None) -> Ledger:
    """The ledger, for a command that needs one: refused if there is none, or if it was edited."""
    book = Ledger(file)
    if (why := book.absent()) is not None:
        raise UsageError(why)
    if (edited := book.edited()) is not None:
        raise LedgerError(edited)
    return book


def confirm_higher_cap(
    raise_what: str, old: Cap, new_epsilon: float, new_delta: float, warning: str
) -> None:
    """Ask before a cap or a share is raised."""
    if new_epsilon <= old.epsilon and new_delta <= old.delta:
        return
    raised = f"({old.epsilon:g}, {old.delta:g}) to ({new_epsilon:g}, {new_delta:g})"
    confirm(f"{raise_what} {raised}? {warning}")


def confirm(question: str) -> None:
    """Ask before a change that cannot be taken back. Without a terminal, refuse and name the option
    that confirms it."""
    if not sys.stdin.isatty():
        raise UsageError(f"{question}. Nothing was changed; --yes confirms it")
    if not click.confirm(question, err=True):
        raise UsageError("Nothing was changed")
