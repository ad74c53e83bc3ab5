"""The door alone: what strangers may take of it, and whom they can keep out."""

from __future__ import annotations

import random
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

pytest.importorskip("h11")

from dphh.errors import PortTakenError
from dphh.gateway.front import Answer, ConnectionLimits, Front
from tests.gateway.conftest import free_port, until

LIMITS = ConnectionLimits(seconds=0.6, body_bytes=1 << 16, waiting=20, stalled_seconds=1.0)
#: For those who are not slow on purpose, on a machine that may be.
PATIENT = replace(LIMITS, seconds=600.0, stalled_seconds=600.0)


@contextmanager
def opened(allowed: ConnectionLimits, answer: Answer) -> Iterator[tuple[Front, int]]:
    port = free_port()
    door = Front("127.0.0.1", port, answer, allowed)
    try:
        yield door, port
    finally:
        door.close()


@contextmanager
def front(
    allowed: ConnectionLimits = LIMITS, answer: Answer = lambda body: body[::-1]
) -> Iterator[int]:
    with opened(allowed, answer) as (_, port):
        yield port


def posted(body: bytes, *, length: int | None = None, more: bytes = b"") -> bytes:
    size = len(body) if length is None else length
    return b"POST /quack HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s" % (more, size, body)


def said(port: int, sent: bytes, *, ended: bool = False) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=250) as wire:
        try:
            found = b""
            wire.sendall(sent)
            if ended:
                wire.shutdown(socket.SHUT_WR)
            while part := wire.recv(65536):
                found += part
        except ConnectionError:
            pass
    return found


def test_a_message_is_answered_and_nothing_else_is() -> None:
    with front(PATIENT) as port:
        answer = said(port, posted(b"abc"))
        assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\ncba")
        chunked = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        assert said(port, b"POST /quack HTTP/1.1\r\nHost: x\r\n" + chunked).endswith(b"cba")
        for sent, status in {
            b"GET /quack HTTP/1.1\r\nHost: x\r\n\r\n": b"405",
            b"POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n": b"404",
            b"\0\0\0\r\n\r\n": b"400",
            posted(b"", length=1 << 40): b"413",
            b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n": b"400",
            b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
            b"Content-Length: 2\r\n\r\nab": b"400",
            b"POST /quack HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n": b"431",
        }.items():
            answer = said(port, sent)
            assert answer.startswith(b"HTTP/1.1 " + status) or not answer, sent[:60]
            assert answer.endswith(b"\r\n\r\n") or not answer


def test_who_is_slow_is_not_waited_for() -> None:
    with front() as port:
        for begun in (b"", b"POST /qu", posted(b"ab", length=3)):
            with socket.create_connection(("127.0.0.1", port), timeout=250) as wire:
                wire.sendall(begun)
                assert wire.recv(1) == b""


def test_a_byte_at_a_time_is_slow_as_well() -> None:
    with (
        front() as port,
        socket.create_connection(("127.0.0.1", port), timeout=250) as wire,
        suppress(ConnectionError),  # where the other end has closed already
    ):
        for each in posted(b"abc"):
            wire.sendall(bytes([each]))
            time.sleep(0.02)
        assert wire.recv(1) == b""


def test_connections_without_a_message_keep_nobody_out() -> None:
    with front(PATIENT) as port:
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(140)]
        for each in held[::2]:
            each.sendall(b"POST /quack HTTP/1.1\r\n")
        for _ in range(5):
            assert said(port, posted(b"abc")).endswith(b"cba")
        for each in held:
            each.close()


def test_a_body_that_is_too_long_is_not_taken_in() -> None:
    taken = []
    with front(LIMITS, answer=lambda body: taken.append(len(body)) or b"") as port:
        said(port, posted(b"x" * 70_000))
        piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        head = b"POST /quack HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        said(port, head + piece * 40)
        assert taken == []


def test_an_answer_that_nobody_takes_is_not_held_for_ever() -> None:
    long = 64 << 20
    with opened(replace(PATIENT, stalled_seconds=0.5), lambda _: b"x" * long) as (door, port):
        before = threading.active_count()
        with socket.create_connection(("127.0.0.1", port), timeout=250) as wire:
            wire.sendall(posted(b"abc"))
            assert wire.recv(10)
            until(lambda: not door._tasks)
            found = 0
            with suppress(ConnectionError):
                while part := wire.recv(1 << 20):
                    found += len(part)
            assert found < long - 10
        assert threading.active_count() <= before + 2


def test_requests_that_wait_for_their_answer_are_so_many_and_no_more() -> None:
    go = threading.Event()

    def slow(body: bytes) -> bytes:
        go.wait(250)
        return body

    with opened(replace(PATIENT, answering=2, queued=3), slow) as (door, port):
        held = [socket.create_connection(("127.0.0.1", port), timeout=250) for _ in range(5)]
        for each in held:
            each.sendall(posted(b"abc"))
        until(lambda: len(door._tasks) == 5 and not door._waiting)
        assert b" 503 " in said(port, posted(b"abc"))
        go.set()
        assert all(b" 200 " in each.recv(100) for each in held)
        for each in held:
            each.close()


@pytest.mark.parametrize("bound", [{"sending": 3}, {"sending_bytes": 3 * (8 << 20)}])
def test_who_takes_answers_slowly_keeps_nobody_out(bound: dict[str, int]) -> None:
    """Those that were sent for longest end; who takes theirs at once gets them whole."""
    long = 8 << 20  # more than lies in the sockets of both ends
    allowed = replace(PATIENT, answering=2, queued=0, **bound)
    with opened(allowed, lambda _: b"x" * long) as (door, port):
        slow = []
        for _ in range(8):
            slow.append(socket.create_connection(("127.0.0.1", port), timeout=250))
            slow[-1].sendall(posted(b"abc"))
            assert slow[-1].recv(100).startswith(b"HTTP/1.1 200")
        until(lambda: len(door._tasks) <= 3)
        assert len(said(port, posted(b"abc"))) > long
        for each in slow:
            each.close()


def test_a_defect_of_the_answer_says_nothing() -> None:
    def defect(_: bytes) -> bytes:
        raise ValueError("a secret")

    with front(LIMITS, answer=defect) as port:
        answer = said(port, posted(b"abc"))
        assert answer.startswith(b"HTTP/1.1 500") and b"secret" not in answer


def test_bent_requests_are_answered_or_ended_and_break_nothing() -> None:
    """A fixed number, of a new seed each time."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    whole = posted(b"abc", more=b"Accept: */*\r\nUser-Agent: duckdb\r\n")
    with front() as port:
        for _ in range(1_500):
            sent = bytearray(whole)
            for _ in range(chance.randint(1, 5)):
                at = chance.randrange(len(sent))
                sent[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 4))
            answer = said(port, bytes(sent), ended=True)
            assert not answer or (answer[:9] == b"HTTP/1.1 " and answer[9:12].isdigit()), seed
            assert b"Traceback" not in answer and b".py" not in answer
        assert said(port, whole).endswith(b"cba")


def test_a_taken_port_is_said() -> None:
    with (
        front() as port,
        pytest.raises(PortTakenError, match=f"could not listen at 127.0.0.1:{port}"),
    ):
        Front("127.0.0.1", port, bytes, LIMITS)
