"""The gateway's listener: accepts one small complete message per connection.

It speaks as much HTTP as a client needs: a POST of a message, within a deadline, and its answer. A
slow sender is cut off at the deadline. If too many connections wait, those that have waited longest
without a complete message are closed first, so idle connections cannot keep others out.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import h11

from dphh.errors import PortTakenError
from dphh.gateway.wire import MOST_BYTES

T = TypeVar("T")

log = logging.getLogger("dphh.gateway")

#: Takes the body of a request and returns the body of the response.
Answer = Callable[[bytes], bytes]


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on what unauthenticated clients may use of the machine."""

    seconds: float = 10.0  # for a request, from its connection to its last byte
    header_bytes: int = 16 << 10
    body_bytes: int = MOST_BYTES
    waiting: int = 256  # connections whose request is not complete
    waiting_each: int = 128  # of one address, except the loopback, where a proxy may be
    answering: int = 32  # requests that are answered at the same time
    queued: int = 96  # requests that wait for a worker
    sending: int = 96  # answers that clients have not taken yet; beyond this number, or beyond
    sending_bytes: int = 256 << 20  # this size, the oldest answers are dropped
    stalled_seconds: float = 30.0  # how long a client may take nothing of its answer


class Front:
    """Listens until it is closed; a pool of threads makes the answers."""

    def __init__(
        self, host: str, port: int, answer: Answer, allowed: ConnectionLimits | None = None
    ) -> None:
        self._answer, self._allowed = answer, allowed or ConnectionLimits()
        self._waiting: dict[asyncio.Task[None], str] = {}  # oldest first; values are addresses
        self._sending: dict[asyncio.Task[None], int] = {}  # oldest first; values are sizes in bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._workers = ThreadPoolExecutor(self._allowed.answering, "dphh-front")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._server = self._run_on_loop(
                asyncio.start_server(self._accept, host, port, limit=self._allowed.header_bytes)
            )
        except (OSError, OverflowError) as problem:
            self._end_loop()
            raise PortTakenError(f"serve: could not listen at {host}:{port} ({problem})") from None

    def close(self) -> None:
        self._run_on_loop(self._stop_listening())
        self._end_loop()

    def _run_on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _stop_listening(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve_connection(task, reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the client was slow, was closed in favour of others, or has gone
        finally:
            self._tasks.discard(task)
            self._waiting.pop(task, None)
            self._sending.pop(task, None)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _serve_connection(
        self,
        task: asyncio.Task[None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._make_room(str((writer.get_extra_info("peername") or ("?",))[0]))
        self._waiting[task] = str((writer.get_extra_info("peername") or ("?",))[0])
        wire = h11.Connection(h11.SERVER, max_incomplete_event_size=self._allowed.header_bytes)
        try:
            async with asyncio.timeout(self._allowed.seconds):
                body = await self._request_body(wire, reader)
            status = 200
        except h11.RemoteProtocolError as problem:
            status, body = problem.error_status_hint, b""
        self._waiting.pop(task, None)
        answering = len(self._tasks) - len(self._waiting) - len(self._sending)
        if answering > self._allowed.answering + self._allowed.queued:
            status, body = 503, b""
        if status == 200:
            try:
                body = await self._loop.run_in_executor(self._workers, self._answer, body)
            except Exception:
                log.exception("a defect of the gateway")
                status, body = 500, b""
        self._sending[task] = len(body)
        self._drop_oldest_answers(task)
        await self._respond(wire, writer, status, body)

    def _make_room(self, address: str) -> None:
        """Close the oldest connection without a request; first one of an address with many."""
        of_address = [each for each, peer in self._waiting.items() if peer == address]
        if address not in ("127.0.0.1", "::1") and len(of_address) >= self._allowed.waiting_each:
            oldest = of_address[0]
        elif len(self._waiting) >= self._allowed.waiting:
            oldest = next(iter(self._waiting))
        else:
            return
        del self._waiting[oldest]
        oldest.cancel()

    def _drop_oldest_answers(self, latest: asyncio.Task[None]) -> None:
        """Drop the oldest unfinished answers while there are too many or they are too large."""
        while latest is not (oldest := next(iter(self._sending))) and (
            len(self._sending) > self._allowed.sending
            or sum(self._sending.values()) > self._allowed.sending_bytes
        ):
            del self._sending[oldest]
            oldest.cancel()

    async def _request_body(self, wire: h11.Connection, reader: asyncio.StreamReader) -> bytes:
        """The body of one whole request. Anything but a POST is refused before its body is read."""
        body = bytearray()
        while True:
            event = wire.next_event()
            match event:
                case h11.NEED_DATA:
                    wire.receive_data(await reader.read(64 << 10))
                case h11.Request():
                    self._refuse_request(event)
                case h11.Data():
                    body += event.data
                    if len(body) > self._allowed.body_bytes:
                        raise h11.RemoteProtocolError("too long", error_status_hint=413)
                case h11.EndOfMessage():
                    return bytes(body)
                case _:
                    raise h11.RemoteProtocolError("no request")

    def _refuse_request(self, request: h11.Request) -> None:
        if request.target != b"/quack":
            raise h11.RemoteProtocolError("nothing is here", error_status_hint=404)
        if request.method != b"POST":
            raise h11.RemoteProtocolError("a message is posted", error_status_hint=405)
        for name, value in request.headers:
            if name == b"content-length" and int(value) > self._allowed.body_bytes:
                raise h11.RemoteProtocolError("too long", error_status_hint=413)

    async def _respond(
        self, wire: h11.Connection, writer: asyncio.StreamWriter, status: int, body: bytes
    ) -> None:
        headers = [
            ("Content-Type", "application/vnd.duckdb"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        if wire.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = wire.send(h11.Response(status_code=status, headers=headers))
            writer.write(head or b"")
        view = memoryview(body)
        try:
            for start in range(0, len(view), 256 << 10):
                writer.write(view[start : start + (256 << 10)])
                async with asyncio.timeout(self._allowed.stalled_seconds):
                    await writer.drain()
        except (TimeoutError, asyncio.CancelledError):
            writer.transport.abort()  # also drops what is buffered
            raise
        writer.close()
        async with asyncio.timeout(self._allowed.stalled_seconds):
            await writer.wait_closed()
