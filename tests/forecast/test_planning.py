"""Prior, weights, thresholds and shares: what they promise, on tables made for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from dphh.errors import UsageError
from dphh.mechanisms.ngrams.forecast.masses import mass_distributions, mass_grid
from dphh.mechanisms.ngrams.forecast.plan_round import (
    THRESHOLDS,
    plan_second_round,
    tails_by_signs,
    weight_scaling,
)
from dphh.mechanisms.ngrams.forecast.shares import (
    LEAST_ROUND_PART,
    WORD_ROUND_PARTS,
    BudgetLeft,
    one_round_part,
)
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.mechanisms.ngrams.price import price_ngrams
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS
from dphh.udfs.rules.forecast import LIST_SIZE_BIN_STARTS, list_size_weight, norm_on_grid


def histogram(masses: np.ndarray, sigma: float, seed: int) -> np.ndarray:
    noised = masses / sigma + np.random.default_rng(seed).normal(size=len(masses))
    return np.histogram(noised, np.r_[BIN_STARTS_IN_SIGMAS, np.inf])[0].astype(float)


def test_the_prior_knows_how_many_hold_something():
    sigma, rng = 10.0, np.random.default_rng(6)
    some = np.exp(rng.normal(np.log(60), 0.5, 4_000))
    counts = histogram(np.r_[np.zeros(100_000), some], sigma, 7)
    prior = mass_distributions(counts[None], np.array([3.0]), sigma, some.sum())
    grid = prior.masses
    assert prior.by_class.sum() == pytest.approx(1)
    found = prior.by_class[0] * counts.sum()
    assert found[grid > 30].sum() == pytest.approx((some > 30).sum(), rel=0.15)
    seen = grid > 30
    assert found[seen] @ grid[seen] == pytest.approx(some[some > 30].sum(), rel=0.15)


def planned(budget: float, sigma: float = 3.0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(8)
    masses = mass_grid(6.0, 1e4)
    posterior = rng.dirichlet(np.full(len(masses), 0.2), 60)
    counts = rng.integers(0, 500, 60).astype(float)
    nulls = np.exp(rng.normal(0, 4, 60))
    plan = plan_second_round(counts, nulls, posterior, masses, sigma, budget, lambda g: g)
    return plan, counts, nulls, posterior, masses


@pytest.mark.parametrize("budget", [0.05, 1.0, 30.0])
def test_planned_tails_keep_the_budget(budget):
    plan, _, nulls, _, _ = planned(budget)
    assert (nulls * plan.tails).sum() <= budget
    assert plan.tails.max() <= ndtr(-THRESHOLDS[0])


def test_weights_have_a_mass_weighted_mean_square_of_one_at_most():
    plan, counts, _, posterior, masses = planned(5.0)
    mass = counts * (posterior @ masses)
    assert 0.8 <= (mass * plan.weights**2).sum() / mass.sum() <= 1.0 + 1e-9


def test_weight_counts_in_proportion_in_long_lists_and_a_list_of_one_gram_has_no_more_to_give():
    g = np.array([0.1, 1.0, 9.0])
    for size, given_to_each in ((0, [1, 1, 1]), (-1, g)):
        lists = np.zeros(len(LIST_SIZE_BIN_STARTS))
        lists[size] = 100
        assert weight_scaling(lists)(g) == pytest.approx(given_to_each, rel=0.01)


@given(st.integers(2, 20), st.lists(st.tuples(st.floats(0, 1e7), st.floats(1, 4)), min_size=20))
def test_shares_never_pass_what_is_left_and_the_last_takes_all(levels, found):
    """And each is a round's least share, whatever is found."""
    used = WORD_ROUND_PARTS[0] + one_round_part(levels)
    left, below = 1 - used / levels, 1_000
    for level, (finds, growth) in zip(range(2, levels + 1), found, strict=False):
        budget = BudgetLeft(left, level, levels)
        second = budget.second_round_share(finds, finds * growth, below)
        assert min(budget.first_round_share(), second) >= LEAST_ROUND_PART / levels * (1 - 1e-9)
        left, below = left - budget.first_round_share() - second, int(finds)
        assert left >= -1e-9
    assert left == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("max_items", [1, 4, 100])
@pytest.mark.parametrize("max_n", [2, 20])
def test_a_plan_that_is_priced_can_run_at_any_epsilon(max_n, max_items):
    """In the round of the least share, a user's norm is enough for the list's size to weigh
    something: less would end in a division by zero after the payment."""
    priced = 0
    for epsilon in np.geomspace(1e-4, 1, 13).tolist():
        try:
            price = price_ngrams(max_n=max_n, max_items=max_items, epsilon=epsilon, delta=1e-6)
        except UsageError as refused:
            assert "larger epsilon" in str(refused)
            continue
        level = next(level for level in price.levels if isinstance(level, ForecastLevel))
        sigma = level.total_sigma * (max_n / LEAST_ROUND_PART) ** 0.5
        assert list_size_weight(norm_on_grid(sigma, level.sigma_grid)) >= 1
        priced += 1
    assert priced >= 5


ROWS = [
    ((5,), (0.2,)),
    ((3, 100), (0.25, 0.001)),
    ((1_000, 20, 5), (1e-3, 0.05, 0.25)),
    ((10**6, 500), (1e-6, 0.01)),
    ((2, 2, 2, 2), (0.25, 0.25, 0.01, 1e-4)),
]


@pytest.mark.parametrize(("nulls", "planned"), ROWS)
@pytest.mark.parametrize("budget", [0.05, 1.0, 20.0])
def test_the_rule_of_signs_keeps_the_budget(nulls, planned, budget):
    rng = np.random.default_rng(4)
    number, tails = np.array(nulls), np.array(planned)
    spurious = []
    for _ in range(4_000):
        nonpositive = rng.binomial(number, 0.5)
        passing = 2 * tails_by_signs(tails, nonpositive, budget)
        spurious.append(rng.binomial(number - nonpositive, passing).sum())
    assert np.mean(spurious) <= budget + 4 * np.std(spurious) / len(spurious) ** 0.5
