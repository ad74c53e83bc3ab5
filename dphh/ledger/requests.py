"""The request that a priced run makes of the ledger."""

from __future__ import annotations

from typing import Any, Protocol

from dphh.corpus import Corpus
from dphh.ledger.entries import Request
from dphh.ledger.origins import source_of
from dphh.privacy.events import Event
from dphh.rows.user import as_json


class Claimed(Protocol):
    """What a price claims to cost."""

    @property
    def booked_epsilon(self) -> float: ...

    @property
    def delta(self) -> float: ...


class Priced(Protocol):
    """What the ledger asks of a price."""

    @property
    def verb(self) -> str: ...

    @property
    def parameters(self) -> tuple[tuple[str, Any], ...]: ...

    @property
    def events(self) -> tuple[Event, ...]: ...

    @property
    def privacy(self) -> Claimed: ...


def request_of(price: Priced, corpus: Corpus) -> Request:
    """The request for a price on a corpus."""
    return Request(
        source_of(corpus),
        price.verb,
        recorded(price, corpus),
        price.events,
        price.privacy.booked_epsilon,
        price.privacy.delta,
        account=corpus.name,
        whole=corpus.source is None,  # devices' rows are no file's
    )


def recorded(price: Priced, corpus: Corpus) -> dict[str, Any]:
    """The parameters as the ledger and the manifest record them."""
    return {
        **dict(price.parameters),
        "user": as_json(corpus.user),
        "content": corpus.content.to_json(),
    }
