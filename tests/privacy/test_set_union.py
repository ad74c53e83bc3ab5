"""Set union: its integers, against decimals, brute force and many digits; priced as one, against
the enumerated laws of what a neighbour sees on small grids."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import norm

from dphh.errors import UsageError
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, GaussianEvent, SetUnionEvent
from dphh.privacy.gaussian import gaussian_delta, gaussian_sigma
from dphh.privacy.set_union import (
    GAUSSIAN_SHARE_OF_DELTA,
    MOST_DELTA_PER_EPSILON,
    NEW_ITEMS_SHARE_OF_DELTA,
    delta_shares,
    distinct_weights,
    grid_bits,
    new_item_delta,
    new_item_threshold,
)
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.weights import weight
from tests.draws import exact_tail


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
    epsilon, delta, bits, max_items
):
    curve, new = delta_shares(epsilon, delta)
    sigma = math.ceil(gaussian_sigma(epsilon, curve * delta) * 2**bits)
    noise = rounded_gaussian(sigma)
    threshold = new_item_threshold(noise, bits, max_items, new * delta)
    claimed = SetUnionEvent(sigma / 2**bits, new_item_delta(noise, bits, max_items, threshold))
    assert brute(epsilon, sigma, bits, threshold, max_items) <= compose([claimed]).delta(epsilon)
    assert compose([claimed]).delta(epsilon) <= delta
    assert brute(epsilon, sigma, bits, threshold - 1, max_items) > delta


@pytest.mark.parametrize("rest", [[], [GaussianEvent(2.0)], [DeltaEvent(0.01), GaussianEvent(3.0)]])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_bound_covers_every_share_of_new_items(epsilon, rest):
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
@pytest.mark.parametrize(
    "delta", [1e-30, 1e-8, 1e-4, MOST_DELTA_PER_EPSILON / 4, MOST_DELTA_PER_EPSILON]
)
def test_a_users_share_of_new_items_never_costs_more_than_its_ends(epsilon, delta):
    delta *= min(epsilon, 10.0)
    curve, new = delta_shares(epsilon, delta)
    assert (curve, new) == (GAUSSIAN_SHARE_OF_DELTA, NEW_ITEMS_SHARE_OF_DELTA)
    event = SetUnionEvent(gaussian_sigma(epsilon, curve * delta), new * delta)
    assert compose([event]).delta(epsilon) <= delta * 0.99


@pytest.mark.parametrize(
    "before", [GaussianEvent(9.0), DeltaEvent(1e-9), EpsilonDeltaEvent(0.1, 0.0)]
)
def test_a_set_union_that_was_asked_for_later_pays_for_both(before):
    together = compose([before, SetUnionEvent(4.0, 1e-6)])
    assert together == compose([before, GaussianEvent(4.0), DeltaEvent(1e-6)])


HELD = [*range(1, 2000), *random.Random(1).sample(range(2000, 10**6), 3000), 10**6, 4**10]


def test_weights_are_the_floor_of_two_to_the_b_over_the_root_of_t():
    with localcontext() as context:
        context.prec = 60
        for held in HELD:
            for bits in (0, 3, 10):
                assert weight(bits, held) == int(Decimal(2**bits) / Decimal(held).sqrt())


def test_a_users_norm_is_never_above_one_and_hardly_below():
    for held in HELD:
        assert held * weight(10, held) ** 2 <= 4**10
    for held in range(1, 301):
        assert Fraction(held * weight(10, held) ** 2, 4**10) > Fraction(96, 100)


@pytest.mark.parametrize("bits, most", [(0, 1), (2, 16), (5, 700), (5, 1024), (10, 30_000)])
def test_each_weight_is_listed_with_the_largest_t_that_has_it(bits, most):
    brute = {weight(bits, held): held for held in range(1, most + 1)}
    assert distinct_weights(bits, most) == [(held, w) for w, held in brute.items()]


def brute_delta(sigma, bits, most, threshold):
    return max(
        held * exact_tail(sigma, threshold - weight(bits, held)) for held in range(1, most + 1)
    )


@pytest.mark.parametrize(
    "sigma, bits, most, delta",
    [
        (3977, 10, 40, 5e-6),
        (1360, 10, 7, 5e-8),
        (64, 5, 200, 1e-3),
        (5347, 10, 3, 1e-30),
        (9, 3, 64, 0.2),
    ],
)
def test_the_threshold_is_the_least_that_keeps_new_items_back(sigma, bits, most, delta):
    noise = rounded_gaussian(sigma)
    threshold = new_item_threshold(noise, bits, most, delta)
    assert brute_delta(sigma, bits, most, threshold) <= delta
    assert brute_delta(sigma, bits, most, threshold - 1) > delta


@pytest.mark.parametrize("most", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("delta", [0.1, 1e-7, 1e-30])
def test_what_a_threshold_costs_is_at_most_what_was_asked_and_about_it(most, delta):
    noise = rounded_gaussian(4000)
    cost = new_item_delta(noise, 10, most, new_item_threshold(noise, 10, most, delta))
    assert 0.9 * delta < cost <= delta
    assert new_item_delta(noise, 10, most, -(10**6)) == 1.0  # a threshold that hides nothing


@pytest.mark.parametrize("threshold", range(9_000, 9_600, 50))
def test_what_a_threshold_costs_is_rounded_up(threshold):
    found = new_item_delta(rounded_gaussian(1360), 10, 7, threshold)
    with mp.workprec(700):
        exact = brute_delta(1360, 10, 7, threshold)
        assert exact <= mp.mpf(found) <= exact * (1 + mp.mpf(2) ** -51)


def test_a_cap_whose_share_would_round_to_nothing_is_refused():
    assert grid_bits(5.0, 4**10) == 10
    with pytest.raises(UsageError, match="at most 1,048,576"):
        grid_bits(5.0, 4**10 + 1)
