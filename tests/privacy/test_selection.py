"""Optimal selection: its noise against the paper's recursion, and as a law in exact integers."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest

from dphh import UsageError, items
from dphh.mechanisms.set_union.single import delta_of, ratio_below_exp, selection_noise
from dphh.privacy.accounting import compose
from dphh.testing import SeededRandomness
from dphh.udfs.noise.truncated import draw_truncated_geometric, truncated_geometric

BUDGETS = [(1.0, 1e-8), (1.0, 1e-6), (0.05, 1e-9), (4.0, 1e-6), (8.0, 1e-3), (1.0, 1e-15)]
EACH = pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)


def paper(epsilon, delta, most):
    """The recursion of Desfontaines et al., Theorem 1: how often an item of n users is released."""
    grows, chances = mpmath.exp(epsilon), [mpmath.mpf(0)]
    for _ in range(most):
        last = chances[-1]
        chances.append(min(grows * last + delta, 1 - (1 - last - delta) / grows, mpmath.mpf(1)))
    return chances


def hockey_stick(one, other, epsilon):
    """Of two laws in whole numbers of 2^-64, at an epsilon of 60 digits."""
    grows = mpmath.exp(mpmath.mpf(epsilon))
    keys = one.keys() | other.keys()
    more = (one.get(k, 0) - grows * other.get(k, 0) for k in keys)
    return mpmath.fsum(max(each, 0) for each in more) / 2**64


def released(noise, users):
    """The law of what is seen of an item of so many users: its score, or None; of 2^64."""
    if not users:
        return {None: 2**64}
    law = {None: 0}
    for at, units in enumerate(noise.units):
        score = users + at - noise.reach
        seen = score if score > noise.reach else None
        law[seen] = law.get(seen, 0) + units
    return law


@EACH
def test_one_user_more_is_hardly_seen_in_either_direction(epsilon, delta):
    """All numbers of users, from none; by the laws alone, with another exponential."""
    noise = selection_noise(epsilon, delta)
    with mpmath.workdps(60):
        for users in range(2 * noise.reach + 2) if noise.reach < 60 else (0, 1, 2, noise.reach):
            without, there = released(noise, users), released(noise, users + 1)
            for one, other in ((there, without), (without, there)):
                assert hockey_stick(one, other, epsilon) <= delta
        assert sum(noise.units) == 2**64
        assert ratio_below_exp(epsilon) <= mpmath.exp(epsilon) * 2**32
    assert delta_of(noise) <= delta


@EACH
def test_it_is_not_private_at_a_budget_a_little_lower(epsilon, delta):
    noise = selection_noise(epsilon, delta)
    with mpmath.workdps(60):
        new = hockey_stick(released(noise, 1), released(noise, 0), epsilon)
        assert new >= delta_of(noise) * (1 - 1e-9)
        law = [released(noise, users) for users in (noise.reach, noise.reach + 1)]
        assert hockey_stick(law[1], law[0], 0.97 * epsilon) > 1.5 * delta_of(noise)


@EACH
def test_an_item_needs_one_user_more_than_by_the_papers_rule_at_most(epsilon, delta):
    noise = selection_noise(epsilon, delta)
    best = paper(epsilon, delta, 3 * noise.reach + 3)
    for users in range(1, 2 * noise.reach + 2, 1 + noise.reach // 60):
        ours = 1 - released(noise, users)[None] / 2**64
        assert best[users - 1] - delta <= ours <= best[users] + 1e-15


def test_an_item_of_twenty_users_is_found():
    """docs/items.md: of 20 users with probability 0.9, where the Gaussian needs 37."""
    assert items(epsilon=1, delta=1e-8, max_items=1, counts=0).finds.users == 20
    assert items(epsilon=1, delta=1e-8, max_items=1, counts=0, method="gaussian").finds.users == 37


@pytest.mark.parametrize("asked", [{"counts": 0}, {}, {"counts": 0.5}])
def test_a_plan_costs_what_it_says(asked):
    plan = items(epsilon=1, delta=1e-6, max_items=1, **asked)
    assert plan.method == "single"
    assert 0.3e-6 < compose(plan.events).delta(1.0) <= 1e-6
    (level,) = plan.levels
    found = plan.events[0]
    assert selection_noise(found.epsilon, 1e-6).reach <= level.reach
    assert found.delta == delta_of(level.noise)


class Words(SeededRandomness):
    def __init__(self, words):
        self.words = words

    def random_words(self, count, purpose, keys=None):
        return np.array(self.words, dtype=np.uint64)


@EACH
def test_each_value_of_noise_has_its_own_random_words(epsilon, delta):
    """From its start to the next one: as many words as the table has units."""
    noise = selection_noise(epsilon, delta)
    starts = [int(start) for start in noise.starts]
    assert [after - this for this, after in pairwise([*starts, 2**64])] == list(noise.units)
    values = [*range(-noise.reach, noise.reach + 1)]
    lasts = [start - 1 for start in [*starts[1:], 2**64]]
    for words in (starts, lasts):
        assert draw_truncated_geometric(Words(words), noise, len(words), "noise").tolist() == values


def test_what_it_has_no_noise_for_is_refused_and_auto_takes_another_method():
    for epsilon, delta in ((1.0, 1e-20), (21.0, 1e-6), (1e-4, 1e-6)):
        asked = {"epsilon": epsilon, "delta": delta, "max_items": 1, "counts": 0}
        with pytest.raises(UsageError, match="method 'single' has no noise"):
            items(method="single", **asked)
        assert items(**asked).method == "gaussian"
    with pytest.raises(UsageError, match="give max_items=1, or method='auto'"):
        items(epsilon=1, delta=1e-6, max_items=2, method="single")
    noise = selection_noise(1.0, 1e-6)
    with pytest.raises(UsageError, match="no truncated geometric noise"):
        truncated_geometric(noise.ratio, noise.reach - 1, noise.edge)
