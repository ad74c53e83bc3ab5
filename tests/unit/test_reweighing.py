"""Weights that follow earlier noise, against many digits; and what a user gives by them."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh.udfs.kernel.contributions import ONE_W, contributions
from dphh.udfs.rules.weights import (
    LEAST_W,
    MOST_PRECISION,
    BoundedWeights,
    ReweighingNumbers,
    RoundNoise,
    floor_roots,
    round_precision,
)


@given(
    noisy_sum=st.integers(-(2**52), 2**52),
    sigmas=st.lists(st.integers(50, 2**17), min_size=1, max_size=3),
    threshold=st.integers(1, 2**22),
)
def test_w_is_a_power_of_where_an_item_stands(noisy_sum, sigmas, threshold):
    grids = [RoundNoise(sigma, 10) for sigma in sorted(sigmas, reverse=True)]
    follows = ReweighingNumbers.after_rounds(grids, threshold, 10)
    (w,) = follows.relative_weights(np.array([noisy_sum])).tolist()
    assert LEAST_W <= w <= ONE_W
    with mpmath.workdps(40):
        stands = max(mpmath.mpf(noisy_sum) / follows.total_precision + follows.deviation, 0)
        z = stands / threshold
        exact = z ** mpmath.mpf("0.75") if z < 1 else z ** mpmath.mpf("-0.5")
        # Floors: of where it stands, of z in 2^-15, and of the roots.
        slack = (1 + mpmath.mpf(ONE_W) / threshold) / max(z * ONE_W, 1) + mpmath.mpf(4) / LEAST_W
        assert w <= max(float(exact), 1 / 20) * ONE_W * (1 + float(slack)) + 2
        assert w >= min(float(exact) * ONE_W * (1 - float(slack)) - 2, ONE_W)


def test_the_estimate_is_of_the_least_variance():
    sigmas = [28_000, 11_000, 4_200]
    grids = [RoundNoise(sigma, 10) for sigma in sigmas]
    follows = ReweighingNumbers.after_rounds(grids, 20_000, 10)
    parts = [round_precision(grids[0], grid) for grid in grids]
    assert follows.total_precision == sum(parts)
    precision = np.array([1 / sigma**2 for sigma in sigmas])
    assert np.array(parts) / sum(parts) == pytest.approx(precision / precision.sum(), rel=0.01)
    assert follows.deviation == pytest.approx(precision.sum() ** -0.5, abs=1)
    # Sums of so many users' weights stay in 64 bits.
    assert round_precision(RoundNoise(2**17, 10), RoundNoise(50, 10)) == MOST_PRECISION


def test_on_finer_grids_the_estimate_is_the_same():
    """Three rounds of half the noise each, by finer grids or by a smaller sigma."""
    finer = [RoundNoise(32_000, 7), RoundNoise(32_000, 8), RoundNoise(32_000, 9)]
    one_grid = [RoundNoise(32_000, 7), RoundNoise(16_000, 7), RoundNoise(8_000, 7)]
    by_finer, by_one = (
        ReweighingNumbers.after_rounds(finer, 4000 << 3, 10),
        ReweighingNumbers.after_rounds(one_grid, 4000, 7),
    )
    assert by_finer == by_one
    users = np.array([900, 1100, 1000])  # an item's noised weights
    told = [
        sum(
            round_precision(grids[0], grid) * int(weight * 2**grid.bits)
            for weight, grid in zip(users, grids, strict=True)
        )
        for grids in (finer, one_grid)
    ]
    assert (
        told[0] == told[1] == by_one.total_precision * 128 * int(users @ np.array([1, 4, 16])) // 21
    )


def test_what_stands_nearer_the_threshold_is_given_more():
    follows = ReweighingNumbers.after_rounds([RoundNoise(1000, 10)], 20_000, 10)
    w = follows.relative_weights(16 * np.arange(-40_000, 19_000, 10))
    assert (np.diff(w) >= 0).all()
    w = follows.relative_weights(16 * np.arange(19_001, 10**7, 1000))
    assert (np.diff(w) <= 0).all()
    assert follows.relative_weights(np.array([16 * 19_000])) == ONE_W
    assert follows.relative_weights(np.array([-(2**50), 2**50])).tolist() == [LEAST_W, LEAST_W]


def test_roots_are_floored():
    near = [n * n + step for n in (1, 2, 1000, 2**20 - 1, 2**25, 2**26 - 1) for step in (-1, 0, 1)]
    squares = np.array([0, *near])
    found = floor_roots(squares)
    assert (found**2 <= squares).all()
    assert ((found + 1) ** 2 > squares).all()


def given_by(users: list[list[int]], rule: BoundedWeights) -> list[dict[int, int]]:
    """By each user alone."""
    return [
        summed(np.array([number]), np.array([len(held)]), np.array(held), rule)
        for number, held in enumerate(users)
    ]


def summed(*asked: Any) -> dict[int, int]:
    keys, weights = contributions(*asked, keeps_zeros=True)
    return dict(zip(keys.tolist(), weights.tolist(), strict=True))


@given(
    users=st.lists(
        st.lists(st.integers(0, 39), min_size=1, max_size=30, unique=True), min_size=1, max_size=6
    ),
    w=st.lists(st.sampled_from([LEAST_W, 2000, 2001, 20_000, ONE_W]), min_size=40, max_size=40),
    most=st.integers(1, 12),
    bits=st.sampled_from([4, 10]),
)
def test_a_user_gives_a_norm_of_a_unit_to_so_many_items_and_names_all(users, w, most, bits):
    rule, unit = BoundedWeights(most, bits, 5, w=np.array(w)), 2**bits
    alone = given_by(users, rule)
    for held, gave in zip(users, alone, strict=True):
        assert gave.keys() == set(held)
        some = {key: weight for key, weight in gave.items() if weight}
        assert len(some) <= most
        assert sum(weight**2 for weight in some.values()) <= unit**2
        if len(held) <= most:
            norm = sum(w[key] ** 2 for key in held) ** 0.5
            # A floor, and the norm rounded up: it is LEAST_W at the least.
            lost = [unit * w[key] / norm - gave[key] for key in held]
            assert -1e-9 <= min(lost) <= max(lost) <= 1 + 1024 / LEAST_W
        elif some and unit > 1000:  # of equal w any: but none of a smaller w than what is left
            least = min(w[key] for key in some)
            assert all(w[key] <= least for key in held if not gave[key])
    lengths = np.array([len(held) for held in users])
    keys = np.array([key for held in users for key in held])
    together = summed(np.arange(len(users)), lengths, keys, rule)
    sums: dict[int, int] = {}
    for gave in alone:
        for key, weight in gave.items():
            sums[key] = sums.get(key, 0) + weight
    assert together == sums


def test_an_item_without_a_noised_weight_is_an_error_and_not_a_default():
    """A default for what nobody held before would say that nobody did."""
    rule = BoundedWeights(3, 10, 5, w=np.array([ONE_W, 0]))
    with pytest.raises(RuntimeError, match="no weight of an earlier round"):
        given_by([[0, 1]], rule)
