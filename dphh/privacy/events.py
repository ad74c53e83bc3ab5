"""What a run did to privacy, step by step: what each kind of event is, and what it costs.

Each kind is said once, in a class here that says its own cost. The accountant
(`dphh.privacy.accounting`), caps (`dphh.ledger.exact`), the ledger's JSON and all else ask
`cost_of`, which refuses what is none of these kinds: nothing passes for free by being unknown.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from functools import cached_property
from typing import Any, ClassVar

from dphh.errors import UnpricedEventError, UsageError

Json = dict[str, str | float]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an event costs, in the amounts that are charged; None where it has no such part."""

    #: A Gaussian release of L2 sensitivity 1: the noise's standard deviation.
    sigma: float | None = None
    #: The probability of an infinite loss.
    delta: float | None = None
    #: Both directions keep this epsilon: the loss is no worse than randomised response's.
    response: float | None = None
    #: One direction is known to keep this epsilon: the loss may be that for certain.
    certain: float | None = None
    #: An epsilon that costs nothing of a budget: what is published of it is an event of its own.
    beside: float | None = None
    #: Whether no user pays both sigma and delta in full (`SetUnionEvent`).
    either: bool = False

    def __post_init__(self) -> None:
        if not self.is_charged and self.beside is None:
            raise UnpricedEventError(
                "cost: found no amount; say what the event costs, or by `beside` that it is free"
            )
        if self.either and (self.sigma is None or self.delta is None):
            raise UnpricedEventError("cost: either: goes with both sigma and delta; give them")

    @property
    def is_charged(self) -> bool:
        """Whether it takes anything of a budget."""
        amounts = (self.sigma, self.delta, self.response, self.certain)
        return any(amount is not None for amount in amounts)


#: From where to where a number of an event may go, and whether the lowest is allowed.
_RANGES = {
    "sigma": (0.0, math.inf, False),
    "delta": (0.0, 1.0, True),
    "epsilon": (0.0, math.inf, True),
}


class Role(Enum):
    """Which part of a price an event is, where a run may come to its end without drawing it."""

    #: A level's, or all levels': those that ran say what they drew.
    LEVEL = auto()
    #: The counts' of what was found: where nothing was found there are none.
    COUNTS = auto()


@dataclass(frozen=True)
class Event(ABC):
    """One step of a run: numbers that `_RANGES` knows, and a note, which is shown and no more."""

    kind: ClassVar[str]
    #: For the process that priced it; what is written of an event is what it cost. Without a role
    #: it is drawn in any case.
    role: Role | None = field(default=None, kw_only=True, compare=False)

    @property
    @abstractmethod
    def note(self) -> str:
        """What it was for, to be read by people."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """All that it costs; whoever charges asks `cost_of`."""

    def __post_init__(self) -> None:
        for name in _numbers(type(self)):
            _check_number(self.kind, name, getattr(self, name))
        if not isinstance(self.note, str):
            raise UsageError(
                f"note of an event of kind {self.kind} must be text, "
                f"found {type(self.note).__name__}; leave it out or quote it."
            )

    def numbers(self) -> Json:
        """What it is, without the note."""
        said = {name: float(getattr(self, name)) for name in _numbers(type(self))}
        return {"kind": self.kind, **said}

    def to_json(self) -> Json:
        return {**self.numbers(), "note": self.note}


def _numbers(kind: type[Event]) -> list[str]:
    return [each.name for each in fields(kind) if each.name not in ("note", "role")]


@dataclass(frozen=True)
class GaussianEvent(Event):
    """One release of L2 sensitivity 1 under Gaussian noise of standard deviation sigma."""

    kind = "gaussian"
    sigma: float
    note: str = field(default="", compare=False)

    @cached_property
    def cost(self) -> Cost:
        return Cost(sigma=self.sigma)


@dataclass(frozen=True)
class DeltaEvent(Event):
    """A (0, delta)-DP step, such as a threshold that hides a user's new items."""

    kind = "delta"
    delta: float
    note: str = field(default="", compare=False)

    @cached_property
    def cost(self) -> Cost:
        return Cost(delta=self.delta)


@dataclass(frozen=True)
class SetUnionEvent(Event):
    """A Gaussian release of L2 sensitivity 1 with a threshold that hides a user's new items.

    Either costs less where the other costs more: of a user's kept items let the share x be new.
    They pass with probability x delta at most, and the others move by sqrt(1 - x) in L2, under
    noise of standard deviation sigma. The share is the user's own: it must not follow from
    earlier releases (docs/items.md).
    """

    kind = "set union"
    sigma: float
    delta: float
    note: str = field(default="", compare=False)

    @cached_property
    def cost(self) -> Cost:
        return Cost(sigma=self.sigma, delta=self.delta, either=True)


@dataclass(frozen=True)
class ApproximateEvent(Event):
    """Any other (epsilon, delta)-DP step, in both directions."""

    kind = "approximate"
    epsilon: float
    delta: float
    note: str = field(default="", compare=False)

    @cached_property
    def cost(self) -> Cost:
        return Cost(response=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class OneDirectionEvent(Event):
    """A step that is known to be (epsilon, delta)-DP in one direction alone.

    Such bounds add up and no better: the step may have the loss epsilon for certain, where one
    that keeps both directions has it no more often than randomised response.
    """

    kind = "one direction"
    epsilon: float
    delta: float
    note: str = field(default="", compare=False)

    @cached_property
    def cost(self) -> Cost:
        return Cost(certain=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class LocalEvent(Event):
    """A user's own message, locally randomised: what it tells whoever receives it, of all of it.

    It is recorded beside what is published of the messages and costs nothing of a budget, which is
    for what is published.
    """

    kind = "local"
    epsilon: float
    note: str = field(default="", compare=False)

    @cached_property
    def cost(self) -> Cost:
        return Cost(beside=self.epsilon)


#: Every kind that there is. What is not here is refused, a class derived from one of these too.
KINDS: dict[str, type[Event]] = {
    kind.kind: kind
    for kind in (
        GaussianEvent,
        DeltaEvent,
        SetUnionEvent,
        ApproximateEvent,
        OneDirectionEvent,
        LocalEvent,
    )
}


def cost_of(event: Event) -> Cost:
    """What an event costs. Whoever charges, compares, stores or reads one asks here."""
    kind = type(event)
    if kind not in KINDS.values():
        raise UnpricedEventError(
            f"an event must be of one of the kinds {', '.join(KINDS)}, found a {kind.__name__}, of "
            "which nobody says what it costs; give it a class in dphh/privacy/events.py"
        )
    return event.cost


def costs_of(events: Iterable[Event]) -> list[Cost]:
    """All of them at once, so that none is passed over."""
    return [cost_of(event) for event in events]


def events_to_json(events: Iterable[Event]) -> list[Json]:
    """As ledgers, manifests and plans write them down."""
    events = list(events)
    costs_of(events)
    return [event.to_json() for event in events]


def priced_in(events: Iterable[Event]) -> list[Json]:
    """The same without notes: what tells one price from another."""
    events = list(events)
    costs_of(events)
    return [event.numbers() for event in events]


def events_from_json(records: Iterable[Mapping[str, object]]) -> tuple[Event, ...]:
    return tuple(event_from_json(record) for record in records)


def event_from_json(record: Mapping[str, object]) -> Event:
    """The event that `to_json` wrote down."""
    found = record.get("kind")
    kind = KINDS.get(found) if isinstance(found, str) else None
    if kind is None:
        raise UnpricedEventError(
            f"an event's kind must be one of {', '.join(KINDS)}, found {found!r}; "
            "was it written by a newer dphh?"
        )
    values: dict[str, Any] = {name: value for name, value in record.items() if name != "kind"}
    numbers = _numbers(kind)
    known = [*numbers, "note"]
    # An unknown field may be one that a newer version prices; passing over it could undercharge.
    unknown = sorted(set(values) - set(known))
    if unknown or not values.keys() >= set(numbers):
        raise UsageError(
            f"an event of kind {found} has the fields {', '.join(known)}, found "
            f"{', '.join(sorted(values)) or 'none'}; was it written by a newer dphh?"
        )
    return kind(**values)  # it checks its own values


def _check_number(kind: str, name: str, value: object) -> None:
    lowest, highest, lowest_allowed = _RANGES[name]
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not (math.isfinite(value) and lowest <= value <= highest)
        or (value == lowest and not lowest_allowed)
    ):
        least = f"{'at least' if lowest_allowed else 'above'} {lowest:g}"
        most = "finite" if math.isinf(highest) else f"at most {highest:g}"
        raise UsageError(
            f"{name} of an event of kind {kind} must be a number, {least} and {most}, "
            f"found {value!r}; record the step as it was run."
        )
