"""The command line: `dphh VERB CORPUS ...`, the same names and defaults as in Python.

Here belongs what turns arguments into calls, and answers into text and exit codes; a verb's options
come from the registry (`options.py`). This file lists the commands; each is in the module named
beside it. May import: all of dphh. Begin at `verbs.py`.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import click

from dphh.errors import DphhError
from dphh.files.stopping import end_by_signal, received_signal, stopping
from dphh.wording.options import did_you_mean, respell_options

#: The commands in the order of the help, each with its module and its line in the help.
_COMMANDS = {
    "demo": ("demo", "See it work: the shared words of 100,000 made-up people."),
    "items": ("verbs", "Single items that many users hold."),
    "ngrams": ("verbs", "Runs of up to `max_n` tokens that many users hold."),
    "trie": ("verbs", "Sequences, grown level by level from sampled votes."),
    "ldp-trie": ("verbs", "Sequences, grown level by level from locally randomised votes."),
    "counts": ("verbs", "How many users hold each of given items, with intervals."),
    "check": ("verbs", "Look at a corpus before anything is spent on it."),
    "ledger": ("ledger", "The budget that survives the process: one SQLite file."),
    "report": ("saved", "Show saved releases, on a page or here."),
    "verify": ("saved", "Check whether a folder may leave."),
    "why": ("saved", "Say why a phrase is not in a saved release."),
    "serve": ("gateway", "Let analysts ask about the ledger's corpora."),
    "shell": ("shell", "SQL with dphh's macros; FROM dphh_help(); lists them."),
}


class LazyCommands(click.Group):
    """Commands that are imported when they are called, so that help and `dphh --version` import no
    engine."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"dphh.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            suggestion = did_you_mean(args[0], self.list_commands(ctx)).capitalize()
            raise click.UsageError(f"{problem.message} {suggestion}".rstrip(), ctx) from None


_INTERRUPTED = "interrupted; `dphh ledger show` says what is spent"

#: What `dphh` prints if no command is given.
FIRST_STEPS = """\
dphh finds what many people share, and publishes it with differential privacy.
  dphh demo                            see it work, on made-up people
  dphh check FILE --user U --text T    look at your own table, for free
  dphh ngrams FILE --user U --text T --max-n 3 --epsilon 1 --delta 1e-6 --plan
                                       the price of a search, for free
  dphh --help                          all commands; dphh ngrams --help its options"""


@click.group(
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="dphh", prog_name="dphh", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Find what many people share in private data, and publish it with differential privacy.

    Exit codes: 0 done; 2 bad usage or bad input; 3 refused by the ledger; 4 verified, with lines
    that a person must answer; 128 + N ended by signal N (143 SIGTERM, 130 Ctrl-C); 1 anything else.
    """
    if context.invoked_subcommand is None:
        click.echo(FIRST_STEPS)


def main() -> None:
    """The entry point, which shows an error of dphh as one line and an exit code, no traceback.

    On a signal it cleans up, says so, and then ends by that signal.
    """
    booked: set[str] = set()
    with warnings.catch_warnings(), stopping(partial(_last_words, booked)):
        warnings.showwarning = _print_warning_in_one_line
        code = _run_command(booked)
    if (number := received_signal()) is not None:
        end_by_signal(number)
    sys.exit(code)


def _print_warning_in_one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line, without the line of code; with `--quiet`, print nothing."""
    if "--quiet" not in sys.argv:
        click.echo(f"dphh: warning: {message}", err=True)


def _run_command(booked: set[str]) -> int:
    """Run the command and return its exit code; `booked` gets the ids of the runs that it pays."""
    try:
        code = cli.main(prog_name="dphh", standalone_mode=False, obj=booked)
    except BaseException as problem:
        return _report_failure(problem, booked)
    return code if isinstance(code, int) else 0  # an integer if the command called `Context.exit`


def _report_failure(problem: BaseException, booked: set[str]) -> int:
    """Print why the command ended, with `--json` for programs too, and return its exit code."""
    kind, notes = type(problem).__name__, list(getattr(problem, "__notes__", ()))
    number = received_signal()
    if number is not None or isinstance(problem, (click.Abort, KeyboardInterrupt)):
        kind, message, notes = "Stopped", _INTERRUPTED, _notes_behind(problem)
        code = 1 if number is None else 128 + number
    else:
        code, message = _code_and_message(problem)
    if "--json" in sys.argv:
        click.echo(_error_as_json(kind, message, notes, code, booked))
    if isinstance(problem, click.ClickException):
        problem.show()
    else:
        for line in (message, *notes):
            click.echo(f"dphh: {line}", err=True)
    return code


def _code_and_message(problem: BaseException) -> tuple[int, str]:
    match problem:
        case click.ClickException() | DphhError():
            return problem.exit_code, _message_of(problem)
        case ModuleNotFoundError(name="starlette" | "uvicorn"):
            missing = f"this needs {problem.name}, which is not installed"
            return 2, f"{missing}; pip install 'dphh[serve]'"
        case Exception():
            click.echo("".join(traceback.format_tb(problem.__traceback__)), nl=False, err=True)
            return 1, (
                f"a defect of dphh, {type(problem).__name__}, whose message is withheld "
                "because it may quote data; please report the lines above"
            )
    raise problem


def _error_as_json(
    kind: str, message: str, notes: Sequence[str], exit_code: int, booked: set[str]
) -> str:
    """An error as JSON, for standard output. Standard error gets it as text."""
    fields = {"kind": kind, "message": message, "notes": notes, "exit_code": exit_code}
    # Errors that come before a run is booked have spent nothing.
    return json.dumps(
        {"error": {**fields, "spent": bool(booked), "run_id": min(booked, default=None)}}
    )


def _last_words(booked: set[str], number: int) -> str:
    """The text for standard output if an engine does not return after a signal."""
    if "--json" not in sys.argv:
        return ""
    return _error_as_json("Stopped", _INTERRUPTED, [], 128 + number, booked) + "\n"


def _message_of(problem: click.ClickException | DphhError) -> str:
    if isinstance(problem, click.ClickException):
        return problem.format_message()
    from dphh.cli.signatures import as_flag

    return respell_options(str(problem), as_flag)


def _notes_behind(problem: BaseException) -> list[str]:
    """The notes of an error and of its causes, which say what is spent."""
    notes: list[str] = []
    chain: BaseException | None = problem
    while chain is not None:
        notes += getattr(chain, "__notes__", ())
        chain = chain.__cause__ or chain.__context__
    return notes
