"""The ledger's nouns: what it is asked, and what it hands out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from dphh.errors import NotHeldError, UnknownRunError, UsageError
from dphh.ledger.bars import accounts_html
from dphh.ledger.budget import Booking, Budget, Cap, GivenBack, checked_booking
from dphh.ledger.by_period import OfAPerson
from dphh.ledger.sources import Source
from dphh.ledger.wording import accounts_text
from dphh.privacy.events import Event, Json, events_to_json, priced_in
from dphh.unit.period import Period
from dphh.unit.together import Together
from dphh.unit.user import User

Manifest = dict[str, Any]


class StoredRelease(NamedTuple):
    """What a settled run released."""

    manifest: Manifest
    parquet: bytes


@dataclass(frozen=True)
class Hold:
    """What an attempt at a run has in hand: with it, and not by the run's name, the run is begun,
    gone on with, settled or cancelled.

    Whoever asks the same request again has a hold of their own, on the same run. An id that came
    free may have been reserved again, by another request at another price: an old hold is not its.
    """

    run_id: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class Reservation:
    """A run that may begin; or, where `release` is there, the same run as it was settled."""

    hold: Hold
    sequence: int
    accounts: tuple[str, ...]  # labels of those that paid
    capped: bool  # False: nobody has named this corpus, so nothing limits what it spends
    release: StoredRelease | None = None
    files: str = ""  # of a run that was made before: what tells its data from others, if anything
    moved: tuple[str, ...] = ()  # of accounts whose files lie elsewhere: why they pay

    @property
    def run_id(self) -> str:
        return self.hold.run_id


@dataclass(frozen=True)
class Entry:
    """One run as the ledger knows it."""

    sequence: int
    run_id: str
    accounts: tuple[str, ...]  # labels of those that paid
    source: Source
    verb: str
    parameters: dict[str, Any]
    events: tuple[Event, ...]
    epsilon: float
    delta: float
    state: str  # reserved, running, failed, settled or cancelled; the last alone costs nothing
    when: datetime  # the day on which it was reserved
    changed: datetime  # the day on which it came into its state
    drawn: tuple[Event, ...] | None = None  # of a settled run that drew less than its events


@dataclass(frozen=True)
class Account:
    """A corpus, what its owner allows, what was spent and what one more run could have."""

    name: str | None  # None: nobody has named it, and it has no cap
    source: Source
    fingerprint: str
    runs: int
    cap: Cap | None
    spent: Budget
    left: Budget | None
    given_back: GivenBack | None = None
    used: float | None = None  # the share of the cap that is used, of what is scarcest
    #: Of a unit of one period: the one of which most was drawn, which `spent` and `left` are of; a
    #: person's cap; and what was drawn of users in several periods.
    fullest: str = ""
    person: OfAPerson | None = None
    together: tuple[Together, ...] = ()

    @property
    def label(self) -> str:
        return self.source.label if self.name is None else self.name

    @property
    def user(self) -> User:
        """The unit that is protected: a user by one column or, of several, less than a user."""
        return self.source.user

    @property
    def period(self) -> Period | None:
        """Within which a user's rows are a unit, if not at all times."""
        return self.source.period

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "label": self.label,
            "source": self.source.to_json(),
            "fingerprint": self.fingerprint,
            "runs_count": self.runs,
            **{
                part: None if (budget := getattr(self, part)) is None else asdict(budget)
                for part in ("cap", "spent", "left", "given_back")
            },
            "used": self.used,
            **self._json_of_periods,
        }

    @property
    def _json_of_periods(self) -> dict[str, Any]:
        if self.period is None:
            return {}
        return {
            "fullest": self.fullest or None,
            "person": None if self.person is None else asdict(self.person),
            "a_user_in_periods": [each.to_json() for each in self.together],
        }

    def __repr__(self) -> str:
        return accounts_text([self])

    def _repr_html_(self) -> str:
        return accounts_html([self])


@dataclass(frozen=True)
class Request:
    """What is asked of which data at which price; whoever asks, and whatever the run is called.

    `account` is one more that pays, for data that the ledger cannot recognise, such as a frame; it
    never replaces those that the source touches. Where any corpus is capped, a request that is not
    `whole` has to name one. A claim below what its events cost is no request.
    """

    source: Source
    verb: str
    parameters: dict[str, Any]
    events: Sequence[Event]
    epsilon: float
    delta: float
    account: str | None = None
    #: Whether the source's files are known to be all that its rows come from.
    whole: bool = True
    price: Booking = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source.absolute())
        price = checked_booking(self.events, self.epsilon, self.delta)
        object.__setattr__(self, "price", replace(price, **self.source.reads))

    @property
    def digest(self) -> str:
        """Tells the same request again from another one, however its events are worded."""
        return self._digest_with(priced_in(self.price.events))

    @property
    def digests(self) -> tuple[str, str]:
        """As it is written, and as an earlier dphh wrote it, with the notes of its events."""
        return self.digest, self._digest_with(events_to_json(self.price.events))

    def _digest_with(self, events: list[Json]) -> str:
        asked = [
            self.verb,
            self.parameters,
            self.source.to_json(),
            self.account,
            events,
            self.price.epsilon,
            self.price.delta,
        ]
        return hashlib.sha256(canonical(asked, "the parameters").encode()).hexdigest()


def canonical(value: Any, what: str) -> str:
    """One text for one value, so that equal requests have equal digests."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"The ledger stores JSON, and cannot write {what}: {error}.") from error


def checked_run_id(run_id: object, longest: int = 200) -> str:
    """What names a run, in the ledger and in its manifest."""
    if isinstance(run_id, str) and run_id.isprintable() and 0 < len(run_id) <= longest:
        return run_id
    raise UsageError(f"run_id: give a printable text of 1 to {longest} characters")


def unknown_account(name: str) -> UsageError:
    return UsageError(
        f"The ledger has no account {name!r}. See `dphh ledger show`, or name the corpus with "
        "`dphh ledger add`."
    )


def unknown_run(run_id: str) -> UnknownRunError:
    return UnknownRunError(
        f"The ledger has no run {run_id!r}. `dphh ledger show NAME` lists the ids of a corpus's "
        "runs, and `dphh ledger export FILE` those of all."
    )


def not_held(hold: Hold) -> NotHeldError:
    return NotHeldError(
        f"Run {hold.run_id} is not reserved by this attempt: it never was, or was given back. "
        "Repeat the request, which reserves it again."
    )
