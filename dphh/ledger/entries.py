"""The ledger's data types: its requests, its answers, and its records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from dphh.corpora.user import UserColumns
from dphh.errors import NotHeldError, UnknownRunError, UsageError
from dphh.ledger.bars import accounts_html
from dphh.ledger.budget import Booking, Budget, Cap, GivenBack, checked_booking
from dphh.ledger.by_period import PersonBudget, names_of
from dphh.ledger.sources import Source
from dphh.ledger.wording import accounts_text
from dphh.privacy.events import Event, Json, events_to_json, priced_in
from dphh.rows.period import PeriodColumn, Spans
from dphh.together import Together

Manifest = dict[str, Any]


class StoredRelease(NamedTuple):
    """The manifest and the Parquet file of a settled run."""

    manifest: Manifest
    parquet: bytes


@dataclass(frozen=True)
class Hold:
    """The secret that a reservation returns. Only its holder can begin, continue, settle or cancel
    the run; the run id does not suffice.

    A repeated request gets its own hold on the same run. The id of a cancelled run may be reserved
    again by another request at another price; the old hold is not valid for that one.
    """

    run_id: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class Reservation:
    """A run that may begin, or, if `release` is given, a run that is already settled."""

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
    analyst: str | None = None  # who asked for it, if an analyst did


@dataclass(frozen=True)
class Account:
    """A corpus in the ledger: its cap, what was spent, and what is left for one more run."""

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
    #: How many runs read that period, and the periods of which no run may follow.
    fullest_runs: int = 0
    without_room: Spans = ()
    person: PersonBudget | None = None
    together: tuple[Together, ...] = ()

    @property
    def label(self) -> str:
        return self.source.label if self.name is None else self.name

    @property
    def user(self) -> UserColumns:
        """The columns that identify the protected unit; with several columns it is less than a
        user."""
        return self.source.user

    @property
    def period(self) -> PeriodColumn | None:
        """The period within which a user's rows are one unit; None if the unit is the whole
        user."""
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
            "fullest_runs_count": self.fullest_runs,
            "without_room": names_of(self.period, self.without_room),
            "person": None if self.person is None else asdict(self.person),
            "a_user_in_periods": [asdict(each) for each in self.together],
        }

    def __repr__(self) -> str:
        return accounts_text([self])

    def _repr_html_(self) -> str:
        return accounts_html([self])


@dataclass(frozen=True)
class Request:
    """A verb, its parameters, its data and its price, without the caller and the run id.

    `account` names an additional account that pays, for data that the ledger cannot recognise, such
    as a frame; accounts that share data with the source pay in any case. If any corpus is capped, a
    request that is not `whole` must name an account. A claim below the cost of the events is
    refused.
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
        """A hash that is equal for equal requests; it does not depend on the notes of events."""
        return self._digest_with(priced_in(self.price.events))

    @property
    def digest_now_and_before(self) -> tuple[str, str]:
        """The digest as it is now, and as earlier versions computed it, with the notes of
        events."""
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
    """The value as canonical JSON, so that equal requests have equal digests."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"The ledger stores JSON, and cannot write {what}: {error}.") from error


def checked_run_id(run_id: object, longest: int = 200) -> str:
    """Check a run id: a short text without control characters."""
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


def error_not_held(hold: Hold) -> NotHeldError:
    return NotHeldError(
        f"Run {hold.run_id} is not reserved by this attempt: it never was, or was given back. "
        "Repeat the request, which reserves it again."
    )
