"""Requests to the ledger, its answers, and its lists of runs and of owners' changes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from dphh.errors import UsageError
from dphh.ledger.budget import Booking, checked_booking
from dphh.price import Price, parameters_asked
from dphh.privacy.events import Event, events_to_json
from dphh.reader.corpus import Corpus, unit_and_columns, user_option
from dphh.wording.lines import with_noun

Manifest = dict[str, Any]
#: What must be unchanged when a run continues, by name, such as "engine" and "data".
Setting = dict[str, str]


@dataclass(frozen=True)
class Request:
    """What is asked of the ledger: a verb, its parameters, a corpus and a booking. Who asks and the
    run id are no part of it. `digest` tells whether two requests are equal, `Data` whether they are
    of the same data."""

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
        asked = [
            self.verb,
            self.parameters,
            [user_option(self.corpus.user), self.corpus.content.to_json()],
            events_to_json(self.booking.events, with_notes=False),
            self.booking.epsilon,
            self.booking.delta,
        ]
        return hashlib.sha256(canonical_json(asked).encode()).hexdigest()


class Data(NamedTuple):
    """By what the ledger knows a run's data again (`reader/identity.py`)."""

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
    """A run that is booked. One that is not `settled` may draw."""

    run_id: str
    #: The accounts that paid; none if no account holds the data, so that nothing caps the run.
    accounts: tuple[str, ...]
    #: Whether this call booked the run; False if it was booked before.
    new: bool
    #: A random key. What a run draws once is derived from it: a continued run gets the same again.
    key: bytes = field(default=b"", repr=False)
    attempt: int = 1
    settled: bool = False
    #: The digest of its data; None for a test's run.
    data: str | None = field(default=None, repr=False)
    #: Where they were, of a run that was booked before.
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
    #: Of a settled run, the version of dphh and the engine that made it.
    made_with: str | None = None
    table_sha256: str | None = None  # and the hash of its table, which its manifest has
    is_test: bool = False  # made with a seed: its release is not private

    @property
    def booking(self) -> Booking:
        return Booking(self.events, self.epsilon, self.delta)

    def promises_nothing(self, user: tuple[str, ...] | None) -> str | None:
        """Why it promises nothing, or nothing to those whom these columns identify; None if it
        does."""
        if self.is_test:
            return "a test's run, made with a seed: NOT private, and its release must not leave"
        if user is not None and self.corpus.user != user:
            return f"it promises nothing to {unit_and_columns(user)}"
        return None


#: What is said of a day that is out of order.
ODD_DAY = (
    "its day does not agree with those of the runs before or after it: a clock was wrong, or "
    "somebody edited the ledger's file"
)


def is_out_of_order(place: float, day: datetime, runs: Iterable[Entry]) -> bool:
    """Whether a day does not agree with this place among the runs' sequence numbers. Clocks may
    differ by a day."""
    return any(
        (run.sequence < place) is (run.when > day) and abs(run.when - day) > timedelta(1)
        for run in runs
    )


#: A cap as a change of it has it.
_CAP = re.compile("epsilon ([^,]+), delta ([^,]+)")
#: What owners change, in words.
_CHANGED = {
    "account": "account",
    "cap": "cap",
    "corpus": "data and columns",
    "groups": "public groups",
    "share": "share of the analyst {}",
    "token": "token of the analyst {}",
}


class Change(NamedTuple):
    """One change that an owner made: of an account, its cap, its corpus, its declared groups, an
    analyst's share or token."""

    when: datetime  # the day of the change
    who: str  # the login name under which it was made
    what: str
    account: str | None  # None for a token, which is for all of an analyst's shares
    analyst: str | None
    was: str | None  # what was in force before; None: nothing
    now: str | None  # what is in force since; None: nothing
    after: int  # the sequence of the ledger's last run before it; 0 without one
    runs: int  # how many of the account's runs were asked for before it

    @property
    def lowers_cap(self) -> bool:
        """Whether it made a cap smaller: what was promised before then holds all the same."""
        was, now = (_CAP.match(said or "") for said in (self.was, self.now))
        if self.what != "cap" or was is None or now is None:
            return False
        both = [*zip(map(float, was.groups()), map(float, now.groups()), strict=True)]
        return all(new <= old for old, new in both) and any(new < old for old, new in both)

    def is_of_groups_by(self, column: str | None) -> bool:
        """Whether it declared or withdrew groups of this column."""
        return self.what == "groups" and f"{self.now or self.was}".startswith(f"{column}: ")

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "when": self.when.isoformat()}

    def __str__(self) -> str:
        before = f", after {with_noun(self.runs, 'run')}" if self.runs else ", before any run"
        did = f"{'made' if self.what == 'account' else 'given'}: {self.now}"
        if self.was is not None:
            did = f"changed from {self.was} to {self.now}"
        if self.now is None:
            did = f"withdrawn; it was {self.was}"
        return (
            f"{self.when:%Y-%m-%d}{before if self.account else ''}: "
            f"{_CHANGED[self.what].format(self.analyst)} {did}; by {self.who}"
        )


def canonical_json(value: Any) -> str:
    """The value as JSON in one fixed form, so that equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def check_name(option: str, name: object, longest: int) -> None:
    """Check that a name is a printable text of 1 to `longest` characters."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= longest:
        raise UsageError(f"{option}: give a printable text of 1 to {longest} characters")
