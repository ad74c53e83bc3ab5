"""Analysts who sign in with tokens of an identity provider (OpenID Connect).

A token is accepted if the provider signed it for this gateway, it has not expired, and the owner
has added the analyst that it names. An analyst whom the owner removes is refused at once, even with
a valid token.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import jwt

from dphh.errors import UsageError
from dphh.gateway.analysts import Analysts

log = logging.getLogger("dphh.gateway")

#: Asymmetric signatures only: the gateway itself must not be able to sign a token.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_KEYS_SECONDS = 300.0  # how long the provider's keys are cached
_ASK_SECONDS = 30.0  # the least time between two key requests because of unknown keys
_MOST_BYTES = 1 << 20


@dataclass
class Provider:
    """A provider: tokens of this issuer for this audience; `claim` names the analyst."""

    issuer: str
    audience: str
    claim: str = "preferred_username"
    _keys: dict[str, Any] = field(default_factory=dict, repr=False)
    _asked: float = field(default=-1e9, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        _check_address(self.issuer)
        self._fetch_keys()

    def named(self, token: str) -> str | None:
        """The analyst's name in a valid token, else None."""
        try:
            key = self._signing_key(str(jwt.get_unverified_header(token).get("kid", "")))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=self.audience,
                issuer=self.issuer,
                leeway=30,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError):
            return None
        name = claims.get(self.claim)
        return name if isinstance(name, str) else None

    def _signing_key(self, name: str) -> Any:
        with self._lock:
            age = time.monotonic() - self._asked
            if age > (_KEYS_SECONDS if name in self._keys else _ASK_SECONDS):
                try:
                    self._fetch_keys()
                except UsageError as problem:
                    log.error("%s", problem)
            return self._keys.get(name)

    def _fetch_keys(self) -> None:
        """Fetch the provider's keys from the address that it publishes."""
        self._asked = time.monotonic()
        about = _fetch_json(self.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if about.get("issuer") != self.issuer:
            raise UsageError(
                f"--oidc-issuer: found {self.issuer}, but the provider calls itself "
                f"{about.get('issuer')!r}; give that"
            )
        _check_address(str(about.get("jwks_uri")))
        try:
            keys = jwt.PyJWKSet.from_dict(_fetch_json(str(about["jwks_uri"]))).keys
        except jwt.PyJWTError as problem:
            raise UsageError(
                f"--oidc-issuer: the keys of {self.issuer} cannot be read ({problem}); give an "
                "issuer of OpenID Connect"
            ) from None
        self._keys = {str(each.key_id or ""): each for each in keys}


class SignedIn:
    """Analysts by tokens that `add-analyst` printed, or by tokens of a provider."""

    def __init__(self, analysts: Analysts, provider: Provider) -> None:
        self._analysts, self._provider = analysts, provider

    def names(self) -> list[str]:
        return self._analysts.names()

    def who(self, token: str) -> str | None:
        if (known := self._analysts.who(token)) is not None:
            return known
        name = self._provider.named(token)
        return name if name in self._analysts.names() else None

    def still(self, analyst: str, token: str) -> bool:
        """Whether a run may continue; it may even if the provider's token has expired since."""
        return analyst in self.names() and (
            self._analysts.who(token) == analyst or token.count(".") == 2
        )


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise UsageError(f"--oidc-issuer: give an https address; found {address!r}")


def _fetch_json(address: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            found = json.loads(response.read(_MOST_BYTES))
    except (OSError, ValueError) as problem:
        raise UsageError(
            f"--oidc-issuer: {address} did not answer ({problem}); see that it can be reached"
        ) from None
    if not isinstance(found, dict):
        raise UsageError(
            f"--oidc-issuer: {address} answered without a JSON object; give an issuer of OpenID "
            "Connect"
        )
    return found
