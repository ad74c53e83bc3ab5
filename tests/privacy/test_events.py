"""Events refuse what cannot have happened; one that nobody has priced is refused
wherever events are read, and never costs nothing; dp_accounting comes to what they cost.

Planted: a class that only looks like an event, one derived from a kind that is known, and one that
says its cost but is none of the kinds.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import pytest

import dphh
from dphh.errors import UsageError
from dphh.ledger.budget import (
    Booking,
    Cap,
    amounts_of,
    checked_booking,
    fits,
    left,
    number_that_fit,
    share_used,
)
from dphh.mechanisms.counts.of_found import counts_event_within
from dphh.plan import Plan
from dphh.privacy import events as known_events
from dphh.privacy.accounting import compose
from dphh.privacy.events import (
    Cost,
    Event,
    GaussianEvent,
    LocalEvent,
    SetUnionEvent,
    cost_of,
    events_from_json,
    events_to_json,
)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, True, None])
def test_a_sigma_that_cannot_be_is_refused(sigma):
    with pytest.raises(UsageError, match=r"sigma of an event of kind gaussian .* above 0"):
        GaussianEvent(sigma)


CAP = Cap(1.0, 1e-6, "divergence")
NOISE = GaussianEvent(500.0)


@dataclass(frozen=True)
class LooksLikeOne:
    """Of no class of dphh's, with all that events have."""

    kind = "delta"
    delta: float = 0.0
    note: str = ""
    cost = Cost(delta=0.0)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "delta": self.delta, "note": self.note}


@dataclass(frozen=True)
class Twice(GaussianEvent):
    """Two releases of this noise, which would be priced as one."""


@dataclass(frozen=True)
class Laplace(Event):
    """A kind of its own, not yet among the kinds."""

    kind = "laplace"
    epsilon: float

    @cached_property
    def cost(self) -> Cost:
        return Cost(response_epsilon=self.epsilon)


UNKNOWN: tuple[Any, ...] = (LooksLikeOne(), Twice(500.0), Laplace(0.1))
#: The same, where it is read back: of a newer dphh, say.
WRITTEN = '[{"kind": "laplace", "epsilon": 0.1, "note": ""}]'


@pytest.fixture(params=UNKNOWN, ids=lambda event: type(event).__name__)
def unknown(request):
    return request.param


def planted(events: Sequence[Any]) -> Booking:
    """A booking past its own check."""
    booking = Booking((NOISE,), 0.1, 1e-9)
    object.__setattr__(booking, "events", tuple(events))
    return booking


def planted_plan(unknown: Any) -> Plan:
    """A plan whose price is past its own check."""
    plan = dphh.items(epsilon=0.1, delta=1e-7, max_items=2)
    object.__setattr__(plan.price, "events", (*plan.price.events, unknown))
    return plan


ONE_BY_ONE: dict[str, Callable[[Any], object]] = {
    "its cost": cost_of,
    "composed": lambda event: compose([SetUnionEvent(9.0, 1e-9), LocalEvent(1), event]),
    "noise beside it": lambda event: counts_event_within([event], 1.0, 1e-6),
    "amounts_of": lambda event: amounts_of([planted([NOISE, event])], 2.0),
    "written": lambda event: events_to_json([event]),
    "read": lambda event: events_from_json([NOISE.to_json(), *json.loads(WRITTEN)]),
    "a price": lambda event: replace(planted_plan(event).price, verb="items"),
    "a price as JSON": lambda event: planted_plan(event).to_json(),
    "booked": lambda event: Booking((NOISE, event), 0.1, 1e-9),
    "a booking checked": lambda event: checked_booking([NOISE, event], 0.1, 1e-9),
    "whether it fits": lambda event: fits([planted([NOISE]), planted([event])], CAP),
    "left": lambda event: left([planted([NOISE]), planted([event])], CAP),
    "its part of a cap": lambda event: share_used([planted([event])], CAP),
    "how often it fits": lambda event: number_that_fit([], CAP, planted([event])),
}


@pytest.mark.parametrize("what", ONE_BY_ONE)
def test_what_nobody_has_priced_is_refused(what, unknown):
    with pytest.raises(UsageError, match="kind"):
        ONE_BY_ONE[what](unknown)


def test_a_plan_of_a_newer_dphh_is_refused():
    found = dphh.items(epsilon=1.0, delta=1e-7).to_json()
    found["events"] += json.loads(WRITTEN)
    with pytest.raises(UsageError, match="written by another version"):
        dphh.plan_from_json(found)


#: Each amount that a cost can have, and what of it is worth seeing.
AMOUNTS = {"sigma": 2.0, "delta": 1e-3, "response_epsilon": 1.0}


@pytest.mark.parametrize(
    "name", sorted({field.name for field in fields(Cost)} - {"uncharged_epsilon"})
)
def test_every_amount_of_a_cost_is_charged_by_both_accountants(name, monkeypatch):
    """Whoever adds an amount to `Cost` has to say here what it is, and to charge it in both."""
    charged = Cost(**{name: AMOUNTS[name]})

    @dataclass(frozen=True)
    class Planted(Event):
        kind = "planted"

        @property
        def cost(self) -> Cost:
            return charged

    monkeypatch.setitem(known_events.EVENT_KINDS, "planted", Planted)
    assert compose([Planted()]).delta(0.5) > compose([]).delta(0.5)
    taken, nothing = amounts_of([planted([Planted()])], 2.0), amounts_of([], 2.0)
    assert taken.loss > nothing.loss or taken.delta > nothing.delta
    booked = checked_booking([Planted()], 50.0, 0.5)
    assert booked.events == (Planted(),)  # and no claim in the place of what is free
