"""What the ledger is asked, what it answers, and what it tells of its runs and changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.ledger.budget import Booking, checked_booking
from dphh.ledger.source import Source, source_of
from dphh.privacy.events import Event, priced_in
from dphh.rows.user import as_json

Manifest = dict[str, Any]
#: What must be unchanged when a run continues: names and values.
Setting = dict[str, str]
State = Literal["running", "failed", "settled"]
#: Columns with values that are public, of one account.
Groups = dict[str, tuple[str, ...]]


class Priced(Protocol):
    """What the ledger asks of a `dphh.price.Price`, which lies above it."""

    @property
    def verb(self) -> str: ...
    @property
    def parameters(self) -> tuple[tuple[str, Any], ...]: ...
    @property
    def events(self) -> tuple[Event, ...]: ...
    @property
    def privacy(self) -> Any: ...


@dataclass(frozen=True)
class Request:
    """A verb, its parameters, its data and its price, without the caller and the run id.

    `account` names the account that pays; accounts whose folders or patterns hold the source's
    files pay too. A claim below the cost of the events is refused.
    """

    source: Source
    verb: str
    parameters: dict[str, Any]
    events: Sequence[Event]
    epsilon: float
    delta: float
    account: str | None = None
    price: Booking = field(init=False)

    def __post_init__(self) -> None:
        price = checked_booking(self.events, self.epsilon, self.delta)
        object.__setattr__(self, "price", price)

    @classmethod
    def of(cls, price: Priced, corpus: Corpus) -> Request:
        """What a run of this price on this corpus asks of the ledger."""
        return cls(
            source_of(corpus),
            price.verb,
            recorded(price, corpus),
            price.events,
            price.privacy.booked_epsilon,
            price.privacy.delta,
            account=corpus.account,
        )

    @property
    def digest(self) -> str:
        """A hash that is equal for equal requests; it does not depend on the notes of events, nor,
        of files, on whether the account that holds them is named."""
        asked = [
            self.verb,
            self.parameters,
            self.source.to_json(),
            None if self.source.kind == "path" else self.account,
            priced_in(self.price.events),
            self.price.epsilon,
            self.price.delta,
        ]
        return hashlib.sha256(canonical(asked, "the parameters").encode()).hexdigest()


class StoredRelease(NamedTuple):
    """The manifest and the Parquet file of a settled run."""

    manifest: Manifest
    parquet: bytes


@dataclass(frozen=True)
class Booked:
    """A run whose price is booked. With a `release`, it is settled; otherwise it may draw."""

    run_id: str
    sequence: int
    #: The accounts that paid; none if no account holds the data, so that nothing caps the run.
    accounts: tuple[str, ...]
    #: Whether this call paid for it.
    new: bool
    #: The key from which a continued run derives again the random words that a run draws once.
    key: bytes = field(default=b"", repr=False)
    attempt: int = 1
    release: StoredRelease | None = None
    #: What the ledger keeps to recognise the run's data, if anything.
    files: str = ""


@dataclass(frozen=True)
class Entry:
    """One run as the ledger knows it."""

    sequence: int
    run_id: str
    accounts: tuple[str, ...]
    source: Source
    verb: str
    parameters: dict[str, Any]
    events: tuple[Event, ...]
    epsilon: float
    delta: float
    state: State
    when: datetime  # the day on which it was booked
    changed: datetime  # the day on which it came into its state
    who: str  # the system's user who asked for it, as a note and not a proof
    analyst: str | None  # the analyst who asked for it at the gateway


@dataclass(frozen=True)
class Change:
    """One change that an owner made: of a cap, a share, a token, declared groups or a corpus."""

    when: datetime  # the day
    who: str  # the system's user
    what: str
    account: str | None  # None of a token, which is for all of an analyst's shares
    analyst: str | None
    was: str | None  # None: there was none
    now: str | None  # None: there is none any more

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "when": self.when.isoformat()}

    def __str__(self) -> str:
        whose = "" if self.analyst is None else f" of {self.analyst}"
        before = "" if self.was is None else f", before {self.was}"
        return (
            f"{self.when:%Y-%m-%d} {self.what}{whose}: {self.now or 'none'}{before}, by {self.who}"
        )


def recorded(price: Priced, corpus: Corpus) -> dict[str, Any]:
    """The parameters as the ledger and the manifest record them."""
    of_corpus = {"user": as_json(corpus.user), "content": corpus.content.to_json()}
    return {**dict(price.parameters), **of_corpus}


def canonical(value: Any, what: str) -> str:
    """The value as canonical JSON, so that equal requests have equal digests."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"The ledger stores JSON, and cannot write {what}: {error}.") from error


def checked_run_id(run_id: object) -> str:
    """Check a run id: a short text without control characters."""
    if isinstance(run_id, str) and run_id.isprintable() and 0 < len(run_id) <= 200:
        return run_id
    raise UsageError("run_id: give a printable text of 1 to 200 characters")
