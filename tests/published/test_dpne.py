"""DPNE's Table 5 (MSNBC, epsilon 1, delta 1e-7, Delta_0 10, eta 0.01), every method and length.

The paper gives one number a cell. Ours is the mean of a few runs, and has to lie within 3% of the
paper's, but for four standard errors of that mean. `SPREAD` holds the standard deviation of one
run, as measured over 4 to 8 runs of each method, rounded up. With DPHH_FULL=1 each method runs
five times; otherwise DPNE runs twice and the others, which spread less, once. Each run has a seed
of its own: four standard errors are too few to be safe from chance.

`dpsu-even` stands apart. Its claim of (epsilon, delta) covers six thresholds only if their deltas
add up to delta / 2. The paper's numbers come out if each length has the whole of delta / 2 for its
threshold, 6 delta / 2 in all, which the claim does not cover: the ledger refuses such a plan. Both
are run here, the paper's by a plan that is changed so, and says and pays what it costs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

from dphh import Corpus, UsageError, ngrams
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.set_union import new_item_delta, new_item_threshold
from dphh.testing import SeededRandomness
from tests.conftest import full

pytestmark = pytest.mark.published

EPSILON, DELTA, LENGTHS = 1.0, 1e-7, 6
TABLE_5 = {
    "dpne": (17, 254, 1273, 1954, 2221, 2020),
    "dpsu-all": (17, 249, 930, 1145, 1007, 768),
    "dpsu-even": (17, 246, 899, 1107, 996, 766),
    "dpsu-single": (17, 260, 1483, 2180, 2210, 1819),
}
TOTALS = {"dpne": 7739, "dpsu-all": 4116, "dpsu-even": 4031}
SPREAD = {
    "dpne": (0, 2, 7, 18, 19, 27),
    "dpsu-all": (0, 2, 9, 8, 8, 6),
    "dpsu-even": (0, 2, 10, 8, 20, 10),
    "dpsu-single": (0, 1, 8, 12, 12, 12),
}
SPREAD_OF_TOTALS = {"dpne": 42, "dpsu-all": 20, "dpsu-even": 20}


@pytest.fixture
def msnbc(shared_data):
    path = shared_data / "msnbc.parquet"
    if not path.exists():
        pytest.skip("needs msnbc.parquet")
    return Corpus(path, user="user_id", text="text")


def plan_of(method, max_n=LENGTHS):
    return ngrams(max_n=max_n, epsilon=EPSILON, delta=DELTA, max_items=10, method=method)


def runs_of(method):
    return 5 if full() else 2 if method == "dpne" else 1


def released(plan, corpus, runs):
    """How many of each length each run released: a row a run."""
    manifests = [run_of(plan, corpus, run).manifest for run in range(runs)]
    return np.array([[level["released"] for level in found["levels"]] for found in manifests])


@cache
def run_of(plan, corpus, seed):
    return plan.run(corpus=corpus, randomness=SeededRandomness(seed))


def over_thresholds_of(plan, release):
    """How many of each length stand over a plan's thresholds: under one seed, what it releases."""
    found = release.to_polars()
    over = [
        (pl.col("level") == level.level)
        & (pl.col("score") >= level.threshold_grid / 2**level.grid_bits)
        for level in plan.levels
    ]
    return [found.filter(passes).height for passes in over]


def near(found, paper, spread):
    """Prints the comparison, length by length, and says whether every one is near enough."""
    means, runs = found.mean(axis=0), len(found)
    paper, spread = np.array(paper), np.array(spread)
    print(f"paper {paper.tolist()}, here {means.round(1).tolist()} (mean of {runs})")
    return bool((np.abs(means - paper) <= 0.03 * paper + 4 * spread / np.sqrt(runs)).all())


@pytest.mark.parametrize("method", ["dpne", "dpsu-all"])
def test_as_many_of_each_length_are_found_as_in_the_paper(msnbc, method):
    found = released(plan_of(method), msnbc, runs_of(method))
    assert near(found, TABLE_5[method], SPREAD[method])
    total = found.sum(axis=1, keepdims=True)
    assert near(total, [TOTALS[method]], [SPREAD_OF_TOTALS[method]])


@pytest.mark.parametrize("length", range(1, LENGTHS + 1))
def test_as_many_are_found_as_in_the_paper_with_the_whole_budget_on_one_length(msnbc, length):
    method = "dpsu-single"
    found = released(plan_of(method, length), msnbc, runs_of(method))
    assert near(found, TABLE_5[method][length - 1 : length], SPREAD[method][length - 1 : length])


def of_the_paper(plan):
    """Every length's threshold for the whole of delta / 2, and what that costs."""
    levels, costs = [], []
    for level in plan.levels:
        noise = rounded_gaussian(level.sigma_grid)
        threshold = new_item_threshold(noise, level.grid_bits, level.max_items, DELTA / 2)
        levels.append(replace(level, threshold_grid=threshold))
        costs.append(new_item_delta(noise, level.grid_bits, level.max_items, threshold))
    gaussians = [event for event in plan.events if event.kind == "gaussian"]
    events = [*gaussians, *(DeltaEvent(cost) for cost in costs)]
    price = replace(plan.price, levels=tuple(levels), events=tuple(events))
    return replace(plan, price=price)


def test_dpsu_even_as_in_the_paper_costs_more_than_it_claims_and_ours_finds_less(msnbc):
    honest = plan_of("dpsu-even")
    papers = of_the_paper(honest)
    assert compose(honest.events).delta(EPSILON) <= DELTA
    with pytest.raises(UsageError, match="its events have delta"):
        papers.run(corpus=msnbc)
    cost = compose(papers.events).delta(EPSILON)
    assert cost > 3 * DELTA
    honestly = replace(papers.privacy, delta=cost)
    papers = replace(papers, price=replace(papers.price, privacy=honestly))
    runs = runs_of("dpsu-even")
    as_published = released(papers, msnbc, runs)
    ours = np.array([over_thresholds_of(honest, run_of(papers, msnbc, run)) for run in range(runs)])
    if full():
        assert (ours == released(honest, msnbc, runs)).all()
    assert near(as_published, TABLE_5["dpsu-even"], SPREAD["dpsu-even"])
    total = as_published.sum(axis=1, keepdims=True)
    assert near(total, [TOTALS["dpsu-even"]], [SPREAD_OF_TOTALS["dpsu-even"]])
    assert ours.sum(axis=1).mean() < as_published.sum(axis=1).mean() - 60
    assert near(ours.sum(axis=1, keepdims=True), [3894], [SPREAD_OF_TOTALS["dpsu-even"]])


def test_dpne_finds_more_than_every_baseline_that_spreads_its_budget(msnbc):
    dpne = released(plan_of("dpne"), msnbc, 1)[0]
    assert dpne.sum() > 1.8 * TOTALS["dpsu-all"]
    assert (dpne[2:] > TABLE_5["dpsu-all"][2:]).all()
