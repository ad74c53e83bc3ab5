"""What once brought the gateway down, or took its memory, before anybody's token was looked at.

Each is tried on quack itself as well, where that shows that it is still worth being kept away.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dphh.gateway import wire
from dphh.gateway.child import Gone
from dphh.gateway.served import Served
from tests.gateway.conftest import Place, free_port, needs_quack, until
from tests.gateway.test_server import ITEMS

pytestmark = needs_quack

_INTEGER = b"d\0\x0d\xff\xff"
_LIST_OF = b"e\0\x01d\0\x04\xc8\0%s\xff\xff\xff\xff"  # the information of a list, by its child
_LIST = b"d\0\x65" + _LIST_OF
_NESTED = b"d\0\x65e\0\x01d\0\x04\xc8\0" * 30_000 + _INTEGER + b"\xff\xff\xff\xff" * 30_000

#: Types of a column to append, as no client writes them.
TYPES = {
    "a struct with the information of a list": b"d\0\x64" + _LIST_OF % _INTEGER,
    "a union with the information of a list": b"d\0\x6b" + _LIST_OF % _INTEGER,
    "lists, 30,000 deep": _NESTED,
    "an enum without information": b"d\0\x68\xff\xff",
}
KILLS = list(TYPES)[:3]


def append(session: str, column: bytes) -> bytes:
    head = b"\x01\0\x09\x02\0 " + session.encode() + b"\x03\0\x07\xff\xff"
    rows = (
        b"f\0\x01d\0\0h\0\x01i\0\x01d\0\0e\0\x01\xff\xffj\0d\0\0f\0\x04\x07\0\0\0"
        b"\xff\xff\xff\xff\xff\xff"
    )
    chunk = b"\x03\0\x01\x2c\x01d\0\x01e\0\x01" + column + rows
    return head + b"\x01\0\x04main\x02\0\x04kept" + chunk + b"\xff\xff\xff\xff"


def posted(port: int, body: bytes) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=250)
    connection.request("POST", "/quack", body)
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found


@pytest.fixture(scope="module")
def door(served: Place) -> tuple[Place, int]:
    return served, int(served.gateways[0].uri.rpartition(":")[2])


@pytest.fixture
def quack() -> Iterator[Served]:
    alone = Served()
    yield alone
    alone.close()


@pytest.mark.parametrize("kind", TYPES)
def test_rows_to_append_are_dropped_unread(door: tuple[Place, int], kind: str) -> None:
    place, port = door
    before = place.gateways[0]._served
    answer = posted(port, wire.written(wire.Connect(place.tokens["alice"])))[2]
    session = wire.session_of(answer)
    status, headers, said = posted(port, append(session, TYPES[kind]))
    assert status == 200 and b"only runs queries" in said
    assert set(headers) == {"Content-Type", "Content-Length", "Connection"}
    assert b"stack_trace" not in said and b"0x" not in said
    assert place.client("alice").ask("SELECT 41 + 1") == [(42,)]
    assert before is not None and before is place.gateways[0]._served and before.alive()


@pytest.mark.parametrize("kind", KILLS)
def test_quack_itself_dies_of_it(quack: Served, kind: str) -> None:
    session = quack.connect()
    with pytest.raises((OSError, http.client.HTTPException)):
        posted(quack._port, append(session, TYPES[kind]))
    until(lambda: not quack.alive())


def test_quack_itself_tells_addresses_of_its_process(quack: Served) -> None:
    said = posted(quack._port, append(quack.connect(), TYPES["an enum without information"]))
    assert said[0] == 500 and b"stack_trace_pointers" in said[2] + str(said[1]).encode()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_not_taken_in(door: tuple[Place, int], chunked: bool) -> None:
    """600 MiB, without a token; once they were in memory before the token was read."""
    place, port = door
    size, sent = 600 << 20, 0
    head = b"POST /quack HTTP/1.1\r\nHost: x\r\n"
    head += b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: %d\r\n" % size
    piece = b"x" * (1 << 20)
    with socket.create_connection(("127.0.0.1", port), timeout=250) as stranger:
        stranger.sendall(head + b"\r\n")
        with pytest.raises(OSError):
            while sent < size:
                stranger.sendall(b"100000\r\n" + piece + b"\r\n" if chunked else piece)
                sent += len(piece)
            raise AssertionError("all of it was taken")
    assert sent < 32 << 20  # what lies in the sockets of both ends
    assert place.client("alice").ask("SELECT 41 + 1") == [(42,)]


def test_half_open_connections_keep_nobody_out(door: tuple[Place, int]) -> None:
    """Once 140 did, without a token; in test_front.py they stay longer than anybody waits."""
    place, port = door
    client = place.client("alice")
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
    for each in held[::3]:
        each.sendall(b"POST /quack HTTP/1.1\r\nContent-Length: 99\r\n")
    assert client.ask("SELECT 41 + 1") == [(42,)]
    assert place.client("bob").ask("SELECT 41 + 1") == [(42,)]
    for each in held:
        each.close()


def test_what_serves_answers_may_die_and_nothing_is_charged_twice(place: Place) -> None:
    gateway = place.gateway()
    alice = place.client("alice")
    first = alice.ask(f"FROM {ITEMS} ORDER BY ALL")
    for _ in range(2):
        assert gateway._served is not None
        os.kill(gateway._served._child._process.pid, signal.SIGKILL)
        assert alice.ask(f"FROM {ITEMS} ORDER BY ALL") == first  # on the same connection
    assert len(place.ledger.runs()) == 1


def test_what_serves_answers_may_hang_and_is_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = place.gateway()
    alice = place.client("alice")
    monkeypatch.setattr("dphh.gateway.served._SECONDS", 2.0)
    hung = gateway._served
    assert hung is not None
    os.kill(hung._child._process.pid, signal.SIGSTOP)
    with pytest.raises(Gone):
        hung.drop(["answer_of_nobody"])
    assert not hung.alive()
    monkeypatch.undo()
    assert alice.ask("SELECT 41 + 1") == [(42,)]


def test_a_killed_gateway_leaves_no_folder_behind(place: Place, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    command = [sys.executable, "-m", "dphh", "serve", "--port", str(free_port())]
    environment = {**os.environ, "DPHH_LEDGER": str(place.ledger.path), "TMPDIR": str(spill)}
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None and "serving quack:" in server.stderr.readline()
    assert len(list(spill.iterdir())) >= 2
    server.kill()
    server.wait()
    until(lambda: not list(spill.iterdir()))


def test_an_analyst_may_come_back_as_often_as_they_like(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that never say goodbye leave sessions behind; the oldest make room."""
    gateway = place.gateway()
    port = int(gateway.uri.rpartition(":")[2])
    first = place.client("alice")
    assert first.ask("SELECT 1") == [(1,)]
    for _ in range(140):
        posted(port, wire.written(wire.Connect(place.tokens["alice"])))
    assert len(gateway._sessions) == 128
    assert "connect again" in first.refused("SELECT 1")
    assert place.client("alice").ask("SELECT 1") == [(1,)]
    assert place.client("bob").ask("SELECT 1") == [(1,)]
