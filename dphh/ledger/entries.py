"""Requests to the ledger, its answers, and its lists of runs and of owners' changes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from dphh.errors import UsageError
from dphh.ledger.budget import Booking, checked_booking
from dphh.price import Price, parameters_asked
from dphh.privacy.events import Event, events_to_json
from dphh.reader.corpus import Corpus, unit_and_columns, user_option

Manifest = dict[str, Any]
#: What must be unchanged when a run continues, by name, such as "engine" and "data".
Setting = dict[str, str]


@dataclass(frozen=True)
class Request:
    """A request to the ledger: a verb, its parameters, a corpus and a booking. Who asks and the run
    id are no part of it. Two requests are equal if their `digest` is, and read the same data if
    their `Data` are equal."""

    corpus: Corpus
    verb: str
    #: As the ledger and the manifest record them: the price's, and how the corpus is read.
    parameters: dict[str, Any]
    booking: Booking

    @classmethod
    def of(cls, price: Price, corpus: Corpus) -> Request:
        """The request for a run at this price. A claim below the cost of its events is refused."""
        claim = price.privacy.booked_epsilon, price.privacy.delta
        booking = checked_booking(price.events, *claim)
        return cls(corpus, price.verb, parameters_asked(price, corpus), booking)

    @property
    def digest(self) -> str:
        """A hash that is equal for equal requests. It leaves out the notes of events, where the
        data are and which account pays."""
        fields = [
            self.verb,
            self.parameters,
            [user_option(self.corpus.user), self.corpus.content.to_json()],
            events_to_json(self.booking.events, with_notes=False),
            self.booking.epsilon,
            self.booking.delta,
        ]
        return hashlib.sha256(canonical_json(fields).encode()).hexdigest()


class Data(NamedTuple):
    """The digests by which the ledger recognises a run's data (`reader/identity.py`)."""

    digest: str
    #: The state of the files that had this digest, which need not be read again; None: unknown.
    files: str | None


class StoredRelease(NamedTuple):
    """The manifest and the Parquet file of a settled run."""

    manifest: Manifest
    parquet: bytes

    def __repr__(self) -> str:
        run_id = self.manifest.get("run_id")
        return f"StoredRelease of run {run_id!r}: plan.run(run_id={run_id!r}) gives it to read"


@dataclass(frozen=True)
class BookedRun:
    """A run that is booked. It may draw unless it is `settled`."""

    run_id: str
    #: The accounts that paid; none if no account holds the data, so that nothing caps the run.
    accounts: tuple[str, ...]
    #: Whether this call booked the run; False if it was booked before.
    new: bool
    #: A random key, from which a run derives what it draws once: when it continues, the same again.
    key: bytes = field(default=b"", repr=False)
    attempt: int = 1
    settled: bool = False
    #: The digest of its data; None for a test's run.
    data: str | None = field(default=None, repr=False)
    #: Where its data were, for a run that was booked before.
    where: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One run as the ledger lists it."""

    sequence: int
    run_id: str
    id_given: bool  # whether whoever asked wrote the run id; else dphh drew it
    accounts: tuple[str, ...]
    corpus: Corpus
    verb: str
    parameters: dict[str, Any]
    events: tuple[Event, ...]
    epsilon: float
    delta: float
    state: Literal["running", "failed", "settled"]
    when: datetime  # the day on which the run was booked
    changed: datetime  # the day on which the run came into its state
    who: str  # the login name under which the run was asked for: a note, not a proof
    analyst: str | None  # the analyst who asked for the run at the gateway
    #: The version of dphh and the engine that made a settled run.
    made_with: str | None = None
    table_sha256: str | None = None  # and the hash of its table, which its manifest has
    is_test: bool = False  # made with a seed: its release is not private

    @property
    def booking(self) -> Booking:
        return Booking(self.events, self.epsilon, self.delta)

    def promises_nothing(self, user: tuple[str, ...] | None) -> str | None:
        """Why the run promises nothing, or nothing to the users that these columns identify; None
        if it promises something."""
        if self.is_test:
            return "a test's run, made with a seed: NOT private, and its release must not leave"
        if user is not None and self.corpus.user != user:
            return f"it promises nothing to {unit_and_columns(user)}"
        return None


def canonical_json(value: Any) -> str:
    """The value as JSON in one fixed form, so that equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def check_name(option: str, name: object, longest: int) -> None:
    """Check that a name is a printable text of 1 to `longest` characters."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= longest:
        raise UsageError(f"{option}: give a printable text of 1 to {longest} characters")
