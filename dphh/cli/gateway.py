"""`dphh serve` and `dphh shell`: corpora of the ledger, asked about from DuckDB shells."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphh.cli.options import ledger_option
from dphh.cli.raising import confirm, describe_raise
from dphh.engines import ENGINES
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.ledger.sentences import usage_phrase

if TYPE_CHECKING:
    from dphh.gateway.analysts import Analysts
    from dphh.gateway.provider import SignedIn
    from dphh.gateway.server import Gateway

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def terms_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--threads", type=click.IntRange(min=1), help="How many a run may use."),
        click.option("--memory-limit", metavar="SIZE", help="What a run may take, such as 4GB."),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default="duckdb",
            help="Engine that executes runs: duckdb, polars or spark.",
        ),
        ledger_option,
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@click.option("--host", default="localhost", show_default=True, help="Where to listen.")
@click.option("--port", default=9494, show_default=True, help="Where to listen.")
@click.option("--jobs", default=2, show_default=True, help="Runs at once.")
@click.option("--jobs-each", default=1, show_default=True, help="Runs at once of one analyst.")
@click.option(
    "--plain-http",
    is_flag=True,
    help="Listen beyond the loopback without TLS: only inside a network that is a wall itself.",
)
@click.option("--oidc-issuer", metavar="URL", help="Take tokens of this identity provider too.")
@click.option("--oidc-audience", metavar="NAME", help="Whom its tokens are for: this gateway.")
@click.option(
    "--oidc-claim",
    default="preferred_username",
    show_default=True,
    help="What in them is the analyst's name.",
)
@terms_options
@click.pass_context
def serve(
    context: click.Context,
    host: str,
    port: int,
    jobs: int,
    jobs_each: int,
    plain_http: bool,
    oidc_issuer: str | None,
    oidc_audience: str | None,
    oidc_claim: str,
    ledger_file: str | None,
    engine: str,
    memory_limit: str | None,
    threads: int | None,
) -> None:
    """Let analysts ask about the ledger's corpora from their own DuckDB shells.

    They see releases and what is left of their share, and no row. For other machines, put a proxy
    with TLS before it: docs/gateway.md has one.
    """
    context.obj = ledger_file
    if context.invoked_subcommand is not None:
        return
    from dphh.gateway.analysts import Analysts
    from dphh.gateway.server import Gateway
    from dphh.gateway.service import Terms

    if host not in _LOOPBACK and not plain_http:
        raise click.UsageError(
            f"--host: {host!r} is not the loopback, and this server speaks HTTP without TLS. "
            "Listen on the loopback behind a proxy with TLS (docs/gateway.md), or pass --plain-http"
        )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    book = Ledger(ledger_file)
    terms = Terms(jobs, jobs_each, engine, memory_limit, threads)
    known = Analysts.of(book)
    analysts: Analysts | SignedIn = known
    if oidc_issuer is not None:
        analysts = _sign_in_checker(known, oidc_issuer, oidc_audience, oidc_claim)
    gateway = Gateway(book, analysts, host=host, port=port, terms=terms)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, lambda *_: ended.set())
    count = len(Analysts.of(book).names())
    click.echo(f"serving {gateway.uri} to {count} analyst{'' if count == 1 else 's'}", err=True)
    ended.wait()
    click.echo("stopping; what runs is stopped, and stays spent if it had begun", err=True)
    gateway.close()


def _sign_in_checker(known: Analysts, issuer: str, audience: str | None, claim: str) -> SignedIn:
    from dphh.gateway.provider import Provider, SignedIn

    if audience is None:
        raise click.UsageError(
            "--oidc-audience: missing, so tokens for other services of the provider would be "
            "accepted too; give the audience that the provider puts into tokens for this gateway"
        )
    return SignedIn(known, Provider(issuer, audience, claim))


@serve.command("add-analyst")
@click.argument("name")
@click.option("--corpus", required=True, help="A name in the ledger.")
@click.option("--epsilon", type=float, required=True, help="The analyst's share of the cap.")
@click.option("--delta", type=float, required=True, help="The analyst's share of the cap.")
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
    new_token: bool,
    yes: bool,
    ledger_file: str | None,
) -> None:
    """Give an analyst a share of a corpus, and a token if they have none. Raising a share asks
    first.

    The token is printed once, alone on standard output; only its hash is kept.
    """
    from dphh.gateway.analysts import Analysts

    book = Ledger(ledger_file or context.obj)
    analysts = Analysts.of(book)
    known = name in analysts.names()
    analysts.check_name(name)
    shares = (each.cap for each in book.shares(name) if each.account == corpus)
    if (higher := describe_raise(next(shares, None), epsilon, delta)) and not yes:
        confirm(
            f"{corpus}: raise the share of {name} from {higher}? What is spent of a higher one is "
            "never taken back"
        )
    book.set_share(corpus, name, epsilon, delta)
    click.echo(f"{name} may spend epsilon {epsilon:g}, delta {delta:g} of {corpus}", err=True)
    if any(each.used > 1 for each in book.shares(name) if each.account == corpus):
        click.echo(f"{name} has spent more than that already, so no run may follow", err=True)
    if new_token or not known:
        click.echo(analysts.add(name))


@serve.command("remove-analyst")
@click.argument("name")
@ledger_option
@click.pass_context
def remove_analyst(context: click.Context, name: str, ledger_file: str | None) -> None:
    """Take an analyst's token out of force, at once. What they spent stays in the ledger."""
    from dphh.gateway.analysts import Analysts

    Analysts.of(Ledger(ledger_file or context.obj)).remove(name)
    click.echo(f"{name}'s token is no longer accepted; what was spent stays spent", err=True)


@serve.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@ledger_option
@click.pass_context
def analysts(context: click.Context, as_json: bool, ledger_file: str | None) -> None:
    """Who may ask, and what each has spent and has left."""
    from dphh.gateway.analysts import Analysts

    book = Ledger(ledger_file or context.obj)
    with_token = set(Analysts.of(book).names())
    shares = book.shares()
    if as_json:
        listed = [{**asdict(share), "token": share.analyst in with_token} for share in shares]
        click.echo(json.dumps({"shares": listed}))
        return
    for share in shares:
        click.echo(
            f"{share.analyst}  {share.account}: a share of ({share.cap.epsilon:g}, "
            f"{share.cap.delta:g}); {usage_phrase(share)}"
            + ("" if share.analyst in with_token else "  (no token in force)")
        )
    for analyst in sorted(with_token - {share.analyst for share in shares}):
        click.echo(f"{analyst}  has a token and no share of any corpus")


@click.command()
@click.option("--connect", "uri", metavar="URI", help="A gateway elsewhere: quack:HOST[:PORT].")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="With --connect: the file with your token, if not $DPHH_TOKEN.",
)
@click.option(
    "--ca-cert",
    type=click.Path(path_type=Path),
    help="With --connect: file of the certificates to trust, instead of those this machine trusts.",
)
@terms_options
@click.argument("shell_arguments", nargs=-1)
def shell(
    uri: str | None,
    token_file: Path | None,
    ca_cert: Path | None,
    ledger_file: str | None,
    engine: str,
    memory_limit: str | None,
    threads: int | None,
    shell_arguments: tuple[str, ...],
) -> None:
    """Open the DuckDB shell with dphh's macros in it: FROM dphh_ledger(); and so on.

    Without --connect, over the corpora that your own ledger names. What follows -- goes to the
    shell itself: dphh shell -- -csv
    """
    from dphh.gateway import shell as stock
    from dphh.gateway.service import Terms

    gateway: Gateway | None = None
    stop: Callable[[], None]
    if uri is None:
        if token_file is not None or ca_cert is not None:
            option = "--ca-cert" if token_file is None else "--token-file"
            raise UsageError(
                f"{option}: applies only to a gateway on another machine; give that gateway's "
                f"address with --connect quack:HOST:PORT, or leave {option} out"
            )
        terms = Terms(engine=engine, memory=memory_limit, threads=threads)
        gateway, address = stock.own_gateway(Ledger(ledger_file), terms)
        stop = partial(gateway.stop, None)
    else:
        token = stock.read_token(token_file, os.environ.get("DPHH_TOKEN"))
        address = stock.Address(uri, token, ca_cert)
        stop = partial(stock.remote_stop, address)
    try:
        typed = sys.stdin.isatty() and sys.stdout.isatty()
        if typed or uri is not None:  # of a gateway elsewhere, it tells whether it answers
            banner = stock.banner(address)
            if typed:
                click.echo(banner, err=True)
        code = stock.open_shell(address, stop, shell_arguments)
    finally:
        if gateway is not None:
            gateway.close()
    if code:
        raise UsageError(f"The DuckDB shell ended with code {code}") if code < 0 else SystemExit(1)
