"""What other accountants are told of a plan: never less than the plan costs, and hardly more."""

import math
from functools import cache, partial

import opendp.prelude as dp
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from dp_accounting.privacy_accountant import NeighboringRelation, UnsupportedEventError
from dp_accounting.rdp import RdpAccountant

import dphh
from dphh.exports import Exports
from dphh.price import Privacy
from dphh.privacy.accounting import compose
from dphh.privacy.events import EpsilonDeltaEvent
from dphh.privacy.gaussian import gaussian_delta

ASK = {"epsilon": 1.0, "delta": 1e-6}
GAUSSIAN = {
    "ngrams": partial(dphh.ngrams, max_n=3, **ASK),
    "dpne": partial(dphh.ngrams, max_n=2, method="dpne", **ASK),
    "sips": partial(dphh.items, method="sips", **ASK),
    "counts": partial(dphh.counts, of=[["a"]], **ASK),
}
EVERY = {
    **GAUSSIAN,
    "gaussian": partial(dphh.items, method="gaussian", counts=0, **ASK),
    "auto": partial(dphh.items, method="auto", **ASK),
    "trie": partial(dphh.trie, max_length=3, **ASK),
    "ldp_trie": partial(
        dphh.ldp_trie, user_epsilon=2.0, delta=1e-6, users_per_level=1_000, contributions=2,
        max_length=2, keep=4, character_set=["a", "b", "c"], pad=True,
    ),
}  # fmt: skip


@cache
def plan_of(name):
    return EVERY[name]()


@pytest.mark.parametrize("name", EVERY)
def test_a_loss_distribution_is_the_plan(name):
    plan = plan_of(name)
    losses, own = plan.pld(0.04), compose(plan.events)
    for epsilon in (0.32, 1.0, 1.52, 2.0):  # of the grid
        exact = own.delta(epsilon)
        found = losses.get_delta_for_epsilon(epsilon)
        assert exact * (1 - 1e-9) <= found <= exact * 1.03 + 1e-13, epsilon


def test_it_composes_with_what_other_systems_spend():
    plan = plan_of("counts")
    (sigma,) = (event.cost.sigma for event in plan.events if event.cost.sigma)
    both = plan.pld(0.02).compose(
        from_gaussian_mechanism(sigma, value_discretization_interval=0.02)
    )
    delta = compose(plan.events).infinite_loss
    assert both.get_delta_for_epsilon(2.0) == pytest.approx(
        delta + gaussian_delta(2.0, sigma / 2**0.5), rel=3e-2
    )


@pytest.mark.parametrize("name", EVERY)
def test_opendp_has_the_plans_curve(name):
    plan = plan_of(name)
    profile = plan.privacy_profile()
    epsilon, delta = plan.privacy.booked_epsilon, plan.privacy.delta
    assert profile.delta(epsilon) <= delta
    assert profile.epsilon(delta) == pytest.approx(epsilon, rel=2e-3)
    assert isinstance(profile, dp.PrivacyProfile)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_an_accountant_of_divergences_comes_near_the_plan(name):
    """By Renyi divergences the epsilon of a Gaussian is known to some percent; by a stand-in for
    infinite losses it was 128."""
    event, delta = plan_of(name).dp_event()
    accountant = RdpAccountant()
    accountant.compose(event)
    assert 1 < accountant.get_epsilon(1e-6 - delta) < 1.1


class Told(Exports):
    """Four steps, of neighbours of one user more or less."""

    privacy = Privacy(2.0, 4e-3, "a user", "add or remove one user", "")
    events = (EpsilonDeltaEvent(0.5, 1e-3),) * 4


def delta_by_events(plan, epsilon, relation=NeighboringRelation.ADD_OR_REMOVE_ONE):
    event, delta = plan.dp_event()
    accountant = PLDAccountant(relation, 1e-3)
    accountant.compose(event)
    return delta + (1 - delta) * float(accountant.get_delta(epsilon))


def test_equal_steps_are_all_composed():
    exact = compose(Told.events).delta(1.0)
    assert delta_by_events(Told(), 1.0) == pytest.approx(exact, rel=0.01)


def test_what_it_cannot_say_by_divergences_it_refuses():
    event, _ = plan_of("trie").dp_event()
    with pytest.raises(UnsupportedEventError):
        RdpAccountant().compose(event)


def test_reports_are_for_neighbours_of_whom_one_holds_something_else():
    assert {plan_of(name).privacy.relation for name in EVERY} == {"add or remove", "replace"}
    plan = plan_of("ldp_trie")
    of_user = plan.privacy.user_epsilon
    replaced = NeighboringRelation.REPLACE_ONE
    found = [delta_by_events(plan, of_user + x, replaced) for x in (-1, 0.01)]
    response = 1 / (1 + math.exp(-of_user)) - math.exp(of_user - 1) / (1 + math.exp(of_user))
    assert found == pytest.approx([response, 1e-6], rel=0.01)
    with pytest.raises(UnsupportedEventError, match="REPLACE_ONE"):
        delta_by_events(plan, of_user)  # whose neighbours are a user more or less
