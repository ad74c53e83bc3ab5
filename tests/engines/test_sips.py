"""DP-SIPS: rounds, and what they cost. `test_plain_sql.py` has them as the specification has."""

from __future__ import annotations

from math import ceil

import pytest

from dphh import items
from dphh.mechanisms.set_union.levels import set_union_levels
from dphh.mechanisms.set_union.rounds import SIPS_COMMON, new_delta, round_alone, sips_shares
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, GaussianEvent
from tests.engines.levels import host_on, in_rounds, unstored

WORDS = [f"w{i}" for i in range(8)]


def small_levels(thresholds):
    """SIPS's rounds, with thresholds that a handful of users can reach."""
    from dataclasses import replace

    plan = items(epsilon=8, delta=1e-3, max_items=10, method="sips")
    return [
        replace(level, threshold_grid=threshold)
        for level, threshold in zip(plan.levels, thresholds, strict=True)
    ]


def test_what_is_found_frees_weight_for_what_is_not(engine, written, no_noise):
    """ "popular" takes its holders' weight in round 1, and "rare" has all of it in round 2."""
    rows = [(user, "popular rare" if user < 4 else "popular") for user in range(20)]
    levels = small_levels((15_000, 4096, 4096))
    first, second, third = in_rounds(engine, written(rows), no_noise, levels)
    assert first == {("popular",): 16 * 1024 + 4 * 724}
    assert second == {("rare",): 4 * 1024}
    assert third == {}


def test_an_item_is_released_in_one_round_only(engine, written):
    rows = [(user, " ".join(WORDS[: 1 + user % 8])) for user in range(2000)]
    release = items(written(rows), epsilon=1, delta=1e-5, method="sips").run(engine=engine)
    found = release.to_polars()["item"].to_list()
    assert sorted(found) == sorted(set(found))
    assert set(found) == set(WORDS)
    assert sum(level["released"] for level in release.manifest["levels"]) == len(WORDS)


def run_on(engine, corpus, randomness, plan):
    with host_on(engine, corpus, randomness) as host:
        return list(set_union_levels(plan.price, host, unstored, " "))


def test_scores_of_a_later_round_reach_the_threshold_of_the_one_before_and_no_higher(
    engine, written, no_noise
):
    """Five common items take all weight but that of "late", which then has more than round 1's."""
    plan = items(epsilon=8, delta=1e-3, max_items=10, method="sips")
    first, second = (level.threshold for level in plan.levels[:2])
    common = [f"c{i}" for i in range(SIPS_COMMON)]
    late = ceil(first * 1.5)
    assert second < late / 6**0.5 < first < late
    rows = [(user, " ".join([*common, "late"])) for user in range(late)]
    rows += [(user, " ".join(common)) for user in range(late, 10 * late)]
    done = run_on(engine, written(rows), no_noise, plan)
    assert [set(step.rows["item"].to_pylist()) for step in done] == [{*common}, {"late"}, set()]
    assert done[1].rows["score"].to_pylist() == [first]
    assert min(done[0].rows["score"].to_pylist()) >= first


@pytest.mark.parametrize("counts", [None, 0.3])
def test_where_nothing_is_common_one_round_takes_what_is_left(engine, written, no_noise, counts):
    plan = items(epsilon=8, delta=1e-3, max_items=10, method="sips", counts=counts)
    rows = [(user, f"w{user % 7}") for user in range(7 * ceil(plan.levels[2].threshold))]
    done = run_on(engine, written(rows), no_noise, plan)
    assert [step.rows.num_rows for step in done] == [0, 7]
    first, alone = (step.level for step in done)
    assert first == plan.levels[0]
    assert alone.threshold < plan.levels[2].threshold
    # Of noise and of delta it takes all but what the first round had, and no more.
    spent = sum(1 / level.sigma**2 for level in (first, alone))
    priced = sum(1 / level.sigma**2 for level in plan.levels)
    assert spent <= priced
    assert spent == pytest.approx(priced, rel=1e-2)
    assert new_delta(first) + new_delta(alone) <= sum(map(new_delta, plan.levels)) * (1 + 2**-40)


@pytest.mark.parametrize("method", ["sips", "adaptive"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.01), (0.5, 0.03), (3, 0.01)])
def test_one_round_alone_costs_no_more_than_those_it_replaces_compose_to(method, epsilon, delta):
    """A ledger composes the priced rounds: two thresholds together cost a little less than the sum
    of their deltas, so one threshold may not cost that sum."""
    plan = items(epsilon=epsilon, delta=delta, max_items=30, method=method)
    first, *later = plan.levels
    both = first, round_alone(later)
    others = plan.events[2 * len(plan.levels) :]  # which are of no round
    alone = compose(
        [
            *(GaussianEvent(level.sigma) for level in both),
            *(DeltaEvent(new_delta(level)) for level in both),
            *others,
        ]
    )
    priced = compose(plan.events)
    assert alone.infinite_loss <= priced.infinite_loss
    assert alone.delta(epsilon) <= priced.delta(epsilon) <= delta


def test_shares_grow_from_round_to_round():
    shares = sips_shares()
    assert sum(shares) == pytest.approx(1)
    assert shares[1] / shares[2] == pytest.approx(0.15)
    assert shares[0] / shares[1] == pytest.approx(0.15)
