"""The DuckDB that speaks quack: a child process that stores finished rows and serves them.

It listens on the loopback, with a secret of its own, and only the gateway sends it messages. No
analyst's token, statement or message reaches it. If it dies, another one is started: releases that
were paid for are in the ledger, and clients ask again for what they had not fetched.
"""

from __future__ import annotations

import http.client
import secrets
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa

from dphh.errors import UsageError
from dphh.gateway import wire
from dphh.gateway.answer_rows import Rows
from dphh.gateway.child import Child, Gone, Message, Pipe, serve
from dphh.gateway.extensions import extension_files, load
from dphh.gateway.guard import EMPTY

_SECONDS = 60.0  # the time limit of one message: the process only reads a table
_PROBE_SECONDS = 10.0  # the time limit of the health check, which opens a session
#: How many vectors of `rows.VECTOR` rows a client fetches at once.
VECTORS_AT_ONCE = 4
_ADDRESSES = 16 * 2**30  # bytes of address space; DuckDB's own limit does not count everything


class Served:
    """The gateway's handle of the process. Once the process has ended, it is not restarted."""

    def __init__(self) -> None:
        extension_files()  # says what to install, which the process itself tells nobody
        self._child = Child(__name__)
        self._token = secrets.token_urlsafe(32)
        # One thread sends the process its batches in order, so that answers with many batches
        # take turns with others.
        self._teller = ThreadPoolExecutor(1, "dphh-served")
        try:
            self._port = int(self._tell_and_check({"serve": self._token})["port"])
        except Gone:
            self.close()
            raise UsageError(
                "serve: the process that serves answers ended before it could, or did not start "
                f"within {_SECONDS:g} seconds"
            ) from None

    def alive(self) -> bool:
        return self._child.alive()

    def close(self) -> None:
        self._child.close()
        self._teller.shutdown(wait=False, cancel_futures=True)

    def connect(self) -> str:
        return wire.session_of(self.send(wire.Connect(self._token)))

    def keep(self, name: str, rows: Rows, wanted: Callable[[], bool]) -> None:
        """Store the rows as a table, batch by batch, as long as `wanted` returns true."""
        try:
            for number in range(rows.batches):
                what = "more" if number else "keep"
                if not wanted():
                    raise _no_room_error()
                told = self._tell_and_check({what: name}, rows.batch(number))
                if told.get("failed") == duckdb.OutOfMemoryException.__name__:
                    raise _no_room_error()
                if "failed" in told and wanted():
                    raise UsageError(
                        "The answer has a column of an unsupported type; cast it to another type"
                    )
            if not wanted():
                raise _no_room_error()
        except (UsageError, Gone):
            if self.alive():
                self.drop([name])
            raise

    def drop(self, names: Iterable[str]) -> None:
        if listed := list(names):
            self._tell_and_check({"drop": listed})

    def send(self, message: wire.Message) -> bytes:
        """Send a message to quack and return its answer. One message's failure ends no other's."""
        if (answer := self._post(message, _SECONDS)) is not None:
            return answer
        if self.alive() and self._post(wire.Connect(self._token), _PROBE_SECONDS) is not None:
            raise UsageError("The answer cannot be served; select fewer rows or columns")
        self._child.end()
        raise Gone

    def _post(self, message: wire.Message, seconds: float) -> bytes | None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=seconds)
        try:
            connection.request("POST", "/quack", wire.written(message))
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return answer if response.status == 200 else None

    def _tell_and_check(self, message: Message, table: bytes | None = None) -> Message:
        try:
            return self._teller.submit(self._tell_process, message, table).result()
        except (CancelledError, RuntimeError):  # the thread pool was closed
            raise Gone from None

    def _tell_process(self, message: Message, table: bytes | None) -> Message:
        try:
            self._child.pipe.send(message, table)
            if not self._child.pipe.waits(_SECONDS):
                raise Gone
            return self._child.pipe.receive()[0]
        except Gone:
            self._child.end()  # this takes milliseconds; a process that hangs blocks everyone
            raise


def _no_room_error() -> UsageError:
    return UsageError("The gateway has no room for the answer; select fewer rows or columns")


def _main() -> None:
    """The main function of the child process."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    # Files may be opened only until the extensions are loaded and the port is bound.
    config: dict[str, Any] = {**EMPTY, "enable_external_access": True, "memory_limit": "2GB"}
    con = duckdb.connect(":memory:", config=config)
    load(con)
    con.execute("SET max_temp_directory_size = '0B'")
    con.execute(f"SET GLOBAL quack_fetch_batch_chunks = {VECTORS_AT_ONCE}")
    con.execute("CREATE SCHEMA answers")

    def handle(pipe: Pipe, message: Message, table: pa.Table | None = None) -> None:
        if "serve" in message:
            pipe.send({"port": _listen(con, message["serve"])})
        elif "keep" in message or "more" in message:
            con.register("incoming", table)
            try:
                if "keep" in message:
                    con.execute(f"CREATE TABLE answers.{message['keep']} AS FROM incoming")
                else:
                    con.execute(f"INSERT INTO answers.{message['more']} FROM incoming")
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listen(con: duckdb.DuckDBPyConnection, token: str) -> int:
    for _ in range(10):
        port = free_port()
        with suppress(duckdb.Error):  # another process took the port
            con.execute("CALL quack_serve(?, token := ?)", [f"quack:127.0.0.1:{port}", token])
            con.execute("SET enable_external_access = false")
            con.execute("SET lock_configuration = true")
            return port
    raise OSError("quack_serve failed at 10 free ports of 127.0.0.1")


if __name__ == "__main__":
    _main()
