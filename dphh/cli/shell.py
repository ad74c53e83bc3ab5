"""`dphh shell`: the stock DuckDB shell, which asks a gateway that ends with the shell."""

from __future__ import annotations

import importlib.util
import secrets
import signal
import subprocess
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from dphh.asking.clients import init_sql
from dphh.cli.options import run_options
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.reader.files import extension_file
from dphh.sql import literal

_INSTALL_ADVICE = (
    "pip install 'dphh[shell]', in an environment of its own: it installs DuckDB 1.5.5 instead of "
    "another version, because the shell and httpfs are built for 1.5.5"
)


@click.command()
@run_options
@click.argument("shell_arguments", nargs=-1)
def shell(ledger_file: str | None, shell_arguments: tuple[str, ...], **run_options: Any) -> None:
    """Open the DuckDB shell with dphh's macros in it: FROM dphh_ledger(); and so on.

    Over the corpora that your own ledger names. What follows -- goes to the shell itself:
    dphh shell -- -csv
    """
    program, extension = _shell_program(), _httpfs_file()
    from dphh.gateway.connections import Server
    from dphh.gateway.server import Gateway

    token = secrets.token_urlsafe(32)  # not for a command line, which other people can see
    gateway = Gateway(Ledger(ledger_file), run_options, owner_token=token)
    server = Server(gateway.app(), gateway.close)
    serving = threading.Thread(target=server.run_until_stopped)
    serving.start()
    try:
        address = f"http://127.0.0.1:{server.port}"
        code = _run_shell(program, extension, address, token, shell_arguments)
    finally:
        server.should_exit = True
        serving.join()
    if code:
        raise UsageError(f"The DuckDB shell ended with code {code}") if code < 0 else SystemExit(1)


def _run_shell(
    program: str, extension: Path, address: str, token: str, arguments: tuple[str, ...]
) -> int:
    before = signal.getsignal(signal.SIGINT)
    with tempfile.TemporaryDirectory(prefix="dphh-shell-") as folder:
        init = Path(folder, "init.sql")
        init.touch(mode=0o600)
        text = init_sql(address, token, f"LOAD {literal(str(extension))};")
        init.write_text(f".output /dev/null\n{text}.output\n", encoding="utf-8")
        running = subprocess.Popen([program, "-cmd", f'.read "{init}"', *arguments])
        # This process ignores Ctrl-C: the terminal sends it to the shell and to the run as well.
        signal.signal(signal.SIGINT, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: running.terminate())
        try:
            return running.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _shell_program() -> str:
    """The path of the shell's program in its package. The command `duckdb` would not do: it is a
    script, and Ctrl-C ends it."""
    spec = importlib.util.find_spec("duckdb_cli")
    for folder in (spec and spec.submodule_search_locations) or ():
        if (file := Path(folder, "duckdb")).is_file():
            return str(file)
    raise UsageError(f"The DuckDB shell is not installed; {_INSTALL_ADVICE}")


def _httpfs_file() -> Path:
    """The file of the extension httpfs for the installed shell's version of DuckDB."""
    shell = version("duckdb-cli")
    if (file := extension_file("httpfs", shell)) is None:
        raise UsageError(f"httpfs for DuckDB's shell {shell} is not installed; {_INSTALL_ADVICE}")
    return file
