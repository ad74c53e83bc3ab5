"""The HTTP server of a gateway, on the loopback. TLS, and what a stranger's connection may take,
are the part of the proxy before it (examples/gateway/nginx.conf)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from dphh.errors import UsageError

#: When the server stops, it waits this many seconds for answers.
_SHUTDOWN_SECONDS = 15


class Server(uvicorn.Server):
    """The HTTP server of a gateway. When it stops, it calls `end_runs`, before the last answers go
    out."""

    def __init__(
        self,
        app: ASGIApp,
        end_runs: Callable[[], None],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._end_runs = end_runs
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
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
        """Serve until `should_exit` is set, as in the main thread a signal sets it."""
        asyncio.run(self.serve([self._socket]))

    def handle_exit(self, sig: int, frame: Any) -> None:
        # uvicorn would raise the signal again; here the command ends by itself.
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        interrupted = asyncio.create_task(asyncio.to_thread(self._end_runs))
        await super().shutdown(sockets)
        await interrupted
