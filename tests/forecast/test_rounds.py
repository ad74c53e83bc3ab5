"""What a user adds has norm at most `unit`, exactly; bins have the noise's own probabilities."""

from fractions import Fraction
from math import exp

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.mechanisms.ngrams.ladder.rungs import GRAM_NUMBER_BITS
from dphh.privacy.draws import LARGEST_TABLE_DISTANCE, forecast_draws_delta
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.noise.table import Bins
from dphh.udfs.rules.forecast import (
    LIST_SIZE_BIN_STARTS,
    Round1Weights,
    Round2Weights,
    bins_of_list_sizes,
    list_size_weight,
    norm_on_grid,
    round_1_weight,
)
from dphh.udfs.rules.weights import weights_in_proportion
from dphh.udfs.whole_users import contributions_by

SIGMA_GRID = 2**15
Rule = Round1Weights | Round2Weights
units = st.integers(1, 2**20)


@given(units, st.integers(1, 10**6))
def test_round_1_stays_within_the_norm(unit, held):
    assert held * round_1_weight(unit, held) ** 2 + list_size_weight(unit) ** 2 <= unit**2


@given(units, st.lists(st.integers(1, 4_000), min_size=1, max_size=50))
def test_round_2_stays_within_the_norm_whatever_the_weights(unit, g):
    """A planted bug, weights that are not shared out, would break this."""
    weights = weights_in_proportion(unit, np.array(g), np.zeros(len(g), dtype=np.int64), 1)
    assert sum(int(w) ** 2 for w in weights) <= unit**2


@given(st.floats(0.05, 1e4))
def test_the_noise_is_no_less_than_asked_for(sigma):
    assert SIGMA_GRID / norm_on_grid(sigma, SIGMA_GRID) >= sigma


def test_a_bin_begins_where_it_says():
    law = Bins(SIGMA_GRID)
    assert list(law.bin_of(law.starts)) == list(range(len(law.starts)))
    assert list(law.bin_of(law.starts[1:] - 1)) == list(range(len(law.starts) - 1))
    assert law.bin_of(np.array([-(10**12), 10**12])).tolist() == [0, len(law.starts) - 1]


def test_list_sizes_have_bins():
    assert list(bins_of_list_sizes(LIST_SIZE_BIN_STARTS)) == list(range(len(LIST_SIZE_BIN_STARTS)))
    assert bins_of_list_sizes(np.array([5, 10**6])).tolist() == [3, len(LIST_SIZE_BIN_STARTS) - 1]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 9.5, 40.0])
def test_draws_distance_is_charged_for_all_that_may_be_drawn(epsilon):
    """Of a level: in either round the noise of 2^62 valid grams, each within the table's distance;
    and of 2^16 rows four draws each, of bins, signs, what passes and its weights, each within
    2^-150. Laws that are d apart cost (1 + e^epsilon) d."""
    apart = 2 * 2**62 * LARGEST_TABLE_DISTANCE + 4 * 2**16 * Fraction(1, 2**150)
    charged = forecast_draws_delta(epsilon) / (1 + exp(epsilon))
    assert apart <= charged < 3 * apart


WORDS = 6
KEYS = np.array([a << GRAM_NUMBER_BITS | b for a in range(WORDS) for b in range(WORDS)])
Lists = list[list[int]]
lists_of_users = st.lists(st.lists(st.integers(0, WORDS * WORDS - 1)), max_size=6)
small_units = st.integers(1, 5_000)


def sums(users: Lists, rule: Rule) -> dict[int, int]:
    """What the product's kernel makes of users' lists of grams."""
    user_hashes, lengths = [[*range(len(users))]], [[len(user) for user in users]]
    held = [[key for user in users for key in KEYS[user].tolist()]]
    lists = pa.list_(pa.int64())
    columns = (pa.array(column, lists) for column in (user_hashes, lengths, held))
    found = contributions_by(lambda: rule)(*columns)
    added: dict[int, int] = {}
    for row in found.flatten().to_pylist():
        added[row["key"]] = added.get(row["key"], 0) + row["weight"]
    return added


def moved(users: Lists, more: list[int], rule: Rule) -> int:
    """The squared L2 distance of the sums of neighbours: with one more user, and without."""
    one, other = sums([*users, more], rule), sums(users, rule)
    return sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in one.keys() | other.keys())


everything = list(range(WORDS * WORDS))


@given(lists_of_users, st.lists(st.sampled_from(everything)), small_units)
def test_a_user_moves_round_1_by_the_unit_at_most(users, more, unit):
    for their in (more, more[:1], everything, []):
        assert moved(users, their, Round1Weights(unit)) <= unit**2
    assert moved(users, [], Round1Weights(unit)) == 0


@settings(max_examples=50)
@given(lists_of_users, st.lists(st.sampled_from(everything)), small_units, st.integers(0, 9))
def test_a_user_moves_round_2_by_the_unit_at_most(users, more, unit, seed):
    """Whatever the weights."""
    weights = np.random.default_rng(seed).integers(1, 3_500, len(KEYS))
    rule = Round2Weights((KeyIndex(KEYS), weights), unit)
    for their in (more, more[:1], everything, []):
        assert moved(users, their, rule) <= unit**2


def test_round_2_refuses_a_gram_that_round_1_did_not_name():
    """Its weight would depend on who else holds it."""
    rule = Round2Weights((KeyIndex(KEYS[::2]), np.full(len(KEYS[::2]), 64)), 900)
    assert sums([[0, 2, 4]], rule)
    with pytest.raises(RuntimeError, match="a gram that round 1 did not"):
        sums([[0, 1]], rule)


@pytest.mark.parametrize(("weight", "is_taken"), [(4_095, True), (4_096, False), (2**23, False)])
def test_weights_whose_squares_could_overflow_are_refused(weight, is_taken):
    weights = np.array([1, weight], dtype=np.int64)
    if is_taken:
        Round2Weights((KeyIndex(KEYS[:2]), weights), 1024)
        return
    with pytest.raises(ValueError, match="4,096 or more"):
        Round2Weights((KeyIndex(KEYS[:2]), weights), 1024)
