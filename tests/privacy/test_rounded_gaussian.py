"""The noise table against mpmath, and the promises that thresholds rest on."""

import random
from fractions import Fraction
from itertools import pairwise

import pytest
from mpmath import mp, mpf
from scipy.stats import norm

from dphh.errors import DphhError, UsageError
from dphh.udfs.noise import table as module
from dphh.udfs.noise.table import TABLE_ONE, rounded_gaussian
from tests.draws import exact_tail

SIGMAS = [1, 2, 3, 7, 50, 1000, 4000, 12_000]


@pytest.mark.parametrize("sigma", [*SIGMAS, pytest.param(131_072, marks=pytest.mark.slow)])
def test_every_entry_is_low_by_less_than_two_units(sigma):
    table = rounded_gaussian(sigma)
    assert table.reach == 19 * sigma
    some = random.Random(sigma).sample(range(1, table.reach + 1), min(table.reach, 60))
    with mp.workprec(700):
        for k in {1, 2, 3, sigma, table.reach - 1, table.reach, *some}:
            error = exact_tail(sigma, k) * TABLE_ONE - table.survival(k)
            assert 0 <= error < 2, k


@pytest.mark.parametrize("sigma", [31, 64, 1000, 12_000])
def test_the_ends_of_stretches_are_low_by_less_than_two_units(sigma):
    table, long = rounded_gaussian(sigma), max(2 ** (sigma.bit_length() - 6), 1)
    with mp.workprec(700):
        for end in range(long // 2, 12 * sigma, long * 37):
            for k in range(max(end - 1, 1), end + 3):
                assert 0 <= exact_tail(sigma, k) * TABLE_ONE - table.survival(k) < 2, k


@pytest.mark.parametrize("sigma", [1, 2, 3, 50, 4000])
def test_entries_never_increase_and_end_in_nothing(sigma):
    table = rounded_gaussian(sigma)
    everywhere = range(table.reach + 2)
    far = range(18 * sigma, table.reach + 2)  # where neighbours are closest
    for stretch in [everywhere] if sigma < 100 else [far[:500], far[-500:], everywhere[:500]]:
        assert all(a >= b for a, b in pairwise(map(table.survival, stretch)))
    assert table.survival(0) + table.survival(1) == TABLE_ONE
    assert table.survival(table.reach + 1) == 0
    assert exact_tail(sigma, table.reach + 1) * TABLE_ONE < 2**-9


@pytest.mark.parametrize("sigma", [1, 31, 63, 64, 65, 1000, 12_000, 40_000])
def test_leading_words_hold_what_they_say(sigma):
    table = rounded_gaussian(sigma)
    surely, more = table.leading_bits
    assert len(surely) <= table.reach and surely[0] == 0 and more < 2**14
    assert (surely[1:] >= surely[:-1]).all()
    largest = len(surely)
    assert table.survival(largest) >> 192 == 0 < table.survival(largest // 2) >> 192
    some = random.Random(sigma).sample(range(1, largest + 1), min(largest, 2000))
    for k in {1, 2, 3, largest - 1, largest, *some}:
        assert 0 <= (table.survival(k) >> 192) - int(surely[largest - k]) <= more, k


def test_the_distance_covers_the_errors_of_all_masses():
    for sigma in (1, 4, 30):
        table = rounded_gaussian(sigma)
        with mp.workprec(700):
            exact = [exact_tail(sigma, k) for k in range(1, table.reach + 2)]
            given = [mpf(table.survival(k)) / TABLE_ONE for k in range(1, table.reach + 2)]
            errors = [a - b for a, b in zip(exact, given, strict=True)]
            moved = 2 * errors[0] + 2 * errors[-1]
            moved += 2 * sum(abs(a - b) for a, b in pairwise(errors))
            assert moved / 2 <= table.distance
    assert rounded_gaussian(12_000).distance < 2.0**-236


@pytest.mark.parametrize("shift", [-(1 << 120), 1 << 120])
def test_a_wrong_constant_is_noticed(monkeypatch, shift):
    monkeypatch.setattr(module, "_PI_ROUNDED_UP", module._PI_ROUNDED_UP + shift)
    with pytest.raises(DphhError, match="own check"):
        rounded_gaussian.__wrapped__(20)


@pytest.mark.parametrize("sigma", [1, 3, 1000])
def test_bounds_hold_for_all_integers(sigma):
    table = rounded_gaussian(sigma)
    ends = [0, 1, 2, sigma, 4 * sigma, table.reach, table.reach + 1, 30 * sigma]
    for k in sorted({sign * end for end in ends for sign in (-1, 1)}):
        low, high = table.tail_lower_bound(k), table.tail_upper_bound(k)
        with mp.workprec(700):
            assert int(low * TABLE_ONE) <= exact_tail(sigma, k) * TABLE_ONE <= int(high * TABLE_ONE)
        assert high - low == Fraction(2, TABLE_ONE)
        assert table.tail_upper_bound(k + 1) <= high and table.tail_lower_bound(k + 1) <= low


PROBABILITIES = [
    Fraction(999_999, 1_000_000),
    Fraction(9, 10),
    Fraction(1, 2),
    Fraction(1, 10),
    Fraction(1, 10**8),
    Fraction(1, 10**30),
    Fraction(1, 2**200),
]


@pytest.mark.parametrize("sigma", [1, 50, 4000])
@pytest.mark.parametrize("q", PROBABILITIES)
def test_thresholds_are_the_tightest(sigma, q):
    table = rounded_gaussian(sigma)
    k = table.smallest_with_tail_at_most(q)
    assert table.tail_upper_bound(k) <= q < table.tail_upper_bound(k - 1)
    assert abs(k - (sigma * norm.isf(float(q)) + 0.5)) <= 1 + 1e-9 * sigma
    k = table.largest_with_tail_at_least(q)
    assert table.tail_lower_bound(k) >= q > table.tail_lower_bound(k + 1)
    assert abs(k - (sigma * norm.isf(float(q)) + 0.5)) <= 1 + 1e-9 * sigma


@pytest.mark.parametrize("sigma", [0, -3, 1.5, 12_000.0, True, "9", None, 2**18 + 1])
def test_a_bad_sigma_is_refused(sigma):
    rounded_gaussian(1)  # cached, but not found by True
    with pytest.raises(UsageError, match="sigma"):
        rounded_gaussian(sigma)
