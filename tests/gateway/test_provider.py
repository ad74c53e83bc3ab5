"""Signing in with an identity provider: one of the test's own, on the loopback."""

from __future__ import annotations

import base64
import hmac
import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

pytest.importorskip("jwt")

import jwt

from dphh.errors import UsageError
from dphh.gateway import provider as providers
from dphh.gateway.analysts import Analysts
from dphh.gateway.provider import Provider, SignedIn
from tests.gateway.conftest import Place, needs_quack


class Realm:
    """An identity provider: says where its keys are, and signs."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.asked = 0
        self.new_key("first")
        realm = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                realm.asked += self.path == "/keys"
                about = {"issuer": realm.issuer, "jwks_uri": f"{realm.issuer}/keys"}
                said = json.dumps(realm.jwks() if self.path == "/keys" else about).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def new_key(self, name: str) -> None:
        self.keys[name] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwks(self) -> dict[str, Any]:
        algorithm = jwt.algorithms.RSAAlgorithm
        return {
            "keys": [
                {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"}
                for name, key in self.keys.items()
            ]
        }

    def token(self, name: str = "alice", *, key: str = "first", **claims: Any) -> str:
        said = {
            "iss": self.issuer,
            "aud": "dphh",
            "exp": time.time() + 300,
            "preferred_username": name,
            **claims,
        }
        said = {claim: value for claim, value in said.items() if value is not None}
        return str(jwt.encode(said, self.keys[key], "RS256", headers={"kid": key}))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def realm() -> Iterator[Realm]:
    realm = Realm()
    yield realm
    realm.close()


@pytest.fixture
def signed_in(realm: Realm, tmp_path: Path) -> SignedIn:
    analysts = Analysts(tmp_path / "analysts.json")
    analysts.add("alice")
    return SignedIn(analysts, Provider(realm.issuer, "dphh"))


def test_a_token_of_the_provider_is_the_analysts_whom_it_names(
    realm: Realm, signed_in: SignedIn
) -> None:
    assert signed_in.who(realm.token()) == "alice"
    assert signed_in.who(realm.token("bob")) is None  # whom the owner has not added
    signed_in._analysts.remove("alice")
    assert signed_in.who(realm.token()) is None
    assert not signed_in.still("alice", realm.token())
    own = signed_in._analysts.add("alice")
    assert signed_in.who(own) == "alice"


def test_other_tokens_are_nobodys(realm: Realm, signed_in: SignedIn) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    claims = {"iss": realm.issuer, "aud": "dphh", "exp": time.time() + 300}
    claims["preferred_username"] = "alice"
    public = realm.keys["first"].public_key()
    shared = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    good = realm.token()
    head, body, signature = good.split(".")
    for token in (
        "",
        "..",
        "a.b.c",
        "x" * 10_000,
        realm.token(aud="another service"),
        realm.token(aud=None),
        realm.token(iss="http://127.0.0.1/another"),
        realm.token(iss=None),
        realm.token(exp=time.time() - 300),
        realm.token(exp=None),
        realm.token(nbf=time.time() + 300),
        realm.token(preferred_username=["alice"]),
        realm.token(preferred_username=None, sub="alice"),
        jwt.encode(claims, stranger, "RS256", headers={"kid": "first"}),
        jwt.encode(claims, stranger, "RS256"),
        jwt.encode(claims, None, "none", headers={"kid": "first"}),
        _by_secret(claims, shared),  # a public key as a secret
        jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), "ES256", {"kid": "first"}),
        f"{head}.{body}.",
        f"{head}.{_bent(body)}.{signature}",
        f"{head}.{body}.{_bent(signature)}",
    ):
        assert signed_in.who(token) is None, token[:80]
    assert signed_in.who(good) == "alice"


def _by_secret(claims: dict[str, Any], secret: bytes) -> str:
    parts = ({"alg": "HS256", "typ": "JWT", "kid": "first"}, claims)
    signed = ".".join(_url(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_url(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _bent(text: str) -> str:
    return text[:10] + ("B" if text[10] == "A" else "A") + text[11:]


def _url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_a_new_key_of_the_provider_is_asked_for_but_not_for_every_stranger(
    realm: Realm, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = realm.asked
    realm.new_key("second")
    for _ in range(20):
        assert signed_in.who(realm.token(key="second")) is None  # not so soon
    assert realm.asked == asked
    monkeypatch.setattr(providers, "_ASK_SECONDS", -1.0)
    assert signed_in.who(realm.token(key="second")) == "alice"
    assert realm.asked == asked + 1


def test_what_a_token_began_goes_on_when_it_runs_out(realm: Realm, signed_in: SignedIn) -> None:
    late = realm.token(exp=time.time() - 300)
    assert signed_in.who(late) is None
    assert signed_in.still("alice", late)


@pytest.mark.parametrize("issuer", ["http://example.org", "ftp://example.org", "example.org"])
def test_a_provider_without_tls_is_not_believed(issuer: str) -> None:
    with pytest.raises(UsageError, match="https"):
        Provider(issuer, "dphh")


@needs_quack
def test_an_analyst_signs_in_from_a_shell(place: Place, realm: Realm) -> None:
    """The recipe of docs/gateway.md, with DuckDB's own client."""
    place.analysts = SignedIn(place.analysts, Provider(realm.issuer, "dphh"))  # type: ignore[assignment]
    place.gateway()
    place.tokens["alice"] = realm.token()
    asked = "FROM dphh_items('reviews', epsilon := 0.5, delta := 1e-7)"
    assert len(place.client("alice").ask(asked)) == 5
    assert [run.run_id.split("/")[0] for run in place.ledger.runs()] == ["alice"]
