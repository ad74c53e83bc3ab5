"""The request that a priced run makes of the ledger."""

from __future__ import annotations

from typing import Any, Protocol

from dphh.corpus import Corpus
from dphh.ledger.entries import Request
from dphh.ledger.origins import origin_of, source_of
from dphh.lineage.origin import Origin
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


def request_of(price: Priced, corpus: Corpus, origin: Origin | None = None) -> Request:
    """The request for a price on a corpus. `origin`: what lineage found, if it was analysed
    before."""
    origin = origin or origin_of(corpus)
    return Request(
        source_of(corpus, origin),
        price.verb,
        recorded(price, corpus),
        price.events,
        price.privacy.booked_epsilon,
        price.privacy.delta,
        account=corpus.name,
        whole=origin.whole or corpus.source is None,  # devices' rows are no file's
    )


def recorded(price: Priced, corpus: Corpus) -> dict[str, Any]:
    """The parameters as the ledger and the manifest record them."""
    return {
        **dict(price.parameters),
        "user": as_json(corpus.user),
        "content": corpus.content.to_json(),
        **({} if corpus.period is None else {"period": str(corpus.period)}),
        **({} if corpus.periods is None else {"periods": corpus.names_of_periods}),
    }
