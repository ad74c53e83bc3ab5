"""`dphh serve`: the gateway, which answers analysts by HTTP; and who the analysts are."""

from __future__ import annotations

import json
import logging
import os
from typing import Any, TextIO

import click

from dphh.cli.options import confirm_higher_cap, json_option, ledger_option, run_options
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.wording.lines import with_noun

_DEFAULT_PORT = 9494


@click.group(invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=_DEFAULT_PORT, show_default=True, help="The port to listen at.")
@click.option(
    "--plain-http",
    is_flag=True,
    help="Listen beyond the loopback, for a proxy on another machine that has TLS.",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="This many analysts may have a run at one time; each run has the memory limit.",
)
@run_options
@click.pass_context
def serve(
    context: click.Context,
    /,
    host: str,
    port: int,
    plain_http: bool,
    runs: int,
    ledger_file: str | None,
    **run_options: Any,
) -> None:
    """Let analysts ask about the ledger's corpora: from DuckDB, Polars, curl or a browser.

    They get releases and what is left of their share, and no row.
    """
    context.obj = ledger_file
    if context.invoked_subcommand is not None:
        return
    from dphh.gateway.connections import FewRecords, Server
    from dphh.gateway.server import Gateway

    loopback = host in ("localhost", "127.0.0.1", "::1")
    if not loopback and not plain_http:
        raise click.UsageError(
            f"--host: {host!r} is not the loopback, and tokens would cross the network in the "
            "open. Put a proxy with TLS before the loopback (docs/gateway.md), or give "
            "--plain-http if the proxy is on another machine"
        )
    logs = logging.StreamHandler()
    logs.addFilter(FewRecords())
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", handlers=[logs]
    )
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    book = Ledger(ledger_file)
    gateway = Gateway(book, run_options, runs=runs)
    server = Server(gateway.app(), gateway.close, host=host, port=port)
    click.echo(
        f"serving http://{host}:{server.port} to {with_noun(len(book.analysts()), 'analyst')}",
        err=True,
    )
    server.run_until_stopped()
    click.echo("stopped; a run that was cut short goes on when it is asked for again", err=True)


@serve.command("add-analyst")
@click.argument("name")
@click.option("--corpus", required=True, help="The corpus's name in the ledger.")
@click.option("--epsilon", type=float, required=True, help="The analyst's share of the cap.")
@click.option("--delta", type=float, required=True, help="The analyst's share of the cap.")
@click.option(
    "--address",
    metavar="URL",
    default=f"http://127.0.0.1:{_DEFAULT_PORT}",
    show_default=True,
    help="Where the analyst finds the gateway.",
)
@click.option(
    "--out",
    metavar="FILE",
    help="Write the init file to FILE, which only you may read, and not to standard output.",
)
@click.option("--new-token", is_flag=True, help="Replace the token of an analyst who has one.")
@click.option("--yes", is_flag=True, help="Raise a share without asking.")
@ledger_option
@click.pass_context
def add_analyst(
    context: click.Context,
    name: str,
    corpus: str,
    epsilon: float,
    delta: float,
    address: str,
    out: str | None,
    new_token: bool,
    yes: bool,
    ledger_file: str | None,
) -> None:
    """Give an analyst a share of a corpus, and a token if they have none. Raising a share asks
    first.

    On standard output or in --out: the token, once (the ledger keeps its hash alone), in an init
    file for DuckDB's shell. On standard error: lines for Polars and curl.
    """
    from dphh.asking.clients import init_sql, lines_for_other_clients

    book = Ledger(ledger_file or context.obj)
    for before in book.shares(name, corpus) if not yes else ():
        confirm_higher_cap(
            f"{corpus}: raise the share of {name} from",
            *(before.cap, epsilon, delta),
            "What is spent of a higher share cannot be taken back",
        )
    book.set_share(corpus, name, epsilon, delta)
    click.echo(f"{name} may spend epsilon {epsilon:g}, delta {delta:g} of {corpus}", err=True)
    (after,) = book.shares(name, corpus)
    if after.used > 1:
        click.echo(
            f"{name} has spent more than that already, so every further run is refused", err=True
        )
    if new_token or name not in book.analysts():
        init_file = None if out is None else _new_private_file(out)
        token, address = book.give_token(name), address.rstrip("/")
        click.echo(init_sql(address, token), init_file, nl=False)
        where = "save what is on standard output as dphh.sql, then duckdb -init dphh.sql"
        click.echo(
            f"the token of {name}, shown once: {token}\n\nin DuckDB's shell: "
            f"{where if out is None else f'duckdb -init {out}'}\n\n"
            f"{lines_for_other_clients(address, token)}",
            err=True,
        )


def _new_private_file(path: str) -> TextIO:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        raise UsageError(
            f"--out: cannot make {path} ({problem.strerror}); give a file that is not there yet"
        ) from None
    return os.fdopen(descriptor, "w", encoding="utf-8")


@serve.command("remove-analyst")
@click.argument("name")
@ledger_option
@click.pass_context
def remove_analyst(context: click.Context, name: str, ledger_file: str | None) -> None:
    """Withdraw an analyst's token, at once. What they spent stays in the ledger."""
    if not Ledger(ledger_file or context.obj).withdraw_token(name):
        raise UsageError(f"{name}: has no token; `dphh serve show` lists who has one")
    click.echo(f"{name}'s token is no longer accepted; what was spent stays spent", err=True)


@serve.command()
@json_option
@ledger_option
@click.pass_context
def show(context: click.Context, as_json: bool, ledger_file: str | None) -> None:
    """Show which analysts may ask, and how much of each one's share is spent."""
    book = Ledger(ledger_file or context.obj)
    with_token, shares = set(book.analysts()), book.shares()
    if as_json:
        listed = [{**share.to_json(), "token": share.analyst in with_token} for share in shares]
        click.echo(json.dumps({"shares": listed}))
        return
    for share in shares:
        click.echo(
            f"{share.analyst}  {share.name}: a share of ({share.cap.epsilon:g}, "
            f"{share.cap.delta:g}); {share.used:.0%} is used"
            + ("" if share.analyst in with_token else "  (no token in force)")
        )
    for analyst in sorted(with_token - {share.analyst for share in shares}):
        click.echo(f"{analyst}  has a token and no share of any corpus")
