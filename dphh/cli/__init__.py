"""The command line: `dphh VERB CORPUS ...`, the same names and defaults as in Python."""

from __future__ import annotations

import sys
import traceback

import click

from dphh import __version__
from dphh.cli.bench import bench
from dphh.cli.demo import demo
from dphh.cli.gateway import serve, shell
from dphh.cli.ledger import ledger
from dphh.cli.report import report
from dphh.cli.sql import sql
from dphh.cli.verbs import COMMANDS
from dphh.errors import DphhError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dphh", message="%(prog)s %(version)s")
def cli() -> None:
    """Find what many people share in private data, and publish it with differential privacy.

    Exit codes: 0 done; 2 bad usage or bad input; 3 refused by the ledger; 1 anything else.
    """


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    In its start-up file: eval "$(dphh completion bash)".
    """
    from click.shell_completion import get_completion_class

    source = get_completion_class(shell)
    assert source is not None
    click.echo(source(cli, {}, "dphh", "_DPHH_COMPLETE").source())


for command in (demo, bench, *COMMANDS, ledger, report, serve, shell, sql):
    cli.add_command(command)


def main() -> None:
    """The entry point: errors of dphh are one line and an exit code, never a traceback."""
    try:
        cli.main(prog_name="dphh", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except (click.Abort, KeyboardInterrupt) as stop:
        click.echo("dphh: stopped; what was reserved in the ledger stays spent", err=True)
        _say_notes(stop.__cause__ or stop)
        sys.exit(1)
    except DphhError as problem:
        click.echo(f"dphh: {problem}", err=True)
        _say_notes(problem)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as problem:
        click.echo("".join(traceback.format_tb(problem.__traceback__)), nl=False, err=True)
        click.echo(
            f"dphh: a defect of dphh, {type(problem).__name__}, whose message is withheld because "
            "it may quote data; please report the lines above",
            err=True,
        )
        sys.exit(1)


def _say_notes(problem: BaseException) -> None:
    for note in getattr(problem, "__notes__", ()):
        click.echo(f"dphh: {note}", err=True)
