"""A first release that chooses between a set union and rounds: against an attacker who lets the
worst of both follow from each of its outcomes, integrated by quadrature."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dphh import items
from dphh.mechanisms.set_union.levels import ChoiceLevel, OneRoundAfterChoice, SetUnionLevel
from dphh.privacy.accounting import compose
from dphh.privacy.events import (
    ChosenUnionEvent,
    DeltaEvent,
    EpsilonDeltaEvent,
    Event,
    GaussianEvent,
)
from dphh.privacy.set_union import new_item_delta
from dphh.udfs.noise.table import rounded_gaussian
from tests.draws import curve


def attacked(epsilon: float, event: ChosenUnionEvent, more: float = 0.0) -> float:
    """The largest delta of who lets the way, and the share of new items, follow from the first
    release, where a Gaussian of mu `more` comes last."""
    first, shares = 1 / event.before, np.linspace(0, 1, 33)

    new = np.append(shares * event.delta, event.rounds_delta)
    mu = np.hypot(np.append(np.sqrt(1 - shares) / event.sigma, 1 / event.rounds_sigma), more)

    def at(normal: float) -> float:
        left = epsilon - first * normal - first**2 / 2
        return float(norm.pdf(normal) * (new + (1 - new) * curve(left, mu)).max())

    return float(quad(at, -9, 9, limit=400, epsrel=1e-6)[0])


EVENTS = [
    (1.0, ChosenUnionEvent(224.0, 3.74, 9.1e-6, 3.885, 4.9e-6)),
    (1.0, ChosenUnionEvent(9.0, 4.2, 5e-6, 4.3, 3e-6)),
    (3.0, ChosenUnionEvent(77.0, 1.29, 4e-5, 1.34, 2.2e-5)),
    (0.3, ChosenUnionEvent(12.0, 20.0, 1e-3, 6.0, 1e-4)),
]


@pytest.mark.parametrize(("epsilon", "event"), EVENTS)
@pytest.mark.parametrize("more", [0.0, 0.2])
def test_no_attacker_gets_more_and_the_bound_is_close(epsilon, event, more):
    last = [GaussianEvent(1 / more)] if more else []
    bound, reached = compose([event, *last]).delta(epsilon), attacked(epsilon, event, more)
    assert reached <= bound <= 1.06 * reached


@pytest.mark.parametrize(
    "events",
    [lambda event: [GaussianEvent(9.0), event], lambda event: [event, EpsilonDeltaEvent(0.1, 0.0)]],
    ids=["asked for later", "beside an epsilon of its own"],
)
def test_elsewhere_it_pays_for_all_of_both(events):
    event = EVENTS[0][1]
    cost = event.cost
    assert cost.sigma is not None
    assert cost.delta is not None
    apart: list[Event] = []
    for each in events(event):  # type: ignore[operator]
        apart += [GaussianEvent(cost.sigma), DeltaEvent(cost.delta)] if each is event else [each]
    assert compose(events(event)) == compose(apart)  # type: ignore[operator]
    assert cost.sigma <= 1 / math.hypot(1 / event.before, 1 / event.sigma)


@pytest.mark.parametrize(
    ("epsilon", "event"), [*EVENTS, (1.0, ChosenUnionEvent(9.0, 4.3, 3e-6, 4.2, 5e-6))]
)
def test_asked_for_later_it_costs_no_less_than_either_way(epsilon, event):
    """An earlier release can make sure of the dearer one."""
    ways = ((event.sigma, event.delta), (event.rounds_sigma, event.rounds_delta))
    bound = compose([GaussianEvent(9.0), event]).delta(epsilon)
    for sigma, new in ways:
        mu = math.hypot(1 / 9.0, 1 / event.before, 1 / sigma)
        assert new + (1 - new) * float(curve(epsilon, mu)) <= bound


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (3, math.exp(-10)), (0.05, 1e-7)])
@pytest.mark.parametrize("counts", [None, 0.3])
def test_the_price_of_auto_is_what_its_levels_cost(epsilon, delta, counts):
    plan = items(epsilon=epsilon, delta=delta, method="auto", counts=counts)
    first, alone, *rounds = plan.levels
    assert isinstance(first, ChoiceLevel)
    assert isinstance(alone, OneRoundAfterChoice)
    event = plan.events[0]
    assert isinstance(event, ChosenUnionEvent)
    assert event.before == first.sigma
    assert event.sigma == alone.sigma
    assert event.rounds_sigma == pytest.approx(
        math.fsum(level.sigma**-2 for level in rounds) ** -0.5, rel=1e-12
    )
    noise = rounded_gaussian(alone.sigma_grid)
    own = new_item_delta(noise, alone.grid_bits, alone.max_items, alone.threshold_grid)
    assert own == event.delta
    assert 0.98 * delta < compose(plan.events).delta(epsilon) <= delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise", "share"),
    [(1, 1e-5, 160, None), (0.5, 1e-6, 160, None), (3, 1e-5, None, 3e-4), (0.1, 1e-7, None, 3e-3)],
)
def test_the_first_round_sees_what_a_thousand_users_share_if_that_is_cheap(
    epsilon, delta, noise, share
):
    """With less, "auto" took one round at epsilon 0.5 on tweets, and found 363 words of 502."""
    first, alone, *_ = items(epsilon=epsilon, delta=delta, counts=0).levels
    if noise:
        assert first.sigma == pytest.approx(noise, rel=1e-4)
        assert 3e-4 < (alone.sigma / first.sigma) ** 2 < 3e-3
    else:
        assert (alone.sigma / first.sigma) ** 2 == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize(("epsilon", "most"), [(0.5, 0.008), (1, 0.003), (2, 0.0015), (4, 0.0015)])
def test_the_choice_costs_either_way_little(epsilon, most):
    """How far its thresholds are above those of the methods that it chooses from."""

    def last(method: str) -> list[SetUnionLevel]:
        plan = items(epsilon=epsilon, delta=1e-6, max_items=10, counts=0, method=method)
        return [level for level in plan.levels if isinstance(level, SetUnionLevel)]

    _, alone, *rounds = last("auto")
    ways = (alone, last("gaussian")[0]), (rounds[-1], last("adaptive")[-1])
    for chosen, method in ways:
        assert 1 < chosen.threshold / method.threshold <= 1 + most
