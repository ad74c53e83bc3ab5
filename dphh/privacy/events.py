"""What a run did to privacy, step by step: plain records, kept apart from how they are priced."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from dphh.errors import UsageError

Json = dict[str, str | float]


@dataclass(frozen=True)
class GaussianEvent:
    """One release of L2 sensitivity 1 under Gaussian noise of standard deviation sigma."""

    kind: ClassVar[str] = "gaussian"
    sigma: float
    note: str = ""

    def __post_init__(self) -> None:
        _check(self, "sigma", lowest=0.0, highest=math.inf, lowest_allowed=False)

    def to_json(self) -> Json:
        return {"kind": self.kind, "sigma": float(self.sigma), "note": self.note}


@dataclass(frozen=True)
class DeltaEvent:
    """A (0, delta)-DP step, such as a threshold that hides a user's new items."""

    kind: ClassVar[str] = "delta"
    delta: float
    note: str = ""

    def __post_init__(self) -> None:
        _check(self, "delta", lowest=0.0, highest=1.0)

    def to_json(self) -> Json:
        return {"kind": self.kind, "delta": float(self.delta), "note": self.note}


@dataclass(frozen=True)
class SetUnionEvent:
    """A Gaussian release of L2 sensitivity 1 with a threshold that hides a user's new items.

    Either costs less where the other costs more: of a user's kept items let the share x be new.
    They pass with probability x delta at most, and the others move by sqrt(1 - x) in L2, under
    noise of standard deviation sigma. The share is the user's own: it must not follow from
    earlier releases (docs/items.md).
    """

    kind: ClassVar[str] = "set union"
    sigma: float
    delta: float
    note: str = ""

    def __post_init__(self) -> None:
        _check(self, "sigma", lowest=0.0, highest=math.inf, lowest_allowed=False)
        _check(self, "delta", lowest=0.0, highest=1.0)

    def to_json(self) -> Json:
        return {
            "kind": self.kind,
            "sigma": float(self.sigma),
            "delta": float(self.delta),
            "note": self.note,
        }


@dataclass(frozen=True)
class _BoundedEvent:
    """A step of which an epsilon and a delta are known, and nothing more."""

    kind: ClassVar[str]
    epsilon: float
    delta: float
    note: str = ""

    def __post_init__(self) -> None:
        _check(self, "epsilon", lowest=0.0, highest=math.inf)
        _check(self, "delta", lowest=0.0, highest=1.0)

    def to_json(self) -> Json:
        return {
            "kind": self.kind,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "note": self.note,
        }


class ApproximateEvent(_BoundedEvent):
    """Any other (epsilon, delta)-DP step, in both directions."""

    kind = "approximate"


class OneDirectionEvent(_BoundedEvent):
    """A step that is known to be (epsilon, delta)-DP in one direction alone.

    Such bounds add up and no better: the step may have the loss epsilon for certain, where one
    that keeps both directions has it no more often than randomised response.
    """

    kind = "one direction"


@dataclass(frozen=True)
class LocalEvent:
    """A user's own message, locally randomised: what it tells whoever receives it, of all of it.

    It is recorded beside what is published of the messages and costs nothing of a budget, which is
    for what is published.
    """

    kind: ClassVar[str] = "local"
    epsilon: float
    note: str = ""

    def __post_init__(self) -> None:
        _check(self, "epsilon", lowest=0.0, highest=math.inf)

    def to_json(self) -> Json:
        return {"kind": self.kind, "epsilon": float(self.epsilon), "note": self.note}


Event = (
    GaussianEvent | DeltaEvent | SetUnionEvent | ApproximateEvent | OneDirectionEvent | LocalEvent
)

_KINDS: dict[str, type[Event]] = {
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


def event_from_json(record: Mapping[str, object]) -> Event:
    """The event that `to_json` wrote down."""
    found = record.get("kind")
    kind = _KINDS.get(found) if isinstance(found, str) else None
    if kind is None:
        raise UsageError(
            f"an event's kind must be one of {', '.join(_KINDS)}, found {found!r}; "
            "was it written by a newer dphh?"
        )
    values = {name: value for name, value in record.items() if name != "kind"}
    known = [field.name for field in fields(kind)]
    # An unknown field may be one that a newer version prices; passing over it could undercharge.
    unknown = sorted(set(values) - set(known))
    missing = [name for name in known if name not in values and name != "note"]
    if unknown or missing:
        raise UsageError(
            f"an event of kind {found} has the fields {', '.join(known)}, found "
            f"{', '.join(sorted(values)) or 'none'}; was it written by a newer dphh?"
        )
    return kind(**values)  # type: ignore[arg-type] # each kind checks its own values


def _check(
    event: Event | _BoundedEvent,
    name: str,
    *,
    lowest: float,
    highest: float,
    lowest_allowed: bool = True,
) -> None:
    value = getattr(event, name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and lowest <= value <= highest) or (
        value == lowest and not lowest_allowed
    ):
        least = f"{'at least' if lowest_allowed else 'above'} {lowest:g}"
        most = "finite" if math.isinf(highest) else f"at most {highest:g}"
        raise UsageError(
            f"{name} of an event of kind {event.kind} must be a number, {least} and {most}, "
            f"found {value!r}; record the step as it was run."
        )
    if not isinstance(event.note, str):
        raise UsageError(
            f"note of an event of kind {event.kind} must be text, "
            f"found {type(event.note).__name__}; leave it out or quote it."
        )
