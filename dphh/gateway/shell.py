"""The stock DuckDB shell, attached to a gateway, with dphh's macros defined.

Each macro in the shell packs its arguments as JSON and calls the gateway's macro of that name. The
shell reads the token from an unnamed file, so it is in no command line.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from dphh.asking.help import help_sql
from dphh.asking.macros import Parameters, macro_sql, macros, packed_sql, parameters_sql
from dphh.errors import DphhError, PortTakenError, UnreachableError, UsageError
from dphh.gateway.analysts import OnlyOwner
from dphh.gateway.extensions import load, load_sql, shell_program
from dphh.gateway.served import free_port
from dphh.gateway.server import Gateway
from dphh.gateway.service import Terms
from dphh.ledger import Ledger
from dphh.ledger.budget import four_digits_down, percent
from dphh.wording.lines import plural


@dataclass(frozen=True)
class Address:
    """The address of a gateway, and what a client needs to connect to it."""

    uri: str
    token: str = field(repr=False)
    #: The certificate authority that vouches for the host, if not one that this machine trusts.
    ca_cert: Path | None = None

    def __post_init__(self) -> None:
        if self.ca_cert is not None and not self.ca_cert.is_file():
            raise UsageError(f"--ca-cert: there is no file {self.ca_cert}; give one in PEM format")

    def setup_sql(self) -> str:
        believed = f"SET ca_cert_file = {_sql_text(str(self.ca_cert))};" if self.ca_cert else ""
        return f"{believed}CREATE SECRET (TYPE quack, TOKEN {_sql_text(self.token)});"

    def ask_sql(self, asked: str) -> str:
        """The query, on its own connection: CREATE TABLE AS and queries with two macros need it."""
        return f"FROM quack_query({_sql_text(self.uri)}, {asked})"


def start_script(address: Address) -> str:
    """The commands that the shell runs before its first prompt, without output."""
    lines = [
        ".output /dev/null",
        load_sql(),
        address.setup_sql(),
        *(
            f"{forwarding_sql(address, name, macro.parameters)};"
            for name, macro in macros().items()
        ),
        f"{macro_sql('dphh_stop', '', address.ask_sql(_STOP_QUERY))};",
        f"{help_sql()};",
        ".output",
    ]
    return "\n".join(lines) + "\n"


def forwarding_sql(address: Address, name: str, parameters: Parameters) -> str:
    asked = (
        f"'FROM dphh_asked_{name}(''' || replace({packed_sql(parameters)}, '''', '''''') || ''')'"
    )
    return macro_sql(f"dphh_{name}", parameters_sql(parameters), address.ask_sql(asked))


def banner(address: Address) -> str:
    """A text that lists the corpora and their remaining budgets."""
    try:
        with _client(address) as con:
            rows = con.execute(
                f"SELECT corpus, left_epsilon, left_delta, cap_epsilon, cap_delta, used, runs "
                f"FROM ({address.ask_sql(_LEDGER_QUERY)})"
            ).fetchall()
    except duckdb.Error as problem:
        raise _not_connected(address, problem) from None
    lines = [
        f"  {corpus}: {percent(used)} of ({cap:g}, {cap_delta:g}) is used, by "
        f"{plural(runs, 'run')}; left epsilon {four_digits_down(left)} "
        f"at delta {four_digits_down(left_delta)}"
        for corpus, left, left_delta, cap, cap_delta, used, runs in rows
    ]
    head = f"dphh at {address.uri}: " + (
        "corpora and budget" if rows else "no corpus is named for you yet"
    )
    asked = "('CORPUS', max_n := 3, epsilon := 0.5, delta := 1e-8);"
    how = [
        "  free: FROM dphh_help() lists what there is; a plan says what a run would take",
        f"    FROM dphh_plan_ngrams{asked}",
        "  spends, once:",
        f"    FROM dphh_ngrams{asked}",
    ]
    return "\n".join([head, *lines, *(how if rows else [])])


def _not_connected(address: Address, problem: duckdb.Error) -> DphhError:
    said = str(problem).partition("\n")[0]  # the lines below quote a macro of dphh
    if "Authentication failed" in said:  # DuckDB's words: it has one type for all of these
        return UsageError(
            f"--connect: {address.uri} does not know this token. Ask the owner of the gateway for "
            "a new one, and give it in $DPHH_TOKEN or with --token-file"
        )
    if isinstance(problem, duckdb.IOException):
        return UnreachableError(
            f"--connect: no gateway answers at {address.uri} ({said}). See that host and port are "
            "right, or try again later"
        )
    return UsageError(f"--connect: {address.uri} cannot be connected to: {said}")


def open_shell(address: Address, stop: Callable[[], None], arguments: tuple[str, ...] = ()) -> int:
    """Run the shell until it ends; Ctrl-C stops what the gateway runs for it."""
    with tempfile.TemporaryFile("w", encoding="utf-8") as script:  # an unnamed file
        script.write(start_script(address))
        script.flush()
        file = script.fileno()
        shell = subprocess.Popen(
            [shell_program(), "-cmd", f".read /dev/fd/{file}", *arguments], pass_fds=[file]
        )
    # The terminal also sends SIGINT to the shell, which keeps waiting for the gateway's answer.
    before = signal.signal(
        signal.SIGINT, lambda *_: threading.Thread(target=stop, daemon=True).start()
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: shell.terminate())
    try:
        return shell.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def own_gateway(ledger: Ledger, terms: Terms) -> tuple[Gateway, Address]:
    """A gateway for this user only, on a free port of the loopback, and its address."""
    owner = OnlyOwner()
    for _ in range(10):
        with suppress(PortTakenError):  # another process took the port
            gateway = Gateway(ledger, owner, port=free_port(), terms=terms)
            return gateway, Address(gateway.uri, owner.token)
    raise UsageError("shell: found no free port to listen on; close a program that uses one")


def remote_stop(address: Address) -> None:
    with suppress(DphhError, duckdb.Error), _client(address) as con:
        con.execute(address.ask_sql(_STOP_QUERY))


def _client(address: Address) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(":memory:")
    load(con)
    con.execute(address.setup_sql())
    return con


def _sql_text(value: str) -> str:
    if "'" in value or not value.isprintable():
        raise UsageError(
            "--connect: a URI, token or path contains a quote or a line break; remove it"
        )
    return f"'{value}'"


_LEDGER_QUERY = "'FROM dphh_ledger()'"
_STOP_QUERY = "'FROM dphh_stop()'"


def read_token(file: Path | None, environment: str | None) -> str:
    """The token, from a file or the environment: other users can see command lines."""
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except OSError as problem:
            raise UsageError(
                f"--token-file: {file} could not be read ({problem.strerror}); give the file with "
                "the token"
            ) from None
    if environment:
        return environment.strip()
    raise UsageError("--connect: give the token in $DPHH_TOKEN or with --token-file")
