"""Plans of `ngrams`: what they cost, and what they find."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from dphh import Corpus, ngrams
from dphh.mechanisms.ngrams.dpne import ASSUMED_FOUND_WORDS, spurious_threshold
from dphh.mechanisms.ngrams.forecast.words import one_round_of_words
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.set_union.levels import SetUnionLevel

GRID = 1 / 1024
MSNBC = {
    "max_n": 6, "epsilon": 1.0, "delta": 1e-7, "max_items": 10, "method": "dpne", "counts": 0,
}  # fmt: skip
THREE = MSNBC | {"max_n": 3}


def joint(sigmas):
    return 1 / math.sqrt(sum(sigma**-2 for sigma in sigmas))


@pytest.mark.parametrize("max_items", [1, 30])
def test_new_words_pass_the_ladders_rounds_within_a_quarter_of_delta(max_items):
    """Of a user of t new words, some pass; on either way that level 1 can go."""
    price = ngrams(max_n=5, epsilon=1.0, delta=1e-7, max_items=max_items).price
    first, second, third = price.levels[:3]
    alone = one_round_of_words(price, third)

    def passing(level):
        t = np.arange(1, max_items + 1)
        weights = 2.0**level.grid_bits / np.sqrt(t)
        return (t * norm.sf((level.threshold_grid - 0.5 - weights) / level.sigma_grid)).max()

    for way in ((first, second, third), (first, alone)):
        assert 0.2e-7 < sum(passing(level) for level in way) <= 0.2501e-7


@pytest.mark.parametrize("method, apart", [("forecast", 2.0**-125), ("dpne", 2.0**-170)])
@pytest.mark.parametrize("counts", [0, 0.3])
def test_a_ladder_is_charged_for_the_distance_of_all_its_draws(method, apart, counts):
    """Of each longer length: of a forecast eight draws a cell, of up to 2^22 cells, each within
    2^-150 (tests/forecast/test_rounds.py); of DPNE 2^62 draws of the table, each within 2^-232."""
    for max_n in (2, 3, 7):
        plan = ngrams(
            max_n=max_n, epsilon=1.0, delta=1e-7, max_items=4, method=method, counts=counts
        )
        charged = plan.events[-1].delta
        assert charged >= (max_n - 1) * apart * (1 + math.e)
        assert charged < 10 * max_n * apart * (1 + math.e)


PRIOR = {"prior": pl.DataFrame({"item": ["a", "b"], "count": [9, 5]}), "prior_is_public": True}
NOWHERE = Corpus("/not/there/*.parquet", user="who", text="what")


@pytest.mark.parametrize("max_n", [1, 3])
def test_with_a_prior_the_words_draws_are_charged_too(max_n):
    charged = ngrams(NOWHERE, max_n=max_n, epsilon=1.0, delta=1e-7, **PRIOR).events[-1].delta
    assert max_n * 2.0**-132 * (1 + math.e) <= charged


@pytest.mark.parametrize("max_items", [1, 30])
def test_words_that_a_list_lacks_pass_each_round_as_seldom_as_is_booked(max_items):
    plan = ngrams(NOWHERE, max_n=2, epsilon=1.0, delta=1e-7, max_items=max_items, **PRIOR)
    level, (_, *booked) = plan.levels[0], plan.events[:3]
    t = np.arange(1, max_items + 1)
    for event, norm_of_user, threshold in zip(
        booked,
        (math.sqrt(0.98) * level.first_unit, level.second_unit),
        (level.first_threshold_grid, level.second_threshold_grid),
        strict=True,
    ):
        weights = np.floor(norm_of_user / np.sqrt(t))
        passing = (t * norm.sf((threshold - 0.5 - weights) / level.sigma_grid)).max()
        assert 0.999 * passing < event.delta < 1.001 * passing


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


def test_shares_are_of_the_whole_precision_whatever_they_add_up_to():
    shares = (1, 2, 3)
    sigmas = [level.sigma for level in ngrams(**THREE, shares=shares).levels]
    for sigma, share in zip(sigmas, shares, strict=True):
        assert (joint(sigmas) / sigma) ** 2 == pytest.approx(share / 6, rel=1e-3)
    tenfold = ngrams(**THREE, shares=[10.0 * share for share in shares])
    assert tenfold.levels == ngrams(**THREE, shares=shares).levels


@pytest.mark.parametrize("below, valid", [(17, 289), (254, 4113), (10, 3), (5, 5), (1, 10**12)])
@pytest.mark.parametrize("spurious", [0.5, 0.01, 1e-12])
def test_a_threshold_lets_through_no_more_than_the_share_that_is_tolerated(below, valid, spurious):
    level = ngrams(**MSNBC, spurious=spurious).levels[1]
    threshold = spurious_threshold(level, below, valid)
    allowed = spurious * min(1, below / valid)
    passes, one_less = norm.sf((np.array([threshold, threshold - 1]) - 0.5) / level.sigma_grid)
    assert passes <= allowed * (1 + 1e-9)
    assert one_less > allowed * (1 - 1e-9)


@pytest.mark.parametrize("options", [{}, {"shares": (4, 5, 6)}, {"spurious": 0.2}])
def test_so_many_users_are_enough(options):
    """For a gram of three different words, by users who hold nothing else."""
    plan = ngrams(**(THREE | {"max_items": 100}), **options)
    assert [length for length, _ in plan.finds.users_by_length] == [1, 2, 3]

    def chances(length, users):
        """That all pieces pass, whose noise is independent; and the sum of those that fail."""
        found, failing = 1.0, 0.0
        for level in plan.levels[:length]:
            pieces = length - level.level + 1
            rho = level.threshold
            if rho is None:
                rho = level.sigma * norm.isf(level.spurious / ASSUMED_FOUND_WORDS)
            fails = norm.sf((users / math.sqrt(pieces) - rho) / level.sigma)
            found, failing = found * (1 - fails) ** pieces, failing + pieces * fails
        return found, failing

    for length, users in plan.finds.users_by_length:
        assert chances(length, users)[0] > 0.9 - 1e-3
        # By the sum over its pieces, which is what is promised, one fewer is too few.
        assert chances(length, users - 1)[1] > 0.1 - 1e-3


def test_no_number_is_promised_where_a_user_may_not_count_for_all_pieces():
    plan = ngrams(**(MSNBC | {"max_n": 5, "max_items": 3}))
    assert [length for length, _ in plan.finds.users_by_length] == [1, 2, 3]
