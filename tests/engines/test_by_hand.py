"""Shares, noise and thresholds that a caller gives: what is stated, booked, run and verified."""

import json
from math import erfc, exp, sqrt
from pathlib import Path
from typing import Any

import pytest

from dphh import Release, UsageError, items, ngrams, verify
from dphh.consistency import check_consistency

pytestmark = pytest.mark.filterwarnings("ignore::dphh.errors.Notice")
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ITEMS = {**BUDGET, "max_items": 20}
DPNE = {**ITEMS, "max_n": 2, "method": "dpne"}


def tail(x: float) -> float:
    return erfc(x / sqrt(2)) / 2


def curve(epsilon: float, mu: float) -> float:
    """A Gaussian's delta at epsilon (Balle & Wang 2018)."""
    if mu == 0:
        return 0.0
    return tail(epsilon / mu - mu / 2) - exp(epsilon) * tail(epsilon / mu + mu / 2)


def new_items(sigma: float, threshold: float, max_items: int) -> float:
    """The most that a user of new items alone shows: t times the chance of one of t items."""
    held = range(1, max_items + 1)
    return max(t * tail((threshold - 1 / sqrt(t)) / sigma) for t in held)


def of_one_round(epsilon: float, sigma: float, threshold: float, max_items: int) -> float:
    """The theorem of "gaussian" in docs/items.md: the worst share of new items."""
    d = new_items(sigma, threshold, max_items)
    shares = [n / 2000 for n in range(2001)]
    return max(x * d + (1 - x * d) * curve(epsilon, sqrt(1 - x) / sigma) for x in shares)


@pytest.mark.parametrize(("sigma", "threshold"), [(6.0, 40.0), (8.0, 50.0), (5.0, 30.0)])
def test_one_round_states_what_its_noise_and_threshold_cost(sigma, threshold):
    plan = items(**ITEMS, method="gaussian", sigma=sigma, threshold=threshold, counts=0)
    (level,) = plan.levels
    assert (level.sigma, level.threshold) == (sigma, threshold)
    stated = plan.privacy.epsilon
    assert of_one_round(stated, sigma, threshold, 20) <= 1e-6 * (1 + 1e-5)
    assert of_one_round(stated * 0.97, sigma, threshold, 20) > 1e-6
    assert plan["epsilon"] == 1.0


def test_dpne_states_what_the_noise_of_its_lengths_and_its_threshold_cost():
    plan = ngrams(**DPNE, sigma=[8, 10], threshold=50, counts=0)
    assert [level.sigma for level in plan.levels] == [8.0, 10.0]
    assert plan.levels[0].threshold == 50.0
    d, mu = new_items(8.0, 50.0, 20), sqrt(1 / 64 + 1 / 100)
    stated = plan.privacy.epsilon
    assert d + (1 - d) * curve(stated, mu) == pytest.approx(1e-6, rel=1e-5)


def test_either_may_be_left_to_the_budget():
    noise = items(**ITEMS, method="gaussian", sigma=6.0)
    assert noise.levels[0].sigma == 6.0
    assert noise.levels[0].threshold == pytest.approx(32, abs=1)
    higher = items(**ITEMS, method="gaussian", threshold=40.0)
    assert higher.levels[0].threshold == 40.0
    usual = items(**ITEMS, method="gaussian")
    assert higher.levels[0].sigma == usual.levels[0].sigma
    assert higher.privacy.epsilon <= 1.0
    of_words = ngrams(**DPNE, threshold=80.0, shares=[1, 2])
    assert of_words.levels[0].threshold == 80.0
    assert of_words.levels[1].sigma == ngrams(**DPNE, shares=[1, 2]).levels[1].sigma


def test_counts_take_their_share_beside_the_noise_that_is_given():
    """By the default a tenth of the whole: of 1 / sigma^2, a ninth of what finding has."""
    plan = items(**ITEMS, method="gaussian", sigma=6.0, threshold=40.0)
    without = items(**ITEMS, method="gaussian", sigma=6.0, threshold=40.0, counts=0)
    assert plan.levels == without.levels
    (counts,) = (event for event in plan.events if getattr(event, "of_counts", False))
    assert counts.sigma == pytest.approx(18.0, rel=1e-6)
    mu = sqrt(1 / 36 + 1 / 18**2)
    assert curve(plan.privacy.epsilon, mu) == pytest.approx(1e-6, rel=0.01)


def test_rounds_of_sips_are_as_many_as_shares():
    published = items(**ITEMS, method="sips")
    assert items(**ITEMS, method="sips", shares=[0.09, 0.3, 1]).levels == published.levels
    first, second = items(**ITEMS, method="sips", shares=[1, 3], counts=0).levels
    assert first.sigma / second.sigma == pytest.approx(sqrt(3), rel=1e-3)


def test_a_run_is_booked_by_what_it_costs_and_verified(engine, written, ledger, tmp_path):
    corpus = written([(user, f"often{user % 3} own{user}") for user in range(600)])
    ledger.add("notes", corpus, 2.0, 1e-5)
    plans = {
        "gaussian": items(corpus, **ITEMS, method="gaussian", sigma=6, threshold=40, counts=0),
        "sips": items(corpus, **ITEMS, method="sips", shares=[1, 1], counts=0),
        "dpne": ngrams(corpus, **DPNE, sigma=[12, 12], threshold=70, counts=0),
    }
    for name, plan in plans.items():
        out = tmp_path / name
        release = plan.run(engine=engine, ledger=ledger, out=out)
        words = release.to_polars().filter(level=1)  # DPNE may release spurious pairs
        assert {*words["item"]} == {"often0", "often1", "often2"}
        assert release.privacy.epsilon == plan.privacy.epsilon
        assert any("'notes' paid" in said for line in verify(out, ledger=ledger) for said in line)
    booked = [run.epsilon for run in ledger.runs()]
    assert sorted(booked) == sorted(plan.privacy.epsilon for plan in plans.values())
    assert max(booked) == 1.0 and sorted(booked)[1] < 1.0


def test_a_release_that_was_made_with_other_noise_than_it_says_is_refused(written, tmp_path):
    corpus = written([(user, f"often{user % 3}") for user in range(600)])
    plan = items(corpus, **ITEMS, method="gaussian", sigma=6, threshold=40, counts=0)
    plan.run(out=tmp_path / "out")
    manifest = Path(tmp_path / "out/release.json")
    said = json.loads(manifest.read_text())
    said["parameters"]["sigma"] = 7.0
    manifest.write_text(json.dumps(said))
    with pytest.raises(UsageError, match="edited or damaged"):
        check_consistency(Release.load(tmp_path / "out"))


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        (items, {"sigma": 6.0}, "sigma: goes with method='gaussian', found 'auto'"),
        (items, {"method": "gaussian", "shares": [1, 2]}, "shares: goes with method='sips'"),
        (items, {"method": "sips", "shares": []}, "1 to 20 positive numbers"),
        (items, {"method": "sips", "shares": [1, -1]}, "1 to 20 positive numbers"),
        (items, {"method": "gaussian", "sigma": float("nan")}, "a number of users above 0"),
        (items, {"method": "gaussian", "threshold": True}, "a number of users above 0"),
        (items, {"method": "gaussian", "sigma": 2.0}, r"more than epsilon 1; give epsilon=2.3886,"),
        (items, {"method": "gaussian", "threshold": 5.0}, "1; give more noise or a higher thr"),
        (ngrams, {"sigma": [5, 5], "method": "forecast"}, "does not apply to method='forecast'"),
        (ngrams, {"sigma": [5, 5], "shares": [1, 1]}, "leave one of them out"),
        (ngrams, {"sigma": [5]}, "2 positive numbers, one for each length"),
        (ngrams, {"sigma": [2, 5]}, "give epsilon=2"),
    ],
)
def test_what_is_wrong_or_costs_too_much_is_refused(plan, options, message):
    with pytest.raises(UsageError, match=message):
        plan(**{**(ITEMS if plan is items else DPNE), **options})


def test_the_epsilon_that_a_refusal_names_is_enough():
    with pytest.raises(UsageError) as refused:
        items(**ITEMS, method="gaussian", sigma=2.0)
    epsilon = float(str(refused.value).split("epsilon=")[1].split(",")[0])
    items(**{**ITEMS, "epsilon": epsilon}, method="gaussian", sigma=2.0)
