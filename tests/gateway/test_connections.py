"""What strangers and rude clients do on the wire holds up nobody else."""

import socket
import subprocess
import time
from contextlib import ExitStack

import pytest

from dphh.gateway.connections import MOST_INCOMPLETE_REQUESTS, SECONDS_TO_SEND_REQUEST
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


def test_200_slow_connections_stop_nobody_and_are_closed(own):
    own.serve(time="connections SECONDS_TO_SEND_REQUEST 2")
    with ExitStack() as opened:
        slow = [
            opened.enter_context(
                own.open(("", "G", "GET /v1/ledger HTTP/1.1\r\nHost: x\r\n")[n % 3])
            )
            for n in range(200)
        ]
        began = time.monotonic()
        for _ in range(5):
            assert own.ask("ledger", "bob").status == 200
        assert time.monotonic() - began < 5
        until(lambda: all(map(is_closed, slow)), 15)


def test_more_who_wait_than_are_allowed_close_the_oldest(place):
    with ExitStack() as opened:
        first = opened.enter_context(place.open("G"))
        for _ in range(MOST_INCOMPLETE_REQUESTS + 5):
            opened.enter_context(place.open("G"))
        until(lambda: is_closed(first), SECONDS_TO_SEND_REQUEST / 2)
        assert place.ask("ledger").status == 200


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


def test_it_speaks_tls_with_a_certificate(own):
    key, certificate = own.folder / "key.pem", own.folder / "certificate.pem"
    openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    files = ["-keyout", str(key), "-out", str(certificate), "-days", "2"]
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*openssl, *files, *names], check=True, capture_output=True)
    own.serve("--certificate", str(certificate), "--key", str(key))
    curl = ["curl", "-fsS", "--cacert", str(certificate), f"https://localhost:{own.port}/healthz"]
    assert subprocess.run(curl, check=True, capture_output=True, timeout=60).stdout == b"ok"
    with pytest.raises(OSError):
        own.ask("ledger")


def test_an_address_and_a_refusal_have_a_longest(place):
    long = place.ask("plan/items", corpus="x" * LONGEST_QUERY)
    assert long.status == 414 and "give the run id of a release" in long.error
    many = place.ask(f"plan/items?{'&'.join(f'{n}=1' for n in range(900))}")
    assert many.status == 400 and len(many.error) < LONGEST_REFUSAL + 1
    assert len(place.ask("plan/items", corpus="y" * 7_000).error) < 400
