"""The HTTP server, and the limits of a client's connection: one request, and little time for it.

A client that sends slowly, or nothing, holds one connection for some seconds. Where many wait so,
the one that has waited longest is closed, so that a stranger cannot keep others out.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dphh.errors import UsageError
from dphh.gateway.server import Gateway

#: A connection is closed if its request is not complete after this many seconds.
SECONDS_TO_SEND_REQUEST = 10.0
#: The most connections whose request is not complete. Beyond that, the oldest is closed.
MOST_INCOMPLETE_REQUESTS = 256
#: The most bytes of a request's first line and headers.
MOST_HEADER_BYTES = 16 * 1024
#: When the server stops, it waits this many seconds for answers.
_SHUTDOWN_SECONDS = 15

#: For each connection whose request is not complete, the oldest first, the timer that closes it.
_request_timers: dict[Connection, asyncio.TimerHandle] = {}


class Connection(H11Protocol):
    """A connection of uvicorn that is closed if its request is not complete in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        _request_timers[self] = self.loop.call_later(SECONDS_TO_SEND_REQUEST, transport.abort)
        if len(_request_timers) > MOST_INCOMPLETE_REQUESTS:
            next(iter(_request_timers)).transport.abort()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if (timer := _request_timers.pop(self, None)) is not None:
            timer.cancel()


class Server(uvicorn.Server):
    """The HTTP server of a gateway. When it stops, it ends what runs, before the last answers go
    out."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        self._gateway = gateway
        super().__init__(
            uvicorn.Config(
                gateway.app(),
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                h11_max_incomplete_event_size=MOST_HEADER_BYTES,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
                ssl_certfile=certificate,
                ssl_keyfile=key,
                # One request for each connection: what the client sends after it is never read.
                headers=[("connection", "close"), ("cache-control", "no-store")],
            )
        )
        try:
            self.config.load()
        except OSError as problem:
            raise UsageError(
                f"--certificate, --key: cannot be used ({problem}); give files in PEM format"
            ) from None
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=family)
        except OSError as problem:
            raise UsageError(
                f"--port: cannot listen at {host}:{port} ({problem.strerror}); choose another"
            ) from None
        self.port: int = self._socket.getsockname()[1]

    def run_until_stopped(self) -> None:
        """Serve until `should_exit` is set, as in the main thread a signal sets it."""
        asyncio.run(self.serve([self._socket]))

    def handle_exit(self, sig: int, frame: Any) -> None:
        # uvicorn would raise the signal again; here the command ends by itself.
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        interrupted = asyncio.create_task(asyncio.to_thread(self._gateway.close))
        await super().shutdown(sockets)
        await interrupted
