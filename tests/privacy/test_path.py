"""The path accountant: against explicit data sets from below, and all of them from above."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dphh import trie
from dphh.errors import UsageError
from dphh.mechanisms.trie import path_bound
from dphh.mechanisms.trie.path import (
    choose_theta_and_p,
    path_delta,
    users_needed,
)
from dphh.mechanisms.trie.path_bound import removal_epsilon
from dphh.udfs.arrays import Floats
from tests.conftest import full

Release = frozenset[tuple[str, ...]]
Law = dict[Release, Fraction]

# epsilon, p, theta, and the k's that come nearest to the bound.
GOLDEN = [
    (1.0, 0.2, 20, (26,)),
    (1.0, 0.2, 20, (136,) * 9 + (27,)),
    (4.0, 0.4, 30, (29,) * 10),
    (2.0, 0.3, 20, (83,) * 4 + (21,)),
    (1.0, 0.00793, 12, (8000,) * 9 + (17,)),
]
# What the plans of the papers' sizes come to: epsilon, delta, theta, users needed over 10 levels.
CHOICES = [(1.0, 1e-8, 20, 121), (2.0, 1e-8, 22, 80), (4.0, 1.5e-8, 24, 71), (4.0, 2.3e-12, 34, 99)]
# Rates and thresholds small and large, levels few and many, deltas from 0.02 down to 1e-30.
SETTINGS = [
    (0.7, 0.5, 2, 3),
    (0.25, 0.2, 5, 10),
    (1.0, 0.2, 20, 10),
    (2.0, 0.3, 20, 5),
    (0.2, 0.15, 40, 20),
    (0.05, 0.03, 12, 10),
    (3.0, 0.9, 30, 4),
    (1.0, 0.3, 1, 3),
    (0.01, 0.0078125, 60, 7),
    (0.5, 0.35, 8, 1),
    (3.0, 0.6, 50, 1),
]


def kept(k: int, p: float, theta: int) -> mpmath.mpf:
    """b(k) = P[Bin(k, p) >= theta], with many digits."""
    terms = (mpmath.binomial(k, j) * mpmath.mpf(p) ** j * (1 - mpmath.mpf(p)) ** (k - j)
             for j in range(theta, k + 1))  # fmt: skip
    total = mpmath.mpf(0)
    for j, term in enumerate(terms, theta):
        total += term
        if j > k * p and term < total * mpmath.mpf(10) ** -45:
            break
    return total


def direct(epsilon: float, p: float, theta: int, ks: Sequence[int]) -> mpmath.mpf:
    """delta(epsilon; k_1..k_L), summed as it is defined."""
    with mpmath.workdps(50):
        e, total = mpmath.exp(epsilon), mpmath.mpf(0)
        values = {k: (kept(k + 1, p, theta), kept(k, p, theta)) for k in set(ks)}
        with_user = without = mpmath.mpf(1)
        for k in ks:
            a, b = values[k]
            total += max(with_user * (1 - a) - e * without * (1 - b), 0)
            with_user, without = with_user * a, without * b
        return total + max(with_user - e * without, 0)


def tables(p: float, theta: int, largest: int) -> tuple[Floats, Floats]:
    """a(k) and b(k) for k = 0..largest, by the negative binomial: another way than the module's."""
    n = np.arange(theta, largest + 2, dtype=np.float64)
    ratios = np.concatenate([[0.0], np.log(n[:-1] / (n[:-1] + 1 - theta)) + math.log1p(-p)])
    waits = np.exp(theta * math.log(p) + np.cumsum(ratios))
    b = np.concatenate([np.zeros(theta), np.minimum(np.cumsum(waits), 1.0)])
    return b[1:], b[:-1]


def sums(epsilon: float, a: Floats, b: Floats, ks: np.ndarray) -> Floats:
    """delta(epsilon; k_1..k_L) for every row of ks."""
    e = math.exp(epsilon)
    total, with_user, without = np.zeros(len(ks)), np.ones(len(ks)), np.ones(len(ks))
    for column in ks.T:
        x, y = a[column], b[column]
        # As (1 - a) - e (1 - b) can be 1e-16 off where both are next to 0, such terms stay out.
        failed = with_user * (1 - x) - e * without * (1 - y)
        total += np.where(failed > 1e-14 * with_user, failed, 0.0)
        with_user, without = with_user * x, without * y
    return np.asarray(total + np.maximum(with_user - e * without, 0.0))


@pytest.mark.parametrize(("epsilon", "p", "theta", "ks"), GOLDEN)
def test_golden_values_are_met_from_above_within_a_percent(epsilon, p, theta, ks):
    truth = direct(epsilon, p, theta, ks)
    assert truth <= path_delta(epsilon, p, theta, len(ks)) <= truth * 1.01


@pytest.mark.parametrize(("epsilon", "p", "theta", "levels"), SETTINGS)
def test_no_sequence_of_counts_costs_more_and_some_cost_nearly_as_much(epsilon, p, theta, levels):
    rng = np.random.default_rng(7)
    rows = 400_000 if full() else 5_000
    largest = math.ceil((theta + 10 * math.sqrt(theta) + 40) / p)
    a, b = tables(p, theta, largest)
    bound = path_delta(epsilon, p, theta, levels)

    def check(ks: np.ndarray) -> tuple[float, np.ndarray]:
        found = sums(epsilon, a, b, np.clip(ks, 0, largest))
        assert np.all(found <= bound * (1 + 1e-9))
        return float(found.max()), np.clip(ks[found.argmax()], 0, largest)

    # Anywhere, and the same everywhere but at the last level: what the worst cases look like.
    anywhere = rng.integers(0, largest + 1, (rows, levels))
    alike = np.repeat(anywhere[:, :1], levels, axis=1)
    alike[:, -1] = anywhere[:, -1]
    best, ks = max(check(anywhere), check(alike), key=lambda found: found[0])
    # An adversary: from the best of these, one level after the other, and all alike.
    for _ in range(400 if full() else 80):
        level, step = int(rng.integers(levels)), max(largest // 200, 1)
        tries = np.unique(
            np.concatenate([ks[level] + np.arange(-60, 61), np.arange(theta - 1, largest, step)])
        )
        options = np.tile(ks, (len(tries), 1))
        options[:, level] = tries
        others = np.tile(ks, (len(tries), 1))
        others[:, np.arange(levels) != level] = tries[:, np.newaxis]
        best, ks = max([(best, ks), check(options), check(others)], key=lambda found: found[0])
    assert best >= 0.98 * bound


def run_trie(words: Sequence[str], coins: Sequence[Sequence[bool]], theta: int) -> Release:
    """The mechanism, as one would tell it: `coins[i][u]` is user u's coin at level i + 1."""
    released: set[tuple[str, ...]] = set()
    trie: set[tuple[str, ...]] = {()}
    for level, tossed in enumerate(coins, 1):
        votes: dict[tuple[str, ...], int] = defaultdict(int)
        for word, heads in zip(words, tossed, strict=True):
            symbols = (*word, "end")
            if heads and len(symbols) >= level and symbols[: level - 1] in trie:
                votes[symbols[:level]] += 1
        trie = {prefix for prefix, count in votes.items() if count >= theta}
        released |= trie
        if not trie:
            break
    return frozenset(released)


def law(words: Sequence[str], p: Fraction, theta: int, levels: int) -> Law:
    """The exact distribution of the release, over all coins."""
    found: Law = defaultdict(Fraction)
    for bits in itertools.product((False, True), repeat=len(words) * levels):
        heads = sum(bits)
        chance = p**heads * (1 - p) ** (len(bits) - heads)
        coins = [bits[i * len(words) : (i + 1) * len(words)] for i in range(levels)]
        found[run_trie(words, coins, theta)] += chance
    assert sum(found.values()) == 1
    return found


def hockey_stick(first: Law, second: Law, e: Fraction) -> Fraction:
    return sum(
        (max(first[x] - e * second.get(x, Fraction(0)), Fraction(0)) for x in first), Fraction(0)
    )


POPULATIONS = [  # the user who comes or goes first; "" is the empty word, which is only its end
    (("ab", "ab", "ac", "b"), 2),
    (("ab", "ab", "ab", "ab"), 2),
    (("a", "ab", "a", "a"), 1),
    (("aa", "aa", "ab"), 3),
    (("b", "a", "a", "ab"), 2),
    (("", "", "a", "a"), 3),
    (("abc", "abc", "abd", "ab"), 3),
    (("aaa", "aaa", "aaa"), 3),
]


@pytest.mark.parametrize("theta", [1, 2, 3])
@pytest.mark.parametrize("p", [0.25, 0.625])
def test_every_output_of_tiny_populations_in_both_directions(p, theta):
    rate = Fraction(p)
    for words, levels in POPULATIONS:
        joined, left = law(words, rate, theta, levels), law(words[1:], rate, theta, levels)
        for epsilon in (0.0, 0.2, removal_epsilon(p), 1.5, 5.0):
            # A float's own exponential may be low by its last digit: then this e is, too.
            e = Fraction(math.exp(epsilon))
            bound = Fraction(path_delta(epsilon, p, theta, levels))
            assert hockey_stick(joined, left, e) <= bound
        assert all(left[x] * (1 - rate) <= joined.get(x, 0) for x in left)
        assert all(x in joined for x in left)


def test_extreme_parameters_give_a_probability():
    for epsilon, p, theta, levels in [
        (0.0, 0.5, 1, 1),
        (1.0, 1 - 2.0**-40, 3, 4),
        (1.0, 1 - 2.0**-53, 3, 4),
        (1e-9, 2.0**-64, 4, 3),
        (1.0, 2.0**-64, 1, 3),
        (0.05, 0.05, 3000, 2),
        (300.0, 2.0**-30, 30, 3),
    ]:
        assert 0 < path_delta(epsilon, p, theta, levels) <= 1


@pytest.mark.parametrize(
    ("p", "theta"), [(0.2, 20), (0.4, 30), (2.0**-20, 5), (0.05, 1000), (0.99, 40), (0.5, 2)]
)
def test_the_tails_are_far_closer_than_they_are_trusted(p, theta):
    ks = sorted({int(theta - 1 + x * theta / p) for x in (0, 0.01, 0.1, 0.4, 0.8, 1.0, 1.3)})
    b, gap = path_bound.tails_and_gaps(np.array(ks, dtype=np.float64), p, theta)
    allowed = path_bound.TAIL_ERROR * (theta + 100) / 100
    with mpmath.workdps(50):
        for k, passed, more in zip(ks, b, gap, strict=True):
            below, above = kept(k, p, theta), kept(k + 1, p, theta)
            if above < 1e-290:
                continue  # the accountant does not go there
            assert abs(passed - below) <= allowed * below
            if above - below > 1e-30 * above:
                assert abs(more - (above - below)) <= allowed * (above - below)


def test_going_costs_the_logarithm_rounded_up():
    for p in (2.0**-64, 1e-5, 0.0625, 0.2, 0.5, 0.75, 1 - 2.0**-53):
        rate = math.ldexp(round(math.ldexp(p, 64)), -64)
        with mpmath.workdps(50):
            exact = -mpmath.log(1 - mpmath.mpf(rate))
            assert exact <= removal_epsilon(rate) <= exact * (1 + mpmath.mpf(1e-14))


@pytest.mark.parametrize(("epsilon", "delta", "theta", "users"), CHOICES)
def test_the_choice_keeps_what_it_promises_and_its_neighbours_find_less(
    epsilon, delta, theta, users
):
    chosen, rate = choose_theta_and_p(epsilon, delta, 10)
    assert (chosen, users_needed(rate, theta, 10)) == (theta, users)
    assert path_delta(epsilon, rate, theta, 10) <= delta
    assert removal_epsilon(rate) <= epsilon
    assert (Fraction(rate) * 2**64).denominator == 1

    def fits(p: float, threshold: int) -> bool:
        return path_delta(epsilon, p, threshold, 10) <= delta and removal_epsilon(p) <= epsilon

    assert not fits(rate * 1.01, theta)
    # Whatever another theta needs to do better: a rate that the budget does not allow.
    for other in range(max(theta - 4, 1), theta + 5):
        rates = rate * np.linspace(0.7, 1.3, 601)
        better = [p for p in rates.tolist() if p < 1 and users_needed(p, other, 10) < users]
        assert not fits(min(better), other)


@pytest.mark.parametrize("p", [0.2, 1e-5 / 3, 2.0**-63 + 2.0**-100])
def test_a_rate_is_rounded_down_to_a_multiple_which_is_priced_and_drawn(p):
    plan = trie(epsilon=1.0, delta=0.1, max_length=2, theta=20, p=p)
    rate = Fraction(plan.levels[0].numerator, 2**64)
    assert 0 <= Fraction(p) - rate < Fraction(1, 2**64)
    assert Fraction(plan.levels[0].p) == rate
    assert plan.finds.users == users_needed(float(rate), 20, 2)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.5, 2.0**-70, 0, 2**64, -1, True, math.nan])
def test_rates_that_cannot_be_drawn_are_refused(p):
    with pytest.raises(UsageError, match=r"^p: "):
        trie(epsilon=1.0, delta=0.1, max_length=2, theta=20, p=p)
