"""The privacy events of a run, step by step: the kinds of events, and what each costs.

Each kind is a class here that defines its own cost. The accountant (`dphh.privacy.accounting`),
caps (`dphh.ledger.budget`), the ledger's JSON and all other code call `cost_of`, which refuses
events of any other kind, so that an unknown event is never free.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

from dphh.errors import UsageError

EventJson = dict[str, str | float]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The amounts that an event costs; an amount that it does not have is None."""

    #: The standard deviation of the noise of a Gaussian release of L2 sensitivity 1.
    sigma: float | None = None
    #: The probability of an infinite loss.
    delta: float | None = None
    #: An epsilon that holds in both directions: the loss is no worse than randomised response's.
    response_epsilon: float | None = None
    #: An epsilon for which no budget is charged, because another event charges for what is
    #: published.
    uncharged_epsilon: float | None = None

    def __post_init__(self) -> None:
        if not self.is_charged and self.uncharged_epsilon is None:
            raise UsageError(
                "cost: found no amount; give sigma or delta, or uncharged_epsilon for a free event"
            )

    @property
    def is_charged(self) -> bool:
        """Whether a budget is charged for the event."""
        amounts = (self.sigma, self.delta, self.response_epsilon)
        return any(amount is not None for amount in amounts)


#: For each number that an event may have, by name: the lowest value, the highest value, and whether
#: the lowest value itself is allowed.
_RANGES_OF_NUMBERS = {
    "sigma": (0.0, math.inf, False),
    "delta": (0.0, 1.0, True),
    "epsilon": (0.0, math.inf, True),
    "before": (0.0, math.inf, False),
    "rounds_sigma": (0.0, math.inf, False),
    "rounds_delta": (0.0, 1.0, True),
}


@dataclass(frozen=True)
class Event(ABC):
    """One step that costs privacy, in numbers, which `_RANGES_OF_NUMBERS` lists."""

    kind: ClassVar[str]
    #: What the step is for, in words for people.
    note: str = field(default="", kw_only=True, compare=False)
    #: Whether the event releases how many users hold the items found; not in the event's JSON.
    of_counts: bool = field(default=False, kw_only=True, compare=False)

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """All that the event costs. Callers use `cost_of`."""

    def __post_init__(self) -> None:
        for name in _names_of_numbers(type(self)):
            _check_number(self.kind, name, getattr(self, name))

    def to_json(self, *, with_note: bool = True) -> EventJson:
        numbers = {name: float(getattr(self, name)) for name in _names_of_numbers(type(self))}
        note = {"note": self.note} if with_note else {}
        return {"kind": self.kind, **numbers, **note}


def _names_of_numbers(kind: type[Event]) -> list[str]:
    return [each.name for each in fields(kind) if each.name not in ("note", "of_counts")]


@dataclass(frozen=True)
class GaussianEvent(Event):
    """One release of L2 sensitivity 1 under Gaussian noise of standard deviation sigma."""

    kind = "gaussian"
    sigma: float

    @cached_property
    def cost(self) -> Cost:
        return Cost(sigma=self.sigma)


@dataclass(frozen=True)
class DeltaEvent(Event):
    """A (0, delta)-DP step, such as a threshold for a user's new items."""

    kind = "delta"
    delta: float

    @cached_property
    def cost(self) -> Cost:
        return Cost(delta=self.delta)


@dataclass(frozen=True)
class SetUnionEvent(Event):
    """A Gaussian release of L2 sensitivity 1 with a threshold for a user's new items.

    The more one part costs, the less the other does. Let the share x of a user's kept items be new:
    they pass the threshold with probability at most x delta, and the other items change by
    sqrt(1 - x) in L2, under noise of standard deviation sigma. The share must depend on the user's
    data alone, not on earlier releases (docs/items.md).
    """

    kind = "set union"
    sigma: float
    delta: float

    @cached_property
    def cost(self) -> Cost:
        return Cost(sigma=self.sigma, delta=self.delta)  # no user pays both in full


@dataclass(frozen=True)
class ChosenUnionEvent(Event):
    """A Gaussian release with noise of sigma `before`, whose outcome chooses what runs then: a set
    union (sigma, delta), or rounds whose Gaussians and thresholds cost rounds_sigma, rounds_delta.

    The first release may decide both which of the two runs and a user's share of new items, so the
    cost is a mean of the largest costs (docs/items.md, method "auto").
    """

    kind = "chosen set union"
    before: float
    sigma: float
    delta: float
    rounds_sigma: float
    rounds_delta: float

    @cached_property
    def cost(self) -> Cost:
        least = min(self.sigma, self.rounds_sigma)
        # Rounded down, so that it bounds the cost of either choice.
        sigma = (1 - 2.0**-48) / math.hypot(1 / self.before, 1 / least)
        return Cost(sigma=sigma, delta=max(self.delta, self.rounds_delta))


@dataclass(frozen=True)
class EpsilonDeltaEvent(Event):
    """Any other (epsilon, delta)-DP step, in both directions."""

    kind = "approximate"
    epsilon: float
    delta: float

    @cached_property
    def cost(self) -> Cost:
        return Cost(response_epsilon=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class LocalEvent(Event):
    """All locally randomised messages of one user. `epsilon` holds against those who receive them.

    A run records it in addition to the event of what is published. No budget is charged for it,
    since budgets are for what is published.
    """

    kind = "local"
    epsilon: float

    @cached_property
    def cost(self) -> Cost:
        return Cost(uncharged_epsilon=self.epsilon)


#: The class of each kind of event. Any other class is refused, also one derived from these.
EVENT_KINDS: dict[str, type[Event]] = {
    kind.kind: kind
    for kind in (
        GaussianEvent,
        DeltaEvent,
        SetUnionEvent,
        ChosenUnionEvent,
        EpsilonDeltaEvent,
        LocalEvent,
    )
}


def cost_of(event: Event) -> Cost:
    """The cost of an event; an error if its class is not one of EVENT_KINDS. All code that charges,
    compares, stores or reads events calls this."""
    kind = type(event)
    if kind not in EVENT_KINDS.values():
        raise UsageError(
            f"an event must be of one of the kinds {', '.join(EVENT_KINDS)}, found a "
            f"{kind.__name__}, whose cost is unknown; give it a class in dphh/privacy/events.py"
        )
    return event.cost


def costs_of(events: Iterable[Event]) -> list[Cost]:
    return [cost_of(event) for event in events]


def events_to_json(events: Collection[Event], *, with_notes: bool = True) -> list[EventJson]:
    """The events as JSON, as ledgers, manifests and plans store them; or without notes, as requests
    are compared. An error if any event is of an unknown kind."""
    costs_of(events)
    return [event.to_json(with_note=with_notes) for event in events]


def events_from_json(records: Iterable[Mapping[str, object]]) -> tuple[Event, ...]:
    return tuple(event_from_json(record) for record in records)


def event_from_json(record: Mapping[str, object]) -> Event:
    """The event that `to_json` wrote."""
    found = record.get("kind")
    kind = EVENT_KINDS.get(found) if isinstance(found, str) else None
    if kind is None:
        raise UsageError(
            f"an event's kind must be one of {', '.join(EVENT_KINDS)}, found {found!r}; "
            "was it written by a newer dphh?"
        )
    values: dict[str, Any] = {name: value for name, value in record.items() if name != "kind"}
    known = {*_names_of_numbers(kind), "note"}
    # A newer version may charge for an unknown field; ignoring it could undercharge.
    if {*values, "note"} != known:
        raise UsageError(
            f"an event of kind {found} has the fields {', '.join(sorted(known))}, found "
            f"{', '.join(sorted(values)) or 'none'}; was it written by a newer dphh?"
        )
    return kind(**values)  # the event's class checks the values


def _check_number(kind: str, name: str, value: object) -> None:
    lowest, highest, lowest_allowed = _RANGES_OF_NUMBERS[name]
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
            f"found {value!r}. Give the value that the run used."
        )
