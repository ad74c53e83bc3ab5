"""Plans of `trie`: what they cost, and how many users a sequence needs."""

from __future__ import annotations

import pytest
from scipy.stats import binom, hypergeom

from dphh import trie
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.mechanisms.trie.path import path_delta, path_guarantee
from dphh.mechanisms.trie.triehh import published_delta, theorem_epsilon

ASK = {"epsilon": 1.0, "delta": 1e-8, "max_length": 10}
PAPER = {
    "epsilon": 4.0, "delta": 2.3e-12, "max_length": 10, "accounting": "paper", "users": 658_769,
}  # fmt: skip
BY_HAND = ASK | {"theta": 20, "p": 0.2}


@pytest.mark.parametrize("epsilon, delta, levels", [(1.0, 1e-8, 10), (4.0, 1e-30, 3)])
def test_what_is_done_costs_no_more_than_what_is_claimed(epsilon, delta, levels):
    plan = trie(epsilon=epsilon, delta=delta, max_length=levels)
    assert [level.level for level in plan.levels] == list(range(1, levels + 1))
    first = plan.levels[0]
    assert isinstance(first, VoteLevel)
    assert {(level.numerator, level.theta) for level in plan.levels} == {
        (first.numerator, first.theta)
    }
    exact = path_guarantee(epsilon, first.numerator, first.theta, levels)
    assert exact.epsilon == epsilon
    assert 0.5 * delta < exact.delta <= delta
    ((spent,),) = ([event.to_json() for event in plan.events],)
    assert (spent["epsilon"], spent["delta"]) == (epsilon, delta)


def test_so_many_users_are_found_with_nine_in_ten_and_no_fewer():
    for plan in (trie(**ASK), trie(**BY_HAND)):
        first = plan.levels[0]
        for users, enough in ((plan.finds.users, True), (plan.finds.users - 1, False)):
            assert (binom.sf(first.theta - 1, users, first.p) ** 10 >= 0.9) == enough


def test_the_papers_plan_is_the_authors():
    """facts.md: theta 15 and a batch of 0.02198 n, which is 14,478."""
    plan = trie(**PAPER)
    first = plan.levels[0]
    assert isinstance(first, BatchLevel)
    assert (first.theta, first.users, first.batch) == (15, 658_769, 14_478)
    assert theorem_epsilon(first.users, 15, first.batch, 10) <= 4.0
    assert published_delta(15) <= 2.3e-12
    for users, enough in ((plan.finds.users, True), (plan.finds.users - 1, False)):
        found = hypergeom.sf(14, first.users, users, first.batch) ** 10
        assert (found >= 0.9) == enough


def test_theta_and_p_by_hand_are_priced():
    plan = trie(**BY_HAND)
    assert plan.levels[0].theta == 20
    assert plan.levels[0].numerator == int(0.2 * 2.0**64)
    assert path_delta(1.0, 0.2, 20, 10) <= 1e-8
    assert (plan.privacy.epsilon, plan.privacy.delta) == (1.0, 1e-8)
