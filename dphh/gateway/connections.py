"""The HTTP server, and the limits of a connection that has not shown a token: a stranger's.

A stranger's connection has a few seconds and bytes for its request and answer together. If many
are open, the oldest is closed, so that strangers cannot keep others out. TLS is left to a proxy.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dphh.errors import UsageError

#: A stranger's connection is closed after this many seconds.
STRANGERS_SECONDS = 10.0
#: The most connections of strangers. Beyond that, the oldest is closed.
MOST_STRANGERS = 256
#: The most bytes of a request's first line and headers. What follows them is never read.
MOST_HEADER_BYTES = 16 * 1024
#: The most connections that are accepted at one time. With those that are open they must be fewer
#: than a process may have files, usually 1,024.
_BACKLOG = 128
#: When the server stops, it waits this many seconds for answers.
_SHUTDOWN_SECONDS = 15
#: The most records of a log in a minute: what a client may cause must not fill a disk.
_MOST_RECORDS_A_MINUTE = 20

_Address = tuple[str, int]
_open: dict[_Address, Connection] = {}
#: The timers of strangers' connections, the oldest first.
_timers: dict[Connection, asyncio.TimerHandle] = {}


class Connection(H11Protocol):
    """A connection of uvicorn with limits. It overrides only methods of any asyncio protocol."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._bytes_left, self._transport = MOST_HEADER_BYTES, transport
        self._address: _Address = transport.get_extra_info("peername")[:2]
        _open[self._address] = self
        self.limit()

    def data_received(self, data: bytes) -> None:
        data = data[: self._bytes_left]
        self._bytes_left -= len(data)
        if data:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end_limit()
        _open.pop(self._address, None)
        super().connection_lost(exc)

    def limit(self) -> None:
        loop = asyncio.get_running_loop()
        _timers[self] = loop.call_later(STRANGERS_SECONDS, self._transport.abort)
        if len(_timers) > MOST_STRANGERS:
            oldest = next(iter(_timers))
            oldest.end_limit()
            oldest._transport.abort()

    def end_limit(self) -> None:
        if (timer := _timers.pop(self, None)) is not None:
            timer.cancel()


@contextmanager
def without_limits(client: _Address | None) -> Iterator[None]:
    """Lift the limits of a connection while a request with a token is answered. `client`: its
    address, as ASGI has it."""
    connection = None if client is None else _open.get((client[0], client[1]))
    if connection is None:  # it is closed, or the application is called without a server
        yield
        return
    connection.end_limit()
    try:
        yield
    finally:
        if _open.get(connection._address) is connection:
            connection.limit()


class FewRecords(logging.Filter):
    """Lets a number of records a minute into a log."""

    _minute, _count = 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(time.monotonic() // 60)
        self._count = self._count + 1 if minute == self._minute else 1
        self._minute = minute
        if self._count == _MOST_RECORDS_A_MINUTE:
            record.msg, record.args = "too much to log: the rest of this minute is left out", ()
            record.exc_info = None
        return self._count <= _MOST_RECORDS_A_MINUTE


class Server(uvicorn.Server):
    """The HTTP server of a gateway. When it stops, it calls `end_runs` and then sends the last
    answers."""

    def __init__(
        self, app: ASGIApp, end_runs: Callable[[], None], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._end_runs = end_runs
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=_BACKLOG,
                h11_max_incomplete_event_size=MOST_HEADER_BYTES - 1,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
                # One request for each connection: what the client sends after it is never read.
                headers=[("connection", "close"), ("cache-control", "no-store")],
            )
        )
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=family)
        except OSError as problem:
            raise UsageError(
                f"--port: cannot listen at {host}:{port} ({problem.strerror}); choose another"
            ) from None
        self.port: int = self._socket.getsockname()[1]

    def run_until_stopped(self) -> None:
        """Serve until `should_exit` is set; in the main thread, a signal sets it."""
        asyncio.run(self.serve([self._socket]))

    def handle_exit(self, sig: int, frame: Any) -> None:
        # uvicorn would raise the signal again; here the command ends by itself.
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        interrupted = asyncio.create_task(asyncio.to_thread(self._end_runs))
        await super().shutdown(sockets)
        await interrupted
