"""What the ledger is asked, and what it answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from dphh.corpus import Corpus
from dphh.errors import UnknownRunError, UsageError
from dphh.ledger.budget import Booking, Budget, Cap, checked_booking
from dphh.ledger.sentences import accounts_html, accounts_text
from dphh.ledger.source import Source, source_of
from dphh.privacy.events import Event, priced_in
from dphh.rows.user import UserColumns, as_json

Manifest = dict[str, Any]
#: What must be unchanged when a run continues: names and values.
Setting = dict[str, str]
State = Literal["running", "failed", "settled"]
#: Columns with values that are public, of one account.
Groups = dict[str, tuple[str, ...]]


class Priced(Protocol):
    """What the ledger asks of a `dphh.price.Price`."""

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
class Account:
    """A corpus in the ledger: its cap, what was spent, and what is left for one more run."""

    name: str | None  # None: runs on a corpus that no account holds, and that nothing caps
    source: Source
    runs: int
    cap: Cap | None
    spent: Budget
    left: Budget | None
    used: float | None  # the share of the cap that is used, of what is scarcest

    @property
    def label(self) -> str:
        return self.source.label if self.name is None else self.name

    @property
    def user(self) -> UserColumns:
        """The columns that identify the protected unit; with several columns it is less than a
        user."""
        return self.source.user

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "label": self.label,
            "source": self.source.to_json(),
            "runs_count": self.runs,
            **{
                part: None if (budget := getattr(self, part)) is None else asdict(budget)
                for part in ("cap", "spent", "left")
            },
            "used": self.used,
        }

    def __repr__(self) -> str:
        return accounts_text([self])

    def _repr_html_(self) -> str:
        return accounts_html([self])


@dataclass(frozen=True)
class Share:
    """An analyst's share of an account's cap: what was spent of it, and what is left for one more
    run, which is never more than what the account has left."""

    analyst: str
    account: str
    user: UserColumns
    runs: int
    cap: Cap
    spent: Budget
    left: Budget
    used: float

    @property
    def name(self) -> str:
        return self.account

    @property
    def label(self) -> str:
        return self.account


@dataclass(frozen=True)
class Change:
    """One change that an owner made: of a cap, a share, a token, declared groups or a place."""

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


@dataclass(frozen=True)
class Outlook:
    """What the ledger would say of a request now. A later request may find other accounts."""

    #: The accounts that would pay, the one that the request names first.
    accounts: tuple[Account, ...]
    #: The message with which the ledger would refuse it, or None.
    refusal: str | None
    #: The cap that has the least room: its account, the share of it that the run would use, and how
    #: many such runs are left; None without a cap.
    scarcest: tuple[str, float, int] | None


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
