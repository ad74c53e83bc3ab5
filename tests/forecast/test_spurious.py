"""E[spurious] <= eta |S|: the rule of signs by itself, and whole levels at small S."""

from __future__ import annotations

import numpy as np
import pytest

from dphh.mechanisms.ngrams.forecast.signs import tails_by_signs

ROWS = [
    ((5,), (0.2,)),
    ((3, 100), (0.25, 0.001)),
    ((1_000, 20, 5), (1e-3, 0.05, 0.25)),
    ((10**6, 500), (1e-6, 0.01)),
    ((2, 2, 2, 2), (0.25, 0.25, 0.01, 1e-4)),
]


@pytest.mark.parametrize(("nulls", "planned"), ROWS)
@pytest.mark.parametrize("budget", [0.05, 1.0, 20.0])
def test_the_rule_of_signs_keeps_the_budget(
    nulls: tuple[int, ...], planned: tuple[float, ...], budget: float
) -> None:
    rng = np.random.default_rng(4)
    number, tails = np.array(nulls), np.array(planned)
    spurious = []
    for _ in range(4_000):
        negatives = rng.binomial(number, 0.5)
        passing = 2 * tails_by_signs(tails, negatives, budget)
        spurious.append(rng.binomial(number - negatives, passing).sum())
    assert np.mean(spurious) <= budget + 4 * np.std(spurious) / len(spurious) ** 0.5


def test_no_tail_passes_a_half() -> None:
    assert tails_by_signs(np.array([0.2, 0.1]), np.zeros(2, dtype=np.int64), 9.0).max() == 0.5
