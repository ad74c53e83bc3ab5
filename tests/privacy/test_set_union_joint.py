"""Set union priced as one: against the enumerated laws of what a neighbour sees on small grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, Event, GaussianEvent, SetUnionEvent
from dphh.privacy.gaussian import gaussian_delta, gaussian_sigma
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.set_union import (
    GAUSSIAN_SHARE,
    MOST_DELTA,
    NEW_ITEMS_SHARE,
    delta_shares,
    new_item_delta,
    new_item_threshold,
)


def laws(sigma: int, weight: int, others: int) -> tuple[np.ndarray, np.ndarray]:
    """The noised counts of others' items with the user and without, one cell an outcome.

    The counts stand so high that all are seen: what a threshold hides is less.
    """
    values = np.arange(-7 * sigma - weight, 7 * sigma + weight + 1)

    def one(centre: int) -> np.ndarray:
        above = norm.sf((values - 0.5 - centre) / sigma)
        return np.append(-np.diff(above), above[-1])

    with_user, without = np.ones(1), np.ones(1)
    for _ in range(others):
        with_user = np.multiply.outer(with_user, one(weight)).ravel()
        without = np.multiply.outer(without, one(0)).ravel()
    return with_user, without


def brute(epsilon: float, sigma: int, bits: int, threshold: int, max_items: int) -> float:
    """The largest hockey-stick divergence, both ways, over users of t items of which j are new."""
    worst = 0.0
    for held in range(1, max_items + 1):
        weight = math.isqrt(4**bits // held)
        stays = norm.cdf((threshold - weight - 0.5) / sigma)
        for new in range(held + 1):
            with_user, without = laws(sigma, weight, held - new)
            kept = stays**new
            adding = 1 - kept + np.maximum(kept * with_user - np.exp(epsilon) * without, 0).sum()
            removing = np.maximum(without - np.exp(epsilon) * kept * with_user, 0).sum()
            worst = max(worst, adding, removing)
    return float(worst)


SMALL = [
    (1.0, 0.02, 2, 3),
    (3.0, 0.01, 1, 3),
    (2.0, 1e-3, 3, 2),
    (1.0, 1e-4, 2, 2),
    (5.0, 0.3, 1, 2),
]


@pytest.mark.parametrize(("epsilon", "delta", "bits", "max_items"), SMALL)
def test_no_neighbour_passes_delta_and_a_threshold_one_lower_lets_one(
    epsilon: float, delta: float, bits: int, max_items: int
) -> None:
    curve, new = delta_shares(epsilon, delta)
    sigma = math.ceil(gaussian_sigma(epsilon, curve * delta) * 2**bits)
    noise = rounded_gaussian(sigma)
    threshold = new_item_threshold(noise, bits, max_items, new * delta)
    claimed = SetUnionEvent(
        sigma / 2**bits, new_item_delta(noise, bits, max_items, threshold), "set union"
    )
    assert brute(epsilon, sigma, bits, threshold, max_items) <= compose([claimed]).delta(epsilon)
    assert compose([claimed]).delta(epsilon) <= delta
    assert brute(epsilon, sigma, bits, threshold - 1, max_items) > delta


@pytest.mark.parametrize("rest", [[], [GaussianEvent(2.0)], [DeltaEvent(0.01), GaussianEvent(3.0)]])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_bound_covers_every_share_of_new_items(epsilon: float, rest: list[Event]) -> None:
    sigma, delta = 1.5, 0.02
    bound = compose([SetUnionEvent(sigma, delta), *rest]).delta(epsilon)
    others = compose(rest)
    for share in np.linspace(0, 1, 41):
        lost = 1 - (1 - share * delta) * (1 - others.infinite_loss)
        mu = math.sqrt((1 - share) / sigma**2 + others.sigma**-2)
        for sign in (1, -1):
            loss = sign * math.log1p(-lost)
            curve = gaussian_delta(epsilon - loss, 1 / mu) if mu else max(0, -math.expm1(epsilon))
            seen = lost + (1 - lost) * curve if sign == 1 else curve
            assert seen <= bound * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-8, 1e-4, MOST_DELTA / 4, MOST_DELTA])
def test_a_users_share_of_new_items_never_costs_more_than_its_ends(
    epsilon: float, delta: float
) -> None:
    delta *= min(epsilon, 10.0)
    curve, new = delta_shares(epsilon, delta)
    assert (curve, new) == (GAUSSIAN_SHARE, NEW_ITEMS_SHARE)
    event = SetUnionEvent(gaussian_sigma(epsilon, curve * delta), new * delta)
    assert compose([event]).delta(epsilon) <= delta * 0.99


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.01), (0.1, 0.4), (1.0, 0.9)])
def test_where_delta_is_no_small_part_of_epsilon_each_gets_half(
    epsilon: float, delta: float
) -> None:
    assert delta_shares(epsilon, delta) == (0.5, 0.5)


def test_new_items_and_others_do_not_both_cost_in_full() -> None:
    sigma = gaussian_sigma(1.0, 0.98e-6)
    joint = compose([SetUnionEvent(sigma, 0.95e-6)]).delta(1.0)
    apart = compose([GaussianEvent(sigma), DeltaEvent(0.95e-6)]).delta(1.0)
    assert joint < 1e-6
    assert apart > 1.9e-6


@pytest.mark.parametrize(
    "before", [GaussianEvent(9.0), DeltaEvent(1e-9), EpsilonDeltaEvent(0.1, 0.0)]
)
def test_a_set_union_that_was_asked_for_later_pays_for_both(before: Event) -> None:
    together = compose([before, SetUnionEvent(4.0, 1e-6)])
    assert together == compose([before, GaussianEvent(4.0), DeltaEvent(1e-6)])


def test_beside_steps_of_an_epsilon_of_their_own_it_pays_for_both() -> None:
    together = compose([SetUnionEvent(4.0, 1e-6), EpsilonDeltaEvent(0.1, 0.0)])
    assert together == compose([GaussianEvent(4.0), DeltaEvent(1e-6), EpsilonDeltaEvent(0.1, 0.0)])


#: Computed for issue 13 by another prototype, over real thresholds: (epsilon, delta, rho).
LOWEST = [(1.0, 1e-5, 19.50), (4.0, 1e-7, 7.89), (1.0, 1e-8, 32.55)]


@pytest.mark.parametrize(("epsilon", "delta", "lowest"), LOWEST)
def test_thresholds_are_within_half_a_percent_of_the_lowest(
    epsilon: float, delta: float, lowest: float
) -> None:
    sigma = math.ceil(gaussian_sigma(epsilon, GAUSSIAN_SHARE * delta) * 1024)
    new = NEW_ITEMS_SHARE * delta
    threshold = new_item_threshold(rounded_gaussian(sigma), 10, 100, new) / 1024
    assert lowest * 0.999 < threshold < lowest * 1.005


def test_an_attacker_who_chooses_later_shares_is_why_only_the_first_is_priced_so() -> None:
    """Two set unions; whether the second one's items are new follows the first one's outcome."""
    epsilon, sigma, delta = 1.0, 4.0, 2e-5
    mu = 1 / sigma
    answers = np.linspace(-14, 14, 400_001)
    losses = mu * answers + mu**2 / 2
    density = norm.pdf(answers)
    left = epsilon - losses
    as_noise = norm.sf(left / mu - mu / 2) - np.exp(left) * norm.sf(left / mu + mu / 2)
    chosen = np.trapezoid(density * np.maximum(as_noise, delta), answers)
    fixed = max(
        compose([GaussianEvent(sigma), *second]).delta(epsilon)
        for second in ([GaussianEvent(sigma)], [DeltaEvent(delta)])
    )
    honest = compose([SetUnionEvent(sigma, delta), SetUnionEvent(sigma, delta)]).delta(epsilon)
    assert fixed < chosen < honest


def test_shares_are_covered_without_a_gap() -> None:
    by_share = compose([SetUnionEvent(1.0, 0.5)]).by_share
    assert by_share[0].sigma == 1.0
    assert by_share[0].infinite_loss == 0.0
    assert by_share[-1].infinite_loss >= 0.5
    for lower, upper in itertools.pairwise(by_share):
        # What the lower interval ends at in new items is where the upper one begins for the rest.
        began = 1 - (1 / upper.sigma) ** 2
        assert began == pytest.approx(2 * lower.infinite_loss, abs=1e-12)
