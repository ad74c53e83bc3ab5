"""Thresholds for any weights: against every small vector, and vectors made to pass."""

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from dphh import items
from dphh.mechanisms.set_union.levels import ReweighedLevel, SetUnionLevel
from dphh.privacy import set_union
from dphh.privacy.events import DeltaEvent
from dphh.privacy.set_union import (
    MOST_SINGLE_ITEM_TAIL,
    any_weights_cost,
    any_weights_delta,
    any_weights_threshold,
)
from dphh.udfs.noise.table import rounded_gaussian

Weights = NDArray[np.int64]
#: sigma in grid units, unit, D, delta: where equal weights are the worst, and where they are not.
CASES = [
    (12_390, 1024, 30, 2.4e-8),
    (1_557, 1024, 30, 4.75e-8),
    (1_790, 1024, 30, 1.5e-10),
    (1_290, 1024, 30, 1e-6),
    (737, 1024, 1000, 1e-5),
    (1_024, 1024, 4, 1e-5),
    (2_048, 1024, 2, 1e-6),
    (500, 1000, 100, 1e-12),
    (90, 64, 20, 1e-3),
    (4_000, 1024, 1, 1e-6),
]


def vectors(squares: int, items: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Every descending vector of whole numbers whose squares come to so much at most."""
    if not items:
        yield ()
        return
    for first in range(min(largest, isqrt(squares)), -1, -1):
        for rest in vectors(squares - first * first, items - 1, first):
            yield (first, *rest)


@pytest.mark.parametrize("unit", [1, 2, 5, 9])
@pytest.mark.parametrize("items", [1, 2, 3, 5])
@pytest.mark.parametrize("sigma", [2, 3, 7, 20])
def test_no_small_vector_costs_more_than_is_said(unit, items, sigma):
    noise = rounded_gaussian(sigma)
    every = [*vectors(unit * unit, items, unit)]
    least = unit + noise.smallest_with_tail_at_most(MOST_SINGLE_ITEM_TAIL)
    for threshold in range(least, least + 8 * sigma, 3):
        worst = max(sum(noise.tail_lower_bound(threshold - w) for w in each) for each in every)
        assert worst <= any_weights_cost(noise, unit, items, threshold)


def passing(weights: Weights, threshold: int, sigma: int) -> float:
    """Summed over items, how likely each passes; by a library of its own."""
    return float(norm.sf((threshold - 0.5 - weights) / sigma).sum())


def whole(squares: NDArray[np.float64], unit: int) -> Weights:
    """Whole weights from shares of the squared norm."""
    found = np.floor(unit * np.sqrt(np.maximum(squares, 0) / squares.sum())).astype(np.int64)
    assert (found**2).sum() <= unit**2
    return found


def one_heavy(unit: int, items: int) -> Iterator[Weights]:
    for heavy in range(0, unit + 1, max(1, unit // 128)):
        rest = isqrt((unit**2 - heavy**2) // max(items - 1, 1))
        yield np.array([heavy, *[rest] * (items - 1)])


def equal(unit: int, items: int) -> Iterator[Weights]:
    for some in range(1, items + 1):
        yield np.array([isqrt(unit**2 // some)] * some)


@pytest.mark.parametrize(("sigma", "unit", "items", "delta"), CASES)
def test_no_vector_that_looks_for_it_passes_more_often_than_delta(sigma, unit, items, delta):
    """Random ones from flat to spiked, one heavy item among light ones, and climbed ones."""
    threshold = any_weights_threshold(rounded_gaussian(sigma), unit, items, delta)
    rng = np.random.default_rng(sigma)
    worst = max(passing(each, threshold, sigma) for each in one_heavy(unit, items))
    worst = max(worst, *(passing(each, threshold, sigma) for each in equal(unit, items)))
    for _ in range(300):
        squares = rng.dirichlet(np.full(items, 10 ** rng.uniform(-2.5, 2)))
        worst = max(worst, passing(whole(squares, unit), threshold, sigma))
    for _ in range(4):
        squares = rng.dirichlet(np.full(items, 10 ** rng.uniform(-2, 1)))
        best = passing(whole(squares, unit), threshold, sigma)
        for _ in range(300):  # moves squares from one item to another, where more pass then
            one, other = rng.integers(0, items, 2)
            moved = squares.copy()
            step = moved[one] * rng.random()
            moved[one] -= step
            moved[other] += step
            now = passing(whole(moved, unit), threshold, sigma)
            if now > best:
                squares, best = moved, now
        worst = max(worst, best)
    assert worst <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("sigma", "unit", "items", "delta"), CASES)
def test_the_cost_of_an_interval_is_at_least_that_of_both_its_ends(sigma, unit, items, delta):
    """The proof's step: one term grows with the heavy item's weight, and the other falls."""
    if items == 1:
        return
    noise = rounded_gaussian(sigma)
    threshold = any_weights_threshold(noise, unit, items, delta)
    ends = np.array(set_union._ends_of_weight_intervals(unit), dtype=float)
    rest = np.sqrt((unit**2 - ends**2) / (items - 1))
    heavy = norm.sf((threshold - 0.5 - ends) / sigma)
    exact = heavy + (items - 1) * norm.sf((threshold - 0.5 - rest) / sigma)
    found = set_union._costs_of_weight_intervals(noise, unit, items, threshold)
    said = np.array([float(Fraction(cost, set_union.TABLE_ONE)) for cost in found])
    assert (said >= exact[:-1] * (1 - 1e-9)).all()
    assert (said >= exact[1:] * (1 - 1e-9)).all()


@pytest.mark.parametrize(("sigma", "unit", "items", "delta"), CASES)
def test_the_threshold_is_certified_and_hardly_higher_than_it_must_be(sigma, unit, items, delta):
    noise = rounded_gaussian(sigma)
    threshold = any_weights_threshold(noise, unit, items, delta)
    cost = any_weights_delta(noise, unit, items, threshold)
    assert Fraction(cost) >= any_weights_cost(noise, unit, items, threshold)
    assert 0.97 * delta < cost <= delta
    lower = threshold - 3 - unit // 128 - sigma // 200
    least = max(
        passing(each, lower, sigma) for each in (*one_heavy(unit, items), *equal(unit, items))
    )
    assert least > delta


def test_where_the_theorem_does_not_hold_nothing_is_promised():
    """An item of all weight that passes as often as not: convex and concave parts mix."""
    noise = rounded_gaussian(100)
    assert any_weights_delta(noise, 1024, 10, 1024) == 1.0
    assert any_weights_delta(noise, 1024, 10, -(10**6)) == 1.0
    threshold = any_weights_threshold(noise, 1024, 10, 0.9)
    assert noise.tail_upper_bound(threshold - 1024) <= MOST_SINGLE_ITEM_TAIL


def test_what_floats_say_is_where_the_search_begins_and_no_more(monkeypatch):
    monkeypatch.setattr(set_union, "_approximate_cost", lambda *_: 0.0)
    noise = rounded_gaussian(90)
    threshold = any_weights_threshold(noise, 64, 20, 1e-3)
    worst = max(passing(each, threshold, 90) for each in (*one_heavy(64, 20), *equal(64, 20)))
    assert worst <= any_weights_delta(noise, 64, 20, threshold) <= 1e-3


@pytest.mark.parametrize("method", ["adaptive", "auto"])
def test_rounds_whose_weights_follow_earlier_ones_book_the_cost_of_any_weights(method):
    """That of an item of weight y beside 29 equal ones; of the first round, of t equal weights."""
    plan = items(epsilon=1.0, delta=1e-5, max_items=30, method=method)
    first, *later = (
        level for level in plan.levels if type(level) in (SetUnionLevel, ReweighedLevel)
    )

    def passing(level, weights):
        return norm.sf((level.threshold_grid - 0.5 - weights) / level.sigma_grid)

    unit, t = 2**first.grid_bits, np.arange(1, 31)
    cost = (t * passing(first, unit / np.sqrt(t))).max()
    y = np.arange(unit + 1)
    for level in later:
        assert isinstance(level, ReweighedLevel)
        beside = np.sqrt((unit**2 - y**2) / 29)
        cost += (passing(level, y) + 29 * passing(level, beside)).max()
    if method == "auto":
        booked = plan.events[0].rounds_delta
    else:
        booked = sum(event.delta for event in plan.events if isinstance(event, DeltaEvent))
    assert 0.999 * cost < booked < 1.02 * cost
