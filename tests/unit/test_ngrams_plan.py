"""Plans of `ngrams`: what they cost, what they show, what they refuse."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from dphh import Corpus, UsageError, ngrams, plan_from_json
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.dpne import ASSUMED_WORDS, spurious_threshold
from dphh.mechanisms.ngrams.forecast.price import budget_of, words_alone, words_rounds
from dphh.privacy.accounting import compose
from dphh.privacy.gaussian import gaussian_sigma

METHODS = ("forecast", "dpne")
GRID = 1 / 1024
MSNBC = {"max_n": 6, "epsilon": 1.0, "delta": 1e-7, "max_items": 10, "method": "dpne"}
THREE = MSNBC | {"max_n": 3}


def joint(sigmas):
    return 1 / math.sqrt(sum(sigma**-2 for sigma in sigmas))


# Prices


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-8), (8.0, 1e-30), (60.0, 1e-4)])
@pytest.mark.parametrize("max_items", [1, (4, 3, 2)])
def test_what_is_done_costs_no_more_than_what_is_claimed(method, epsilon, delta, max_items):
    cap = 4 if method == "forecast" else max_items
    plan = ngrams(max_n=3, epsilon=epsilon, delta=delta, max_items=cap, method=method)
    spent = compose(plan.events).delta(epsilon)
    assert 0.4 * delta < spent <= delta
    assert sum(share for _, share in plan.privacy.delta_shares) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("max_items", [1, 30])
def test_new_words_pass_the_ladders_rounds_within_a_quarter_of_delta(max_items):
    """Of a user of t new words, some pass; on either way that level 1 can go."""
    budget = budget_of(1.0, 1e-7, 5, max_items, Counting())
    first, second, third = words_rounds(budget, 5, max_items)
    alone = words_alone(budget, 5, max_items)

    def passing(level):
        t = np.arange(1, max_items + 1)
        weights = 2.0**level.grid_bits / np.sqrt(t)
        return (t * norm.sf((level.threshold_grid - 0.5 - weights) / level.sigma_grid)).max()

    for way in ((first, second, third), (first, alone)):
        assert 0.2e-7 < sum(passing(level) for level in way) <= 0.2501e-7


@pytest.mark.parametrize("method, apart", [("forecast", 2.0**-132), ("dpne", 2.0**-170)])
@pytest.mark.parametrize("counts", [None, 0.3])
def test_a_ladder_is_charged_for_the_distance_of_all_its_draws(method, apart, counts):
    """Of each longer length: of a forecast four draws a row, of up to 2^16 rows, each within 2^-150
    (tests/forecast/test_rounds.py); of DPNE 2^62 draws of the table, each within 2^-232."""
    for max_n in (2, 3, 7):
        plan = ngrams(
            max_n=max_n, epsilon=1.0, delta=1e-7, max_items=4, method=method, counts=counts
        )
        charged = plan.events[-1].delta
        assert charged >= (max_n - 1) * apart * (1 + math.e)
        assert charged < 10 * max_n * apart * (1 + math.e)


def test_at_usual_settings_nearly_all_that_is_claimed_is_used():
    plan = ngrams(**MSNBC)
    assert 0.99e-7 < compose(plan.events).delta(1.0) <= 1e-7


@pytest.mark.parametrize("options", [{}, {"decay": 0.8}, {"shares": (1, 2, 3)}])
def test_the_events_are_the_levels(options):
    plan = ngrams(**THREE, **options)
    sigmas = [level.sigma for level in plan.levels]
    assert [event.sigma for event in plan.events if event.kind == "gaussian"] == sigmas
    exact = gaussian_sigma(1.0, 0.5e-7)
    assert exact <= joint(sigmas) <= exact + 2 * GRID


def test_noise_and_threshold_for_msnbc_are_the_papers():
    """facts.md: sigma* 4.8087, sigma_k 11.7789, rho_1 67.82."""
    plan = ngrams(**MSNBC)
    base, *above = plan.levels
    assert isinstance(base, SetUnionLevel)
    assert joint(level.sigma for level in plan.levels) == pytest.approx(4.8087, abs=1e-3)
    for level in plan.levels:
        assert level.sigma == pytest.approx(11.7789, abs=1.5 * GRID)
    assert base.threshold == pytest.approx(67.82, abs=0.015)
    assert [level.level for level in above] == [2, 3, 4, 5, 6]
    assert all(isinstance(level, PrunedLevel) and level.threshold is None for level in above)


def test_decay_makes_each_levels_noise_so_much_of_the_one_below():
    for decay in (0.6, 1.3):
        sigmas = [level.sigma for level in ngrams(**THREE, decay=decay).levels]
        for below, here in pairwise(sigmas):
            assert here == pytest.approx(decay * below, abs=2 * GRID)


def test_shares_are_of_the_whole_precision_whatever_they_add_up_to():
    shares = (1, 2, 3)
    sigmas = [level.sigma for level in ngrams(**THREE, shares=shares).levels]
    for sigma, share in zip(sigmas, shares, strict=True):
        assert (joint(sigmas) / sigma) ** 2 == pytest.approx(share / 6, rel=1e-3)
    tenfold = ngrams(**THREE, shares=[10.0 * share for share in shares])
    assert tenfold.levels == ngrams(**THREE, shares=shares).levels


def test_caps_go_to_their_levels():
    plan = ngrams(**(THREE | {"max_items": [7, 8, 9]}))
    assert [level.max_items for level in plan.levels] == [7, 8, 9]


# Thresholds of the pruned levels


@pytest.mark.parametrize("below, valid", [(17, 289), (254, 4113), (10, 3), (5, 5), (1, 10**12)])
@pytest.mark.parametrize("spurious", [0.5, 0.01, 1e-12])
def test_a_threshold_lets_through_no_more_than_the_share_that_is_tolerated(below, valid, spurious):
    level = ngrams(**MSNBC, spurious=spurious).levels[1]
    threshold = spurious_threshold(level, below, valid)
    allowed = spurious * min(1, below / valid)
    passes, one_less = norm.sf((np.array([threshold, threshold - 1]) - 0.5) / level.sigma_grid)
    assert passes <= allowed * (1 + 1e-9)
    assert one_less > allowed * (1 - 1e-9)


@pytest.mark.parametrize("below", [0, 3])
def test_where_nothing_is_valid_there_is_a_threshold_all_the_same(below):
    level = ngrams(**MSNBC).levels[1]
    assert spurious_threshold(level, below, 0) == spurious_threshold(level, 1, 1)


# What will be found


@pytest.mark.parametrize("options", [{}, {"decay": 0.7}, {"spurious": 0.2, "pruning": "single"}])
def test_so_many_users_are_enough_in_simulation(options):
    """A gram of three different words, by users who hold nothing else, the noise drawn anew."""
    plan = ngrams(**(THREE | {"max_items": 100}), **options)
    assert [length for length, _ in plan.finds.users_by_length] == [1, 2, 3]
    rng, runs = np.random.default_rng(5), 200_000
    for length, users in plan.finds.users_by_length:
        for count, enough in ((users, True), (users - 1, False)):
            found = np.ones(runs, dtype=bool)
            failing = 0.0
            for level in plan.levels[:length]:
                pieces = length - level.level + 1
                if level.threshold is None:
                    rho = level.sigma * norm.isf(level.spurious / ASSUMED_WORDS)
                else:
                    rho = level.threshold
                held = count / math.sqrt(pieces)
                noise = rng.normal(0, level.sigma, (runs, pieces))
                found &= (held + noise > rho).all(axis=1)
                failing += pieces * norm.cdf((rho - held) / level.sigma)
            if enough:
                assert found.mean() > 0.9 - 0.005
            else:  # by the sum over its pieces, which is what is promised, one fewer is too few
                assert failing > 0.1 - 0.005


def test_no_number_is_promised_where_a_user_may_not_count_for_all_pieces():
    plan = ngrams(**(MSNBC | {"max_n": 5, "max_items": 3}))
    assert [length for length, _ in plan.finds.users_by_length] == [1, 2, 3]
    plan = ngrams(**(MSNBC | {"max_n": 5, "max_items": (5, 4, 1, 2, 1)}))
    assert [length for length, _ in plan.finds.users_by_length] == [1, 2, 3]


# As objects


@pytest.mark.parametrize("method", METHODS)
def test_plans_go_through_json_and_back(method):
    corpus = Corpus("/not/there/*.parquet", user="who", text="what", account="n")
    for options in ({}, {"decay": 0.8}, {"shares": (3, 2, 1), "pruning": "single"}):
        if method == "forecast" and options:
            continue
        caps = 5 if method == "forecast" else [5, 6, 7]
        plan = ngrams(
            corpus, max_n=3, epsilon=1, delta=1e-7, max_items=caps, method=method, **options
        )
        assert plan_from_json(plan.dumps()) == plan
        assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan
        assert {plan, plan_from_json(plan.dumps())} == {plan}


def test_a_plan_whose_levels_were_edited_is_refused():
    found = ngrams(**MSNBC).to_json()
    found["levels"][3]["sigma_grid"] = 1
    with pytest.raises(UsageError, match="edited, or written by another version"):
        plan_from_json(found)


def test_whole_numbers_and_floats_ask_for_the_same():
    one = ngrams(max_n=2, epsilon=1, delta=1e-7, method="dpne", decay=1, shares=[1, 2])
    two = ngrams(max_n=2, epsilon=1.0, delta=1e-7, method="dpne", decay=1.0, shares=(1.0, 2.0))
    assert one.dumps() == two.dumps()


# Errors, frozen

SAID = [
    ({"max_n": 0}, "max_n: found 0; give a whole number from 1 to 100"),
    ({"max_n": 101}, "max_n: found 101; give a whole number from 1 to 100"),
    ({"max_n": True}, "max_n: found True; give a whole number from 1 to 100"),
    ({"max_n": 2.0}, "max_n: found 2.0; give a whole number from 1 to 100"),
    ({"method": "dpsu"}, "method: found 'dpsu'; give one of forecast, dpne"),
    ({"pruning": "none"}, "pruning: found 'none'; give one of both, single"),
    ({"spurious": 0}, "spurious: found 0; give a share from 1e-12 to 0.5, such as 0.01"),
    ({"spurious": 0.6}, "spurious: found 0.6; give a share from 1e-12 to 0.5, such as 0.01"),
    ({"spurious": math.nan}, "spurious: found nan; give a share from 1e-12 to 0.5, such as 0.01"),
    ({"decay": 0}, "decay: found 0; give a number from 0.1 to 10: below 1, longer n-grams get "
     "less noise; 1 gives equal shares"),
    ({"decay": "half"}, "decay: found 'half'; give a number from 0.1 to 10: below 1, longer "
     "n-grams get less noise; 1 gives equal shares"),
    ({"shares": (1, 2)}, "shares: found (1, 2); give 3 positive numbers, one for each length"),
    ({"shares": 0.5}, "shares: found 0.5; give 3 positive numbers, one for each length"),
    ({"shares": (1, 0, 1)},
     "shares: found (1, 0, 1); give 3 positive numbers, one for each length"),
    ({"shares": (1, "a", 1)},
     "shares: found (1, 'a', 1); give 3 positive numbers, one for each length"),
    ({"shares": (1, math.inf, 1)},
     "shares: found (1, inf, 1); give 3 positive numbers, one for each length"),
    ({"shares": (1, 1, 1), "decay": 0.5},
     "decay, shares: found both; each divides the budget, so give only one"),
    ({"method": "forecast", "decay": 0.5, "max_items": (1, 2, 3)},
     "max_items, decay: does not apply to method='forecast', the default, which bounds words only "
     "and divides the budget itself; leave it out, or give method='dpne'"),
    ({"max_items": (1, 2)}, "max_items: found 2 numbers for 3 lengths; give one number, or one for "
     "each length"),
    ({"max_items": 1.5},
     "max_items: found 1.5; give a whole number from 1, or one for each length"),
    ({"max_items": "all"},
     "max_items: found 'all'; give a whole number from 1, or one for each length"),
    ({"max_items": (1, 0, 1)}, "max_items: found 0; give a whole number from 1, "
     "about as many different items as a typical user holds"),
    ({"epsilon": -1}, "epsilon: found -1; give a number above 0, such as 1.0, and at most 100: "
     "a larger one protects no one. "
     "ngrams by its default method can be priced up to about 60"),
]  # fmt: skip


@pytest.mark.parametrize("options, said", SAID)
def test_what_cannot_be_planned_is_refused_in_these_words(options, said):
    with pytest.raises(UsageError) as refused:
        ngrams(**({"max_n": 3, "epsilon": 1, "delta": 1e-7, "method": "dpne"} | options))
    assert str(refused.value) == said


def test_the_forecast_ladder_is_what_is_run_unless_another_method_is_asked_for():
    three = {"max_n": 3, "epsilon": 1, "delta": 1e-7}
    assert ngrams(**three) == ngrams(**three, method="forecast")
    for name, value in (("decay", 0.5), ("shares", (1, 2, 3)), ("pruning", "single")):
        with pytest.raises(
            UsageError, match=f"^{name}: does not apply to method='forecast', the default"
        ):
            ngrams(**three, **{name: value})
