"""Commands about a saved release: `dphh report`, `dphh verify` and `dphh why`. All are free."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import click

from dphh.cli.options import existing_ledger, json_option, ledger_option
from dphh.gate.verifying import WAITS
from dphh.gate.verifying import verify as verify_folder
from dphh.release import Release
from dphh.wording.lines import in_two_columns, visible_text, with_noun

top_option = click.option(
    "--top",
    type=click.IntRange(min=1),
    default=25,
    show_default=True,
    help="Rows of each table of the page that are not folded.",
)


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@click.option("-o", "--output", metavar="FILE", help="The page: one HTML file.")
@click.option(
    "--against",
    multiple=True,
    metavar="FOLDER",
    help="An earlier release: say what rose and fell in the first FOLDER that it compares with.",
)
@click.option("--csv", "csv_file", metavar="FILE", help="The table, as a CSV file.")
@click.option(
    "--separator",
    type=click.Choice([",", ";"]),
    default=",",
    show_default=True,
    help='Between the cells of the CSV file; ";" where decimals have a comma.',
)
@click.option("--title", help="The page's heading.")
@top_option
@click.option("--budget", is_flag=True, help="Show what is left in the accounts that paid.")
@ledger_option
def report(
    folders: Sequence[str],
    output: str | None,
    against: Sequence[str],
    csv_file: str | None,
    separator: Literal[",", ";"],
    title: str | None,
    top: int,
    budget: bool,
    ledger_file: str | None,
) -> None:
    """Show saved releases, on a page or here: what was found, what is promised, what changed.

    A FOLDER is what --out wrote; several are shown on one page. It costs nothing. The page is one
    file and asks no network. Without a file to write, the releases are printed.

    \b
    dphh report phrases/ -o phrases.html --title "What people write about soup"
    dphh report november/ --against october/
    dphh report found/ total/ bycountry/ -o page.html
    dphh report phrases/ --csv phrases.csv
    """
    if csv_file is not None and len(folders) > 1:
        raise click.UsageError("--csv: found several releases; give the one whose table is wanted")
    release, *others = map(Release.load, folders)
    earlier = [*map(Release.load, against)]
    if output is None and csv_file is None:
        from dphh.report.terminal import report_text  # imports Polars

        click.echo(report_text((release, *others), earlier, top))
    if csv_file is not None:
        click.echo(f"written to {release.to_csv(csv_file, separator=separator)}", err=True)
    if output is not None:
        written = release.report(
            output,
            title=title,
            ledger=existing_ledger(ledger_file) if budget or ledger_file else None,
            top=top,
            others=others,
            against=earlier,
        )
        click.echo(f"written to {written}", err=True)


@click.command()
@click.argument("folder")
@click.option("--account", metavar="NAME", help="Refuse a run that this account did not pay for.")
@click.option(
    "--answered",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Changes 1 to N of the account, as `ledger show NAME` has them, then wait for no answer.",
)
@click.option(
    "--run-id", metavar="ID", help="Refuse another run; this id then waits for no answer."
)
@click.option(
    "--days", metavar="COLUMN", help="A range of this column's days then waits for no answer."
)
@click.option("--groups", metavar="NAMES", help="Groups that then wait for no answer, with commas.")
@click.option(
    "--of", metavar="FILE", help="Given items in it, one a line, then wait for no answer."
)
@click.option("--page", metavar="FILE", help="Also check a page that `dphh report` wrote of it.")
@click.option("--title", help="The heading with which the page was written.")
@top_option
@click.option(
    "--without-ledger", is_flag=True, help="Check only that the release agrees with itself."
)
@json_option
@ledger_option
@click.pass_context
def verify(
    context: click.Context,
    /,
    folder: str,
    account: str | None,
    answered: int,
    run_id: str | None,
    days: str | None,
    groups: str | None,
    of: str | None,
    page: str | None,
    title: str | None,
    top: int,
    without_ledger: bool,
    as_json: bool,
    ledger_file: str | None,
) -> None:
    """Check whether a folder may leave: it is a release that was paid for, and nothing else.

    FOLDER is what --out wrote. It passes, with exit code 0, if it holds the two files of a release
    alone, as the ledger has stored them, byte for byte, for a run that an account paid for within
    its cap. Exit code 4: this holds too, and a line with ! waits for a person's answer, as where
    the cap was made or raised after the run, or a text leaves that somebody wrote. All else, also
    what could not be checked, has another exit code. It costs nothing.
    """
    lines = verify_folder(
        folder,
        ledger=ledger_file,
        account=account,
        answered=answered,
        run_id=run_id,
        days=days,
        groups=groups,
        of=of,
        without_ledger=without_ledger,
        page=page,
        title=title,
        top=top,
    )
    to_answer = sum(what in WAITS for what, _ in lines)
    code = 4 if to_answer else 0
    if as_json:
        listed = [{"what": what, "found": text, "waits": what in WAITS} for what, text in lines]
        click.echo(json.dumps({"exit_code": code, "lines": listed}))
        context.exit(code)
    marked = [(f"{'!' if what in WAITS else '+'} {what}", visible_text(text, 10**8))
              for what, text in lines]  # fmt: skip
    click.echo("\n".join(in_two_columns(marked)))
    verdict = "passed (exit code 0)"
    if to_answer:
        waiting = f"{with_noun(to_answer, 'line')} with ! {'wait' if to_answer > 1 else 'waits'}"
        verdict = f"{waiting} for a person's answer (exit code 4)"
    click.echo(verdict)
    context.exit(code)


@click.command()
@click.argument("folder")
@click.argument("phrase")
def why(folder: str, phrase: str) -> None:
    """Say why a phrase is not in a saved release. It costs nothing, and reads no data.

    FOLDER is what --out wrote. PHRASE is read as the corpus was: dphh why phrases/ "see you later"
    """
    click.echo(repr(Release.load(folder).why(phrase)))
