"""A plan's events as dp_accounting's: its accountant comes to what the plan says."""

from __future__ import annotations

from typing import Any

import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation

import dphh
from dphh import UsageError

ASK = {"epsilon": 1.0, "delta": 1e-6}


def delta_by_dp_accounting(*events: Any, epsilon: float = 1.0) -> float:
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-3)
    for event in events:
        accountant.compose(event)
    return float(accountant.get_delta(epsilon))


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
    assert delta_by_dp_accounting(plan.dp_event()) == pytest.approx(1e-6, rel=3e-3)


@pytest.mark.parametrize("method", ["auto", "gaussian"])
def test_of_joint_events_it_has_a_bound(method):
    """No user pays a set union's noise and its threshold in full; their sum is a bound."""
    found = delta_by_dp_accounting(dphh.items(method=method, **ASK).dp_event())
    assert 1e-6 < found < 2.5e-6


def test_it_composes_with_what_other_systems_spend():
    plan = dphh.counts(of=[["a"]], **ASK)
    (sigma,) = (cost.sigma for cost in (event.cost for event in plan.events) if cost.sigma)
    from dp_accounting import GaussianDpEvent

    both = delta_by_dp_accounting(plan.dp_event(), GaussianDpEvent(sigma), epsilon=2.0)
    alone = delta_by_dp_accounting(GaussianDpEvent(sigma / 2**0.5), epsilon=2.0)
    assert both == pytest.approx(alone, rel=1e-2)


def test_what_its_events_cannot_say_is_refused():
    plan = dphh.trie(max_length=3, epsilon=4.0, delta=1e-6, accounting="paper", users=100_000)
    with pytest.raises(UsageError, match="one direction only"):
        plan.dp_event()
