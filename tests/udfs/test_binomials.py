"""Binomials of any size: their law, and decisions that no float may get wrong."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from dphh.testing import SeededRandomness
from dphh.udfs.noise.binomials import (
    _accepts_by_digits,
    _verdicts_by_floats,
    draw_binomial_of_any_size,
    draw_multinomial,
)


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (40, Fraction(1, 3)),
        (10_000, Fraction(1, 10_000)),
        (2**80, Fraction(3, 2**80)),
        (1_100, Fraction(1, 2)),
        (10**6, Fraction(1, 10**3)),
        (10**10, Fraction(1587, 10_000)),
        (10**12, Fraction(999, 1_000)),
    ],
)
def test_draws_follow_the_binomial(n: int, p: Fraction) -> None:
    randomness = SeededRandomness(7)
    drawn = [draw_binomial_of_any_size(randomness, n, p, f"{i}") for i in range(1_500)]
    jitter = np.random.default_rng(1).random(len(drawn))
    law = stats.binom(n, float(p)) if n < 2**63 else stats.poisson(3)  # 3 / 2^80 apart
    uniform = law.cdf(drawn) - jitter * law.pmf(drawn)
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


def test_the_largest_keep_their_mean_and_deviation() -> None:
    n, p, randomness = 2**62, Fraction(1, 3), SeededRandomness(8)
    drawn = [draw_binomial_of_any_size(randomness, n, p, f"{i}") for i in range(1_000)]
    off = np.array([float(x - n // 3) for x in drawn]) / (n * 2 / 9) ** 0.5
    assert abs(off.mean()) < 0.15 and abs(off.std() - 1) < 0.12
    assert stats.kstest(off, "norm").pvalue > 1e-4


def test_a_proposal_is_accepted_just_where_integers_say_so() -> None:
    n, p, mode = 1_200, Fraction(2, 5), 480
    k = np.arange(-90, 91, 9)
    block = np.zeros_like(k)
    exact = [Fraction(comb(n, mode + int(j)), comb(n, mode)) * Fraction(2, 3) ** int(j) for j in k]
    for top in np.random.default_rng(2).integers(0, 2**63, 8, dtype=np.uint64):
        verdicts = _verdicts_by_floats(n, p, mode, k, block, np.full(len(k), top, dtype=np.uint64))
        for j, ratio, verdict in zip(k, exact, verdicts, strict=True):
            right = 1 if Fraction(2 * int(top) + 1, 2**65) < ratio / 2 else -1
            assert verdict in (0, right)
            uniform = (int(top) << 192) | 1 << 191
            assert _accepts_by_digits(n, p, mode, int(j), 0, uniform) == (right == 1)


def test_a_uniform_within_the_margin_is_worked_out() -> None:
    n, p, mode = 1_200, Fraction(2, 5), 480
    ratio = Fraction(comb(n, 500), comb(n, mode)) * Fraction(2, 3) ** 20 / 2
    top = int(ratio * 2**64)
    at = np.array([20]), np.array([0])
    assert _verdicts_by_floats(n, p, mode, *at, np.array([top], dtype=np.uint64))[0] == 0
    edge = int(ratio * 2**256)
    near = 2**96
    assert _accepts_by_digits(n, p, mode, 20, 0, edge - near)
    assert not _accepts_by_digits(n, p, mode, 20, 0, edge + near)


def test_a_multinomial_shares_out_everything() -> None:
    shares = (1, 0, 2**255, 3 * 2**250, 5)
    drawn = [draw_multinomial(SeededRandomness(i), 10**9, shares, "x") for i in range(20)]
    assert {sum(x) for x in drawn} == {10**9} and all(x[1] == 0 for x in drawn)
    mean = np.mean([x[3] for x in drawn]) / 10**9
    assert abs(mean - 3 / 35) < 1e-5
