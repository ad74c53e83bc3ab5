"""What a user adds has norm at most `unit`, exactly; bins have the noise's own probabilities."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh.privacy.forecast_rounds import (
    LIST_SIZES,
    bins,
    draws_delta,
    list_bin,
    list_weight,
    plain_weight,
    shared_out,
    unit_for,
)
from dphh.privacy.set_union import LARGEST_DISTANCE
from tests.forecast.in_memory import SIGMA_GRID

units = st.integers(1, 2**20)


@given(units, st.integers(1, 10**6))
def test_round_1_stays_within_the_norm(unit: int, held: int) -> None:
    assert held * plain_weight(unit, held) ** 2 + list_weight(unit) ** 2 <= unit**2


@given(units, st.lists(st.integers(1, 4_000), min_size=1, max_size=50))
def test_round_2_stays_within_the_norm_whatever_the_weights(unit: int, g: list[int]) -> None:
    """A planted bug, weights that are not shared out, would break this."""
    weights = shared_out(unit, np.array(g), np.zeros(len(g), dtype=np.int64), 1)
    assert sum(int(w) ** 2 for w in weights) <= unit**2


@given(st.floats(0.05, 1e4))
def test_the_noise_is_no_less_than_asked_for(sigma: float) -> None:
    assert SIGMA_GRID / unit_for(sigma, SIGMA_GRID) >= sigma


def test_a_bin_begins_where_it_says() -> None:
    law = bins(SIGMA_GRID)
    assert list(law.of(law.starts)) == list(range(len(law.starts)))
    assert list(law.of(law.starts[1:] - 1)) == list(range(len(law.starts) - 1))
    assert law.of(np.array([-(10**12), 10**12])).tolist() == [0, len(law.starts) - 1]


def test_list_sizes_have_bins() -> None:
    assert list(list_bin(LIST_SIZES)) == list(range(len(LIST_SIZES)))
    assert list_bin(np.array([5, 10**6])).tolist() == [3, len(LIST_SIZES) - 1]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 9.5, 40.0])
def test_draws_distance_is_charged_for_all_that_may_be_drawn(epsilon: float) -> None:
    """Of a level: in either round the noise of 2^62 valid grams, each within the table's distance;
    and of 2^16 rows four draws each, of bins, signs, what passes and its weights, each within
    2^-150. Laws that are d apart cost (1 + e^epsilon) d."""
    apart = 2 * 2**62 * LARGEST_DISTANCE + 4 * 2**16 * Fraction(1, 2**150)
    charged = draws_delta(epsilon) / (1 + exp(epsilon))
    assert apart <= charged < 3 * apart
