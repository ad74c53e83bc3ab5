"""TrieHH's theorem: its prices and conditions, and a look at whether it is true."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from triehh_knob import knob_plan
from triehh_votes import hypergeometric_tail

from dphh.errors import UsageError
from dphh.mechanisms.trie.triehh import (
    checked_batch,
    choose_batch,
    holders_needed,
    largest_batch_by_theorem,
    least_theta_within,
    theorem_delta,
    theorem_epsilon,
)


def test_deltas_round_up_and_thetas_are_the_least():
    for theta in range(4, 60):
        exact = Fraction(theta - 2, (theta - 3) * math.factorial(theta))
        assert exact <= theorem_delta(theta) <= exact * (1 + Fraction(1, 2**50))
        assert least_theta_within(theorem_delta(theta)) == theta
    assert 0 < theorem_delta(10**4) < 1e-300


def test_plans_spend_at_most_what_was_asked_and_nearly_all_of_it():
    users, epsilons = 10**7, (0.5, 1.0, 3.0, 8.0)
    for epsilon, delta, levels in itertools.product(epsilons, (1e-6, 1e-9), (1, 5, 20)):
        plan = choose_batch(users, epsilon, levels, delta)
        assert plan.epsilon <= epsilon and plan.delta <= delta
        assert checked_batch(users, plan.theta, plan.batch, levels) == plan
        capped = plan.batch == users // (plan.theta + 1)
        assert capped or theorem_epsilon(users, plan.theta, plan.batch + 1, levels) > epsilon
        # Asked for what it spends, it comes out the same.
        assert largest_batch_by_theorem(users, plan.theta, levels, plan.epsilon) == plan.batch


def test_a_large_epsilon_is_cut_where_the_theorem_ends():
    plan = choose_batch(10**6, 100.0, 10, 1e-8)
    assert plan.batch == 10**6 // 13
    assert plan.epsilon < 10 * math.log(13) + 1e-9


@pytest.mark.parametrize(
    ("users", "theta", "batch"), [(10**4, 3, 100), (99, 10, 10), (10**4, 10, 99), (10**4, 10, 910)]
)
def test_what_the_theorem_does_not_cover_is_refused(users, theta, batch):
    with pytest.raises(UsageError):
        checked_batch(users, theta, batch, 1)


def test_too_few_users_are_told_how_many_it_takes():
    with pytest.raises(UsageError, match="about 16,") as refused:
        choose_batch(10**4, 0.9, 10, 1e-7)
    needed = int(str(refused.value).split("or about ")[1].split(" users")[0].replace(",", ""))
    assert choose_batch(needed, 0.9, 10, 1e-7).epsilon <= 0.9
    with pytest.raises(UsageError):
        choose_batch(int(needed * 0.98), 0.9, 10, 1e-7)


def largest_delta(passing: np.ndarray, passing_without: np.ndarray, epsilon: float) -> float:
    """The exact hockey-stick divergence for one who comes, where others hold prefixes of w or
    nothing. Row by row: a level's probabilities to pass. Outcomes are how deep the path survives.
    """
    ones = np.ones((len(passing), 1))
    depth, depth_without = (
        np.hstack([ones, np.cumprod(p, axis=1)]) * np.hstack([1 - p, ones])
        for p in (passing, passing_without)
    )
    found = np.maximum(depth - math.exp(epsilon) * depth_without, 0).sum(axis=1)
    return float(found.max())


@pytest.mark.parametrize(
    ("users", "theta", "batch", "levels"),
    [(25, 4, 5, 3), (100, 4, 20, 4), (400, 6, 50, 5), (10**4, 10, 100, 10), (10**4, 5, 1600, 3)],
)
def test_the_published_theorem_holds_on_single_paths(users, theta, batch, levels):
    plan = checked_batch(users, theta, batch, levels)
    tails = hypergeometric_tail(np.arange(users + 1), users, batch, theta)
    rng = np.random.default_rng(7)
    # Adversarial: all alike, just above K and just below, and falling sequences of every scale.
    edge = round(users / batch)
    rows = [np.full(levels, k) for k in range(min(users, 3000))]
    rows += [
        np.r_[np.full(i, edge + step), np.full(levels - i, k)]
        for i in range(levels)
        for step in (-1, 0, 1)
        for k in range(theta - 1, edge + 1)
    ]
    tops = np.exp(rng.uniform(0, math.log(users), (4000, 1)))
    rows += list(np.minimum(tops * rng.uniform(0, 1, (4000, levels)), users - 1).astype(int))
    ks = -np.sort(-np.array(rows), axis=1)
    assert largest_delta(tails[ks + 1], tails[ks], plan.epsilon) <= plan.delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "theta", "holders", "freely"),
    [(1.0, 1e-8, 12, 2694, 1553), (4.0, 1.5e-8, 12, 774, 395), (4.0, 2.3e-12, 15, 1148, 568)],
)
def test_what_the_papers_rule_finds_and_with_its_knob(epsilon, delta, theta, holders, freely):
    plan = choose_batch(10**7, epsilon, 10, delta)
    assert (plan.theta, holders_needed(plan)) == (theta, holders)
    knob = knob_plan(10**7, epsilon, delta, 10)
    assert knob.epsilon <= epsilon and knob.delta <= delta and knob.holders == freely
