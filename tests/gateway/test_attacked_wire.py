"""What SQL cannot say: broken messages, sessions of others, many at once, how long it takes."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dphh.gateway import server
from tests.gateway.attacked import Attacked
from tests.gateway.conftest import Client, Place, in_thread, needs_quack

pytestmark = needs_quack

_POST = b"POST /quack HTTP/1.1\r\nHost: localhost\r\n"
_JUNK = [
    b"",
    b"\0" * 64,
    b"\xff" * 4096,
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET /answers HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"TRACE / HTTP/1.1\r\nHost: localhost\r\nX: canary\r\n\r\n",
    b"PUT /quack HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
    b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    _POST + b"Content-Length: 0\r\n\r\n",
    _POST + b"Content-Length: 8\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff",
    _POST + b"Content-Length: 64\r\n\r\n" + bytes(range(64)),
    _POST + b"Content-Length: 2147483648\r\n\r\nabc",
    _POST + b"Content-Length: 18446744073709551615\r\n\r\nabc",
    _POST + b"Content-Length: -1\r\n\r\nabc",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nabc",
    _POST + b"Content-Length: 99\r\n\r\ncut short",
    b"POST /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx",
    b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"POST /quack HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Attacked, str]]:
    attacked = Attacked(tmp_path_factory.mktemp("wire"))
    with attacked.served() as uri:
        yield attacked, uri


def _send(uri: str, message: bytes, seconds: float = 0.5, *, whole: bool = False) -> bytes:
    """A message and what comes back; of a `whole` one its one answer, as the wire stays open."""
    port = int(uri.rpartition(":")[2])
    said = b""
    with socket.create_connection(("localhost", port), timeout=seconds) as wire:
        try:
            wire.sendall(message)
            if not whole:
                wire.shutdown(socket.SHUT_WR)
            while part := wire.recv(65536):
                said += part
                if whole and _requests([bytearray(said)]):  # answers are cut like requests
                    break
        except OSError:
            pass
    return said


def test_broken_messages_get_nothing_and_break_nothing(attacked: tuple[Attacked, str]) -> None:
    place, uri = attacked
    client = place.client(uri)
    for message in _JUNK:
        said = _send(uri, message)
        assert b"canary" not in said.replace(b"X: canary", b""), message[:80]
        assert client.ask("SELECT 41 + 1") == [(42,)], message[:80]
    assert "canary" not in place.printed()


class _Tap:
    """Stands between a client and the gateway, and keeps what was sent."""

    def __init__(self, uri: str) -> None:
        self.port = int(uri.rpartition(":")[2])
        self.sent: list[bytearray] = []  # of each connection
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.uri = f"quack:localhost:{self._listening.getsockname()[1]}"
        self._on = True
        in_thread(self._accept)

    def close(self) -> None:
        self._on = False
        with socket.create_connection(self._listening.getsockname()):
            pass
        self._listening.close()

    def _accept(self) -> None:
        while self._on:
            near, _ = self._listening.accept()
            if self._on:
                far = socket.create_connection(("localhost", self.port))
                self.sent.append(kept := bytearray())
                in_thread(lambda pair=(near, far, kept): self._pass(*pair))  # type: ignore[misc]
                in_thread(lambda pair=(far, near, None): self._pass(*pair))  # type: ignore[misc]

    def _pass(self, source: socket.socket, sink: socket.socket, keep: bytearray | None) -> None:
        try:
            while data := source.recv(1 << 20):
                if keep is not None:
                    keep += data
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            each.close()


def _requests(sent: list[bytearray]) -> list[bytes]:
    """Whole HTTP requests, of what a client sent in pieces."""
    found = []
    for connection in sent:
        rest = bytes(connection)
        while match := re.match(rb".*?\r\n\r\n", rest, re.DOTALL):
            (length,) = re.findall(rb"Content-Length: (\d+)\r\n", match[0])
            end = match.end() + int(length)
            if len(rest) < end:
                break
            found.append(rest[:end])
            rest = rest[end:]
    return found


def test_replayed_and_bent_messages_spend_once_and_tell_nothing(
    attacked: tuple[Attacked, str],
) -> None:
    place, uri = attacked
    tap = _Tap(uri)
    try:
        client = place.client(tap.uri)
        asked = "FROM dphh_items('reviews', epsilon := 0.2, delta := 1e-9)"
        client.ask(asked)
        runs = len(place.ledger.runs())
        requests = _requests(tap.sent)
        (query,) = [each for each in requests if b"dphh_items" in each][:1]
        for _ in range(3):
            assert b"HTTP/1.1 200" in _send(uri, query, 60.0, whole=True)
        assert len(place.ledger.runs()) == runs
        # Another session's number: none, guessed, nobody's.
        (session,) = _sessions([query])
        for other in (b"0" * 32, session[:-1] + b"0", session[::-1], session.lower()):
            if other != session:
                said = _send(uri, query.replace(session, other), 2.0, whole=True)
                assert b"sat" not in said  # a word that the release has
        # Every byte of it, bent: the length of what follows stays.
        head, _, body = query.partition(b"\r\n\r\n")
        for at in range(0, len(body), max(1, len(body) // 8)):
            for bent in (0x00, 0xFF):
                said = _send(
                    uri,
                    head + b"\r\n\r\n" + body[:at] + bytes([bent]) + body[at + 1 :],
                    1.0,
                    whole=True,
                )
                assert b"canary" not in said
        assert len(place.ledger.runs()) <= runs + 1
        assert place.client(uri).ask("SELECT 41 + 1") == [(42,)]
    finally:
        tap.close()
    assert place.in_budget()


def _sessions(requests: list[bytes]) -> set[bytes]:
    return {each for request in requests for each in re.findall(rb"[0-9A-F]{32}", request)}


def test_races_for_the_last_of_a_share_do_not_pass_it(place: Place) -> None:
    gateway = place.gateway(jobs=4, jobs_each=4)
    asked = [
        (name, f"FROM dphh_items('reviews', epsilon := {epsilon}, delta := 1e-9)")
        for name in ("alice", "bob")
        for epsilon in (1.11, 1.12, 1.13)
    ]
    asked.append(asked[0])
    threads = [
        in_thread(lambda name=name, query=query: place.client(name).ask(query))  # type: ignore[misc]
        for name, query in asked
    ]
    for thread, _ in threads:
        thread.join(250)
        assert not thread.is_alive()
    for share in place.ledger.shares():
        assert share.spent.epsilon <= share.cap.epsilon
    settled = [run for run in place.ledger.runs() if run.state == "settled"]
    assert settled and len({run.run_id for run in settled}) == len(settled)
    assert Client(gateway.uri, place.tokens["alice"]).ask("SELECT 1") == [(1,)]


def test_half_open_connections_by_the_hundred_keep_nobody_out_for_long(
    attacked: tuple[Attacked, str],
) -> None:
    place, uri = attacked
    client = place.client(uri)
    port = int(uri.rpartition(":")[2])
    open_ones = [socket.create_connection(("localhost", port)) for _ in range(100)]
    for each in open_ones:
        each.close()
    assert client.ask("SELECT 41 + 1") == [(42,)]


def test_time_does_not_tell_which_corpora_there_are(attacked: tuple[Attacked, str]) -> None:
    place, uri = attacked
    client = place.client(uri)
    names = ("canary_letters", "nothing_letters")
    took: dict[str, list[float]] = {name: [] for name in names}
    said = set()
    for _ in range(25):
        for name in names:
            start = time.perf_counter()
            said.add(
                client.refused(f"FROM dphh_items('{name}', epsilon := 0.1, delta := 1e-9)").replace(
                    name, "?"
                )
            )
            took[name].append(time.perf_counter() - start)
    assert len(said) == 1
    # Of each the quickest: whatever else the machine does makes some slower, and none faster.
    fast, slow = sorted(min(times) for times in took.values())
    assert slow < 2 * fast


def test_one_analysts_answers_leave_room_for_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_STORED_BYTES_EACH", 8_000_000)
    gateway = place.gateway()
    clients = [place.client("alice") for _ in range(4)]
    for client in clients:
        for _ in range(3):
            assert len(client.ask("SELECT n, n + 1 FROM range(200000) t(n)")) == 200_000
    assert 0 < sum(answer.size for answer in gateway._answers) <= 8_000_000


def test_a_new_token_ends_what_the_old_one_opened(place: Place) -> None:
    place.gateway()
    stolen = place.client("alice")
    assert stolen.ask("SELECT 1") == [(1,)]
    place.tokens["alice"] = place.analysts.add("alice")
    assert "token" in stolen.refused("FROM dphh_ledger()")
    assert place.client("alice").ask("SELECT 1") == [(1,)]


def test_column_names_are_names(attacked: tuple[Attacked, str], tmp_path: Path) -> None:
    """They come back in SQL that the served instance runs."""
    place, uri = attacked
    client = place.client(uri)
    for name in ('a"b', "a' --", "; DROP SCHEMA answers CASCADE; --", 'x" FROM answers.t --'):
        quoted = name.replace('"', '""')
        assert client.ask(f'SELECT 7 AS "{quoted}"') == [(7,)]
    with pytest.raises(duckdb.Error):
        client.ask("SELECT error('a''); DROP SCHEMA answers CASCADE; --')")
    assert client.ask("SELECT 41 + 1") == [(42,)]
