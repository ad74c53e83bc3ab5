"""`counts=` of `items`, `ngrams` and `trie`: one budget for finding and counting, and the plan."""

from __future__ import annotations

import pytest

from dphh import items, ngrams, plan_from_json, trie
from dphh.mechanisms.counts.of_found import NOTE
from dphh.privacy.accounting import compose
from dphh.privacy.events import GaussianEvent, SetUnionEvent
from dphh.privacy.gaussian import compose_sigmas, gaussian_sigma
from dphh.wording.lines import number

BUDGET = {"epsilon": 8.0, "delta": 1e-8}  # little noise: its tables are quickly made
VERBS = {
    "items": lambda **asked: items(max_items=3, method="gaussian", **asked),
    "sips": lambda **asked: items(max_items=3, method="sips", **asked),
    "dpne": lambda **asked: ngrams(max_n=3, max_items=3, method="dpne", **asked),
    "decaying": lambda **asked: ngrams(
        max_n=2, max_items=(3, 2), decay=0.8, method="dpne", **asked
    ),
    "forecast": lambda **asked: ngrams(max_n=3, max_items=3, method="forecast", **asked),
}


def noise_of(plan, *, counting):
    """What the plan's Gaussian releases of counts, or of finding, come to."""
    return compose_sigmas(
        event.sigma
        for event in plan.events
        if isinstance(event, (GaussianEvent, SetUnionEvent)) and (event.note == NOTE) == counting
    )


@pytest.mark.parametrize("how", VERBS)
@pytest.mark.parametrize("counts", [0.05, 0.3, 0.9])
def test_finding_and_counting_come_to_the_budget_and_no_more(how, counts):
    plan, alone = VERBS[how](counts=counts, **BUDGET), VERBS[how](**BUDGET)
    assert compose(plan.events).delta(8.0) <= 1e-8
    finding, counting = noise_of(plan, counting=False), noise_of(plan, counting=True)
    both, before = compose_sigmas([finding, counting]), noise_of(alone, counting=False)
    # Of `items`, where counts take nearly all, new items and noise have half of delta each.
    assert before * 0.998 < both < before * (1.03 if how == "items" else 1.002)
    assert (finding / counting) ** 2 == pytest.approx(counts / (1 - counts), rel=4e-3)
    assert plan.counting.relative_sigma == counting


@pytest.mark.parametrize("epsilon, delta", [(4.0, 1e-5), (8.0, 1e-12), (2.0, 0.3), (1.0, 0.05)])
@pytest.mark.parametrize("counts", [0.02, 0.5, 0.99])
def test_whoever_holds_new_items_alone_pays_for_the_counts_too(epsilon, delta, counts):
    plan = items(epsilon=epsilon, delta=delta, max_items=2, counts=counts, method="gaussian")
    assert compose(plan.events).delta(epsilon) <= delta
    # Priced as if new items and counts had nothing to do with each other, it may be too much: then
    # both have half, and no less.
    (new,) = (event.delta for event in plan.events if isinstance(event, SetUnionEvent))
    assert new > 0.45 * delta


TRIES = {
    "path": {"max_length": 6},
    "by hand": {"max_length": 6, "theta": 60, "p": 0.2},
    "paper": {"max_length": 6, "accounting": "paper", "users": 10**6},
}


@pytest.mark.parametrize("how", TRIES)
@pytest.mark.parametrize("counts", [0.05, 0.3, 0.9])
def test_a_trie_and_its_counts_come_to_the_budget_and_no_more(how, counts):
    plan = trie(counts=counts, max_items=4, **BUDGET, **TRIES[how])
    growing, counting, _ = plan.events
    assert 0.9999e-8 < compose(plan.events).delta(8.0) <= 1e-8
    one_way = how == "paper"
    assert growing.kind == ("one direction" if one_way else "approximate")
    alone = trie(epsilon=growing.epsilon, delta=growing.delta, **TRIES[how])
    assert plan.levels == alone.levels  # grown for just what is charged for it
    share = 1 - counts
    assert (growing.epsilon, growing.delta) == pytest.approx((8 * share, 1e-8 * share))
    assert (plan.privacy.epsilon, plan.privacy.delta) == (8.0, 1e-8)
    assert sum(each for _, each in plan.privacy.delta_shares) == pytest.approx(1e-8)
    assert ("one direction" in plan.privacy.adjacency) == one_way
    assert plan.counting.relative_sigma == counting.sigma and counting.note == NOTE
    # No more noise than if nothing were gained by looking at both together.
    assert counting.sigma < gaussian_sigma(8 * counts, 1e-8 * counts) * 1.001
    assert plan_from_json(plan.dumps()) == plan
    said = " ".join(plan.describe().split())
    assert "for up to 4 of sequences that end, and beginnings that nothing grew from" in said
    assert f"{number(plan.counting.widest.half_width)} users to either side" in said


def test_no_number_of_finds_has_more_noise_than_the_plan_says():
    counting = items(max_items=10, counts=0.3, **BUDGET).counting
    most = counting.widest.sigma
    noise = [counting.level(found).sigma for found in (1, 5, 10, 11, 1_000, 100_000)]
    assert max(noise) <= most * 1.001
    assert noise[0] == pytest.approx(counting.relative_sigma, rel=0.01)
