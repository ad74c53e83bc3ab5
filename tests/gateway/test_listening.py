"""What rude clients send is refused, and is never read as another request."""

import pytest

from dphh.gateway.server import LONGEST_QUERY, LONGEST_REFUSAL

HEAD = "Host: x\r\nAuthorization: Bearer TOKEN\r\nAccept: application/json\r\n"
LINE = "GET /v1/ledger HTTP/1.1\r\n"
ASKED = f"{LINE}{HEAD}\r\n"


@pytest.mark.parametrize(("size", "status"), [(15_000, b"200"), (2**20, b"400")])
def test_headers_have_a_longest(place, size, status):
    head = f"GET /healthz HTTP/1.1\r\nHost: x\r\nX: {'a' * size}\r\n\r\n"
    assert place.raw(head)[9:12] == status


@pytest.mark.parametrize("after", [ASKED, "POST /v1/items HTTP/1.1\r\n\r\n", "\x00" * 100_000])
def test_what_follows_a_request_on_its_wire_is_never_read(place, after):
    answer = place.raw(ASKED + after)
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "said",
    [
        f"{LINE}{HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        f"{LINE}{HEAD}Authorization: Bearer other\r\n\r\n",
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
