"""TrieHH's theorem and its batches, which dphh has as a baseline: prices, conditions, the authors'
settings, what is found, and whether the theorem is true, in its direction and in the other.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from baselines.triehh import (
    END,
    BatchParameters,
    checked_batch,
    choose_batch,
    grown,
    largest_batch_by_theorem,
    least_theta_within,
    theorem_delta,
    theorem_epsilon,
)
from scipy.stats import hypergeom
from triehh_knob import knob_plan
from triehh_printed import reverse_delta_at_least
from triehh_votes import FixedSize, hypergeometric_tail
from triehh_votes import holders_needed as holders_needed_by

from dphh.errors import UsageError


def holders_needed(plan: BatchParameters) -> int:
    return holders_needed_by(FixedSize(plan.users, plan.batch), plan.theta, plan.levels)


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


def test_the_authors_settings_follow():
    """Theta 15 and a batch of 0.02198 n, which is 14,478."""
    plan = choose_batch(658_769, 4.0, 10, 2.3e-12)
    assert (plan.theta, plan.batch) == (15, 14_478)
    assert plan.epsilon <= 4.0 and plan.delta <= 2.3e-12
    needed = holders_needed(plan)
    for holders, enough in ((needed, True), (needed - 1, False)):
        assert (hypergeom.sf(14, 658_769, holders, 14_478) ** 10 >= 0.9) == enough


# Algorithm 1, run


def test_of_a_batch_of_all_what_theta_users_hold_grows_to_its_end():
    words = ["ab", "ab", "ab", "ac", "b", "b", "", "abc"]
    plan = BatchParameters(users=8, theta=3, batch=8, levels=3, epsilon=1.0, delta=1.0)
    found = grown(words, plan, np.random.default_rng(1))
    assert found == {("a",), ("a", "b"), ("a", "b", END)}
    two = grown(words, replace(plan, theta=2, levels=2), np.random.default_rng(1))
    assert two == {("a",), ("a", "b"), ("b",), ("b", END)}


def test_a_word_is_found_as_often_as_proposition_1_says():
    plan = BatchParameters(users=200, theta=5, batch=40, levels=3, epsilon=1.0, delta=1.0)
    words = [["x", "y"]] * 30 + [[]] * 170
    random, runs = np.random.default_rng(2), 2_000
    often = np.mean([("x", "y", END) in grown(words, plan, random) for _ in range(runs)])
    rate = hypergeom.sf(4, 200, 30, 40) ** 3
    assert 0.2 < rate < 0.8
    assert abs(often - rate) < 4 * math.sqrt(rate * (1 - rate) / runs)


# The other direction


def test_the_other_direction_of_the_theorem_is_false_at_a_corner():
    """Of users of nothing, one is given the word of all others: then it never fails."""
    plan = checked_batch(10**4, 99, 100, 1)
    missed = reverse_delta_at_least(plan.users, plan.theta, plan.batch, plan.epsilon)
    assert missed == pytest.approx(9.9e-5, rel=1e-3)
    assert plan.delta < 1e-155
    plan = choose_batch(36, 2.0, 1, 0.02)
    missed = reverse_delta_at_least(plan.users, plan.theta, plan.batch, plan.epsilon)
    assert missed > 0.0235 > plan.delta
    random, failed = np.random.default_rng(3), []
    for idle in (2, 1):
        words = [["x"]] * (36 - idle) + [[]] * idle
        failed.append(np.mean([not grown(words, plan, random) for _ in range(4_000)]))
    assert failed[1] == 0
    assert abs(failed[0] - missed) < 4 * math.sqrt(missed / 4_000)


def test_at_usual_settings_the_same_example_shows_nothing():
    plan = choose_batch(658_769, 4.0, 10, 2.3e-12)
    assert reverse_delta_at_least(plan.users, plan.theta, plan.batch, plan.epsilon) == 0
