"""The integer mathematics of set union, against decimals, brute force and many digits."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import pytest

from dphh.errors import UsageError
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.set_union import (
    distinct_weights,
    grid_bits,
    new_item_delta,
    new_item_threshold,
    weight,
)

HELD = [*range(1, 2000), *random.Random(1).sample(range(2000, 10**6), 3000), 10**6, 4**10]


def test_weights_are_the_floor_of_two_to_the_b_over_the_root_of_t():
    with localcontext() as context:
        context.prec = 60
        for held in HELD:
            for bits in (0, 3, 10):
                assert weight(bits, held) == int(Decimal(2**bits) / Decimal(held).sqrt())


def test_a_users_norm_is_never_above_one_and_hardly_below():
    for held in HELD:
        assert held * weight(10, held) ** 2 <= 4**10
    for held in range(1, 301):
        assert Fraction(held * weight(10, held) ** 2, 4**10) > Fraction(96, 100)


@pytest.mark.parametrize("bits, most", [(0, 1), (2, 16), (5, 700), (5, 1024), (10, 30_000)])
def test_each_weight_is_listed_with_the_largest_t_that_has_it(bits, most):
    brute = {weight(bits, held): held for held in range(1, most + 1)}
    assert distinct_weights(bits, most) == [(held, w) for w, held in brute.items()]


def exact_tail(sigma, k):
    """P[round(N(0, sigma^2)) >= k] with 60 digits."""
    with mpmath.workdps(60):
        return mpmath.erfc((mpmath.mpf(k) - mpmath.mpf(1) / 2) / (sigma * mpmath.sqrt(2))) / 2


def brute_delta(sigma, bits, most, threshold):
    return max(
        held * exact_tail(sigma, threshold - weight(bits, held)) for held in range(1, most + 1)
    )


@pytest.mark.parametrize(
    "sigma, bits, most, delta",
    [
        (3977, 10, 40, 5e-6),
        (1360, 10, 7, 5e-8),
        (64, 5, 200, 1e-3),
        (5347, 10, 3, 1e-30),
        (9, 3, 64, 0.2),
    ],
)
def test_the_threshold_is_the_least_that_keeps_new_items_back(sigma, bits, most, delta):
    noise = rounded_gaussian(sigma)
    threshold = new_item_threshold(noise, bits, most, delta)
    assert brute_delta(sigma, bits, most, threshold) <= delta
    assert brute_delta(sigma, bits, most, threshold - 1) > delta


@pytest.mark.parametrize("most", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("delta", [0.1, 1e-7, 1e-30])
def test_what_a_threshold_costs_is_at_most_what_was_asked_and_about_it(most, delta):
    noise = rounded_gaussian(4000)
    cost = new_item_delta(noise, 10, most, new_item_threshold(noise, 10, most, delta))
    assert 0.9 * delta < cost <= delta
    assert new_item_delta(noise, 10, most, -(10**6)) == 1.0  # a threshold that hides nothing


def test_a_cap_whose_share_would_round_to_nothing_is_refused():
    assert grid_bits(5.0, 4**10) == 10
    with pytest.raises(UsageError, match="at most 1,048,576"):
        grid_bits(5.0, 4**10 + 1)
