"""The weight of an item that passed a threshold: its interval, given that it passed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphh.errors import UsageError
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.selective import weight_intervals

SIGMA, RHO = 120, 600
NOISE = rounded_gaussian(SIGMA)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("weight", [0, 30, 300, 600, 650, 1_500])
def test_of_items_that_pass_the_interval_holds_the_weight_as_often_as_it_says(weight, confidence):
    # Exactly: over all noised weights that are seen, with their probabilities.
    seen = np.arange(RHO, max(RHO, weight) + 12 * SIGMA)
    low, high = weight_intervals(NOISE, RHO, seen, confidence)
    held = (low <= weight) & (weight <= high)
    passed = NOISE.survival(RHO - weight)
    chances = [
        NOISE.survival(int(y) - weight) - NOISE.survival(int(y) + 1 - weight) for y in seen[held]
    ]
    coverage = float(Fraction(sum(chances), passed))
    assert confidence <= coverage
    if weight > 2 * SIGMA:  # below, the interval ends at 0 and cannot miss on that side
        assert coverage <= confidence + 0.02


def test_and_so_it_does_in_a_simulation_where_the_plain_interval_does_not():
    rng = np.random.default_rng(3)
    weights = np.full(200_000, 400)
    noisy = weights + np.rint(rng.normal(0, SIGMA, len(weights))).astype(np.int64)
    seen = noisy[noisy >= RHO]
    low, high = weight_intervals(NOISE, RHO, seen, 0.95)
    error = 3 * np.sqrt(0.05 * 0.95 / len(seen))
    assert np.mean((low <= 400) & (high >= 400)) >= 0.95 - error
    assert np.mean(np.abs(seen - 400) <= 1.96 * SIGMA) < 0.75  # who was lucky looks too large


def test_far_above_the_threshold_it_is_the_plain_interval_and_near_it_reaches_down():
    low, high = weight_intervals(NOISE, RHO, np.array([RHO, 3 * RHO]), 0.95)
    assert low[0] == 0
    assert high[0] < RHO + 1.96 * SIGMA
    assert low[1] == pytest.approx(3 * RHO - 1.96 * SIGMA, abs=2)
    assert high[1] == pytest.approx(3 * RHO + 1.96 * SIGMA, abs=2)


def test_what_no_run_can_have_released_is_refused():
    with pytest.raises(UsageError, match="below its level's threshold"):
        weight_intervals(NOISE, RHO, np.array([RHO - 1]), 0.95)
    low, high = weight_intervals(NOISE, RHO, np.array([], np.int64), 0.95)
    assert len(low) == len(high) == 0
