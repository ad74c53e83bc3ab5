"""The DuckDB that speaks quack: a child process that holds finished rows and hears nobody else.

It listens on the loopback, under a secret of its own, to messages that the gateway has written. No
analyst's token, statement or message reaches it. If it dies all the same, another one is started;
what was paid for is in the ledger, and what was not yet fetched is asked for again.
"""

from __future__ import annotations

import http.client
import secrets
import socket
import threading
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa

from dphh.errors import UsageError
from dphh.gateway import wire
from dphh.gateway.child import Child, Gone, Message, Pipe, serve
from dphh.gateway.extensions import load
from dphh.gateway.guard import EMPTY

_SECONDS = 60.0  # to answer a message: it only reads a table
_ADDRESSES = 16 * 2**30  # bytes, of which DuckDB's own limit does not count all


class Served:
    """The gateway's side. Once it has gone it stays gone."""

    def __init__(self) -> None:
        self._child = Child(__name__)
        self._token = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        try:
            self._port = int(self._told({"serve": self._token})["port"])
        except Gone:
            self._child.close()
            raise UsageError(
                f"serve: what holds the answers did not start within {_SECONDS:g} seconds"
            ) from None

    def alive(self) -> bool:
        return self._child.alive()

    def close(self) -> None:
        self._child.close()

    def connect(self) -> str:
        return wire.session_of(self.send(wire.Connect(self._token)))

    def keep(self, table: pa.Table) -> str:
        """Keep the rows, under the name that this gives."""
        name = f"answer_{uuid.uuid4().hex}"
        if "failed" in self._told({"keep": name}, table.rename_columns(_columns(table))):
            raise UsageError("The gateway has no room for the answer; ask for less of it")
        return name

    def drop(self, names: Iterable[str]) -> None:
        if listed := list(names):
            self._told({"drop": listed})

    def send(self, message: wire.Message) -> bytes:
        """What quack answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_SECONDS)
        try:
            connection.request("POST", "/quack", wire.written(message))
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            self._child.end()
            raise Gone from None
        finally:
            connection.close()
        if response.status != 200:
            self._child.end()
            raise Gone
        return answer

    def _told(self, message: Message, table: pa.Table | None = None) -> Message:
        with self._lock:
            self._child.pipe.send(message, table)
            if not self._child.pipe.waits(_SECONDS):
                self._child.end()  # whatever holds it up would hold everybody up
                raise Gone
            return self._child.pipe.receive()[0]


def reading(name: str, table: pa.Table) -> str:
    """The SQL that reads what was kept, by the names that the rows came with."""
    selected = ", ".join(
        f"{column} AS {_identifier(shown)}"
        for column, shown in zip(_columns(table), table.column_names, strict=True)
    )
    return f"SELECT {selected} FROM answers.{name}"


def _columns(table: pa.Table) -> list[str]:
    return [f"c{index}" for index in range(table.num_columns)]


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _main() -> None:
    """The child."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    # Files may be opened only until the extensions are loaded and the port is bound.
    config: dict[str, Any] = {**EMPTY, "enable_external_access": True, "memory_limit": "2GB"}
    con = duckdb.connect(":memory:", config=config)
    load(con)
    con.execute("SET max_temp_directory_size = '0B'")
    con.execute("CREATE SCHEMA answers")

    def handle(pipe: Pipe, message: Message, table: pa.Table | None = None) -> None:
        if "serve" in message:
            pipe.send({"port": _listen(con, message["serve"])})
        elif "keep" in message:
            con.register("incoming", table)
            try:
                con.execute(f"CREATE TABLE answers.{message['keep']} AS FROM incoming")
            except duckdb.Error as problem:
                pipe.send({"failed": type(problem).__name__})
            else:
                pipe.send({})
            finally:
                con.unregister("incoming")
        else:
            for name in message["drop"]:
                con.execute(f"DROP TABLE IF EXISTS answers.{name}")
            pipe.send({})

    serve(handle)


def _listen(con: duckdb.DuckDBPyConnection, token: str) -> int:
    for _ in range(10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        with suppress(duckdb.Error):  # somebody was quicker
            con.execute("CALL quack_serve(?, token := ?)", [f"quack:127.0.0.1:{port}", token])
            con.execute("SET enable_external_access = false")
            con.execute("SET lock_configuration = true")
            return port
    raise OSError("no free port")


if __name__ == "__main__":
    _main()
