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
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation, UnsupportedEventError
from dp_accounting.rdp import RdpAccountant

import dphh
from dphh.errors import UnpricedEventError, UsageError
from dphh.ledger.budget import (
    Booking,
    Cap,
    amounts_of,
    checked_booking,
    fits,
    left,
    number_that_fit,
    proved_epsilon,
    share_used,
)
from dphh.mechanisms.counts.of_found import counts_event_within
from dphh.plan import Plan
from dphh.privacy import events as known_events
from dphh.privacy.accounting import compose
from dphh.privacy.dp_accounting_events import dp_event
from dphh.privacy.events import (
    Cost,
    EpsilonDeltaEvent,
    Event,
    GaussianEvent,
    LocalEvent,
    SetUnionEvent,
    cost_of,
    events_from_json,
    events_to_json,
)
from dphh.privacy.gaussian import gaussian_delta


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
    note: str = ""

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
    "proved_epsilon": lambda event: proved_epsilon([planted([event])], CAP),
    "left": lambda event: left([planted([NOISE]), planted([event])], CAP),
    "its part of a cap": lambda event: share_used([planted([event])], CAP),
    "how often it fits": lambda event: number_that_fit([], CAP, planted([event])),
}


@pytest.mark.parametrize("what", ONE_BY_ONE)
def test_what_nobody_has_priced_is_refused(what, unknown):
    with pytest.raises(UnpricedEventError, match="kind"):
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
        note: str = ""

        @property
        def cost(self) -> Cost:
            return charged

    monkeypatch.setitem(known_events.EVENT_KINDS, "planted", Planted)
    assert compose([Planted()]).delta(0.5) > compose([]).delta(0.5)
    taken, nothing = amounts_of([planted([Planted()])], 2.0), amounts_of([], 2.0)
    assert taken.loss > nothing.loss or taken.delta > nothing.delta
    booked = checked_booking([Planted()], 50.0, 0.5)
    assert booked.events == (Planted(),)  # and no claim in the place of what is free


ASK = {"epsilon": 1.0, "delta": 1e-6}


def delta_by_dp_accounting(
    plan: Plan,
    *others: Any,
    epsilon: float = 1.0,
    relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
) -> float:
    """What a plan comes to, with other events: by losses, whose interval is rounded up."""
    event, delta = plan.dp_event()
    accountant = PLDAccountant(relation, 1e-3)
    for each in (event, *others):
        accountant.compose(each)
    return delta + (1 - delta) * float(accountant.get_delta(epsilon))


@pytest.mark.parametrize(
    "plan",
    [
        dphh.ngrams(max_n=3, **ASK),
        dphh.ngrams(max_n=2, method="dpne", **ASK),
        dphh.items(method="sips", **ASK),
        dphh.counts(of=[["a"]], **ASK),
        dphh.trie(max_length=3, **ASK),
    ],
    ids=lambda plan: f"{plan.verb} {plan.method}",
)
def test_dp_accounting_comes_to_the_plans_delta(plan):
    assert delta_by_dp_accounting(plan) == pytest.approx(1e-6, rel=3e-3)


@pytest.mark.parametrize("epsilon", [60.0, 100.0])
def test_it_comes_to_no_less_where_epsilon_is_large(epsilon):
    """A stand-in for an infinite loss, with a loss of 128 at most times, came to less."""
    plan = dphh.items(method="sips", epsilon=epsilon, delta=1e-3)
    exact = compose(plan.events).delta(epsilon)
    found = delta_by_dp_accounting(plan, epsilon=epsilon)
    assert exact * (1 - 1e-9) <= found <= 1.01e-3


@pytest.mark.parametrize(
    "plan",
    [dphh.ngrams(max_n=3, **ASK), dphh.items(method="sips", **ASK), dphh.counts(of=[["a"]], **ASK)],
    ids=lambda plan: plan.verb,
)
def test_its_accountant_of_divergences_comes_near_the_plan_too(plan):
    """By Renyi divergences the epsilon of a Gaussian is known to some percent; it was 128."""
    event, delta = plan.dp_event()
    accountant = RdpAccountant()
    accountant.compose(event)
    assert 1 < accountant.get_epsilon(1e-6 - delta) < 1.1


def test_equal_steps_are_all_composed():
    events = [EpsilonDeltaEvent(0.5, 1e-3)] * 4
    event, delta = dp_event(events)
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(event)
    whole = delta + (1 - delta) * accountant.get_delta(1.0)
    assert whole == pytest.approx(compose(events).delta(1.0), rel=0.01)


def test_what_it_cannot_say_by_divergences_it_refuses():
    event, _ = dphh.trie(max_length=3, **ASK).dp_event()
    with pytest.raises(UnsupportedEventError):
        RdpAccountant().compose(event)


def test_reports_are_for_neighbours_of_whom_one_holds_something_else():
    plan = dphh.ldp_trie(
        user_epsilon=2.0,
        delta=1e-6,
        users_per_level=10_000,
        contributions=2,
        max_length=2,
        keep=4,
        character_set=["a", "b", "c"],
        pad=True,
    )
    replaced = NeighboringRelation.REPLACE_ONE
    of_user = plan.privacy.user_epsilon
    assert of_user is not None
    found = [
        delta_by_dp_accounting(plan, epsilon=of_user + x, relation=replaced) for x in (-1, 0.01)
    ]
    response = 1 / (1 + math.exp(-of_user)) - math.exp(of_user - 1) / (1 + math.exp(of_user))
    assert found == pytest.approx([response, 1e-6], rel=0.01)
    with pytest.raises(UnsupportedEventError, match="REPLACE_ONE"):
        delta_by_dp_accounting(plan)  # whose neighbours are a user more or less


@pytest.mark.parametrize("method", ["auto", "gaussian"])
def test_of_joint_events_it_has_a_bound(method):
    """No user pays a set union's noise and its threshold in full; their sum is a bound."""
    found = delta_by_dp_accounting(dphh.items(method=method, **ASK))
    assert 1e-6 < found < 2.5e-6


def test_it_composes_with_what_other_systems_spend():
    plan = dphh.counts(of=[["a"]], **ASK)
    (sigma,) = (cost.sigma for cost in (event.cost for event in plan.events) if cost.sigma)
    from dp_accounting import GaussianDpEvent

    _, delta = plan.dp_event()
    both = delta_by_dp_accounting(plan, GaussianDpEvent(sigma), epsilon=2.0)
    assert both == pytest.approx(delta + gaussian_delta(2.0, sigma / 2**0.5), rel=1e-2)
