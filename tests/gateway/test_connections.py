"""What strangers and rude clients do on the wire holds up nobody else."""

import logging
import signal
import socket
from contextlib import ExitStack

import pytest

from dphh.gateway.connections import MOST_STRANGERS, STRANGERS_SECONDS, FewRecords
from dphh.gateway.server import LONGEST_QUERY, LONGEST_REFUSAL
from tests.gateway.conftest import until

HEAD = "Host: x\r\nAuthorization: Bearer TOKEN\r\nAccept: application/json\r\n"
LINE = "GET /v1/ledger HTTP/1.1\r\n"
ASKED = f"{LINE}{HEAD}\r\n"


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0.05)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_1100_silent_connections_at_1024_files_stop_nobody_and_write_no_log(own):
    server = own.serve(files=1024)
    with ExitStack() as opened:
        for n in range(1100):
            text = ("", "G", LINE, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")[n % 4]
            opened.enter_context(own.open(text))
        for _ in range(5):
            assert own.ask("ledger", "bob").status == 200
    assert server.end().count("\n") == 1  # that it has stopped


def test_a_stranger_has_seconds_and_one_with_a_token_has_more(own):
    server = own.serve(time="connections STRANGERS_SECONDS 1")
    own.hold_up()
    asking = own.later("items", corpus="reviews", epsilon=0.3, delta=1e-8)
    until(lambda: len(server.workers()) == 3)  # a planner, a runner, and Python's own tracker
    with ExitStack() as opened:
        slow = [opened.enter_context(own.open(text)) for text in ("", "G", LINE)]
        until(lambda: all(map(is_closed, slow)), 15)
    assert not asking.done()
    server.end(signal.SIGKILL)


def test_more_strangers_than_are_allowed_close_the_oldest(place):
    with ExitStack() as opened:
        first = opened.enter_context(place.open("G"))
        for _ in range(MOST_STRANGERS + 5):
            opened.enter_context(place.open("G"))
        until(lambda: is_closed(first), STRANGERS_SECONDS / 2)
        assert place.ask("ledger").status == 200


@pytest.mark.parametrize(("size", "status"), [(15_000, b"200"), (17_000, b"400"), (60_000, b"400")])
def test_headers_have_a_longest(place, size, status):
    head = f"GET /healthz HTTP/1.1\r\nHost: x\r\nX: {'a' * size}\r\n\r\n"
    assert place.raw(head)[9:12] == status


def test_a_log_that_a_client_fills_has_a_limit():
    few = FewRecords()
    records = [logging.makeLogRecord({"msg": f"{n}"}) for n in range(10_000)]
    kept = [record.getMessage() for record in records if few.filter(record)]
    assert kept[0] == "0" and "left out" in kept[-1] and len(kept) < 50


@pytest.mark.parametrize("after", [ASKED, "POST /v1/items HTTP/1.1\r\n\r\n", "\x00" * 100_000])
def test_what_follows_a_request_on_its_wire_is_never_read(place, after):
    answer = place.raw(ASKED + after)
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "said",
    [
        f"{LINE}{HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        f"{LINE}{HEAD}Authorization: Bearer other\r\n\r\n",
        f"{LINE}{HEAD}X: {'a' * 2**20}\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        f"{LINE}{HEAD}Upgrade: websocket\r\nConnection: upgrade\r\n"
        "Sec-WebSocket-Key: x\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_broken_and_smuggled_requests_are_refused(place, said):
    answer = place.raw(said)
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert answer == b"" or answer.startswith(b"HTTP/1.1 40")
    assert b"reviews" not in answer


def test_a_tunnel_is_refused_with_its_status_and_is_no_defect(own):
    server = own.serve()
    for method in ("CONNECT", "POST", "TRACE"):
        answer = own.raw(f"{method} /v1/ledger HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 405")
    assert "Traceback" not in server.end()


def test_an_address_and_a_refusal_have_a_longest(place):
    long = place.ask("plan/items", corpus="x" * LONGEST_QUERY)
    assert long.status == 414 and "give the run id of a release" in long.error
    many = place.ask(f"plan/items?{'&'.join(f'{n}=1' for n in range(900))}")
    assert many.status == 400 and len(many.error) < LONGEST_REFUSAL + 1
    assert len(place.ask("plan/items", corpus="y" * 7_000).error) < 400
