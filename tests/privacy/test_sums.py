"""What sums of reports tell of a user: never below the truth, enumerated."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb, exp, inf

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import binom

from dphh.mechanisms.ldp_trie.sums import epsilon_by_theorem_b
from dphh.privacy.losses import Losses, losses_on_grid
from dphh.udfs.rules.subset_selection import LevelReports, SubsetSelection, subset_selection

Law = dict[tuple[int, ...], float]


@lru_cache
def of_subsets(mechanism: SubsetSelection, value: int) -> Law:
    s, d, p = mechanism.domain, mechanism.size, mechanism.p
    return {
        tuple(int(v in held) for v in range(s)): (
            p / comb(s - 1, d - 1) if value in held else (1 - p) / comb(s - 1, d)
        )
        for held in combinations(range(s), d)
    }


def summed(laws: Sequence[Law]) -> Law:
    total: Law = {(0,) * len(next(iter(laws[0]))): 1.0}
    for law in laws:
        longer: Counter[tuple[int, ...]] = Counter()
        for counts, chance in total.items():
            for report, share in law.items():
                longer[tuple(map(sum, zip(counts, report, strict=True)))] += chance * share
        total = dict(longer)
    return total


def true_epsilon(one: Law, other: Law, delta: float) -> float:
    p, q = np.array([(chance, other.get(key, 0.0)) for key, chance in one.items()]).T

    def at(epsilon: float) -> float:
        return float(np.maximum(p - exp(epsilon) * q, 0.0).sum())

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle) <= delta else (middle, high)
    return high


#: What the others report, by user; what this user reports, and what in its place.
CASES = (
    [((0, 2),), (0, 1), (2, 3)],
    [((0, 1),), (0, 1), (2, 3)],
    [((2, 3),), (0, 1), (2, 3)],
    [((4, 3),), (0, 1), (2, 3)],
    [((0, 3),), (0, 1), (0, 2)],
    [((4, 0),), (0, 4), (4, 1)],
)


@pytest.mark.parametrize("others, before, after", CASES)
@pytest.mark.parametrize("local", [1.0, 2.5])
def test_sums_of_subsets_are_never_below_the_truth(others, before, after, local):
    mechanism = subset_selection(9, local, 2)
    rest = [of_subsets(mechanism, value) for user in others for value in user]
    one, other = (
        summed([*rest, *(of_subsets(mechanism, value) for value in held)])
        for held in (before, after)
    )
    for delta in (0.02, 0.1):
        bound = epsilon_by_theorem_b(mechanism, LevelReports(2, 2, delta), 2)
        assert true_epsilon(one, other, delta) <= bound < inf


@pytest.mark.parametrize("size, others", [(1, (0, 1, 2, 3)), (2, (0, 2, 3, 1)), (2, (2, 3, 4, 5))])
def test_one_report_of_subsets_is_never_below_the_truth(size, others):
    mechanism = subset_selection(6, 1.0, size)
    rest = [of_subsets(mechanism, value) for value in others]
    one, other = (summed([*rest, of_subsets(mechanism, value)]) for value in (0, 1))
    bound = epsilon_by_theorem_b(mechanism, LevelReports(5, 1, 0.05), 1)
    truth = true_epsilon(one, other, 0.05)
    assert truth <= bound <= mechanism.epsilon + 1e-6


@pytest.mark.parametrize("local", [12.0, 20.0, 24.0, 28.0, 30.0, 33.0, 45.0])
def test_a_report_alone_costs_what_it_tells_however_much(local):
    """Nobody hides it: delta at x is P[the own value, not the other] (1 - e^(x - epsilon))."""
    delta = 1e-6
    mechanism = subset_selection(180, local)
    s, d = mechanism.domain, mechanism.size
    with mp.workdps(40):
        p = mpf(mechanism.own_chance.numerator) / mechanism.own_chance.denominator
        epsilon, apart = mp.log(p * (s - d) / ((1 - p) * d)), p * (s - d) / (s - 1)
        bound = epsilon_by_theorem_b(mechanism, LevelReports(1, 1, delta), 1)
        truth = epsilon + mp.log(1 - delta / apart)
    assert truth <= bound <= 1.002 * truth


def test_a_grid_dominates_and_is_close():
    """Randomised response, ten times: against all its outcomes."""
    epsilon, count = 0.4, 10
    p = exp(epsilon) / (1 + exp(epsilon))
    one = losses_on_grid(np.array([p, 1 - p]), np.array([epsilon, -epsilon]), 0.0, 0.03, 0.0)
    together = one.times(count, 1e-12)
    k = np.arange(count + 1)
    for at in (0.0, 0.3, 1.0, 2.0, 3.9):
        truth = np.maximum(binom.pmf(k, count, p) - exp(at) * binom.pmf(k, count, 1 - p), 0).sum()
        assert truth <= together.delta(at) <= 1.02 * truth + 1e-3


def test_a_coarser_grid_dominates_the_finer():
    fine = losses_on_grid(np.array([0.5, 0.3, 0.2]), np.array([-0.31, 0.2, 0.77]), 0.0, 0.01, 0.0)
    coarse = fine.coarser()
    assert np.isclose(coarse.chances.sum(), fine.chances.sum())
    for at in np.linspace(-0.5, 1, 40):
        assert fine.delta(at) <= coarse.delta(at) <= fine.delta(at) + 2e-3


def test_what_is_cut_off_is_paid():
    one = Losses(0.1, -2, np.array([1e-9, 0.5, 0.0, 0.5, 1e-9]), 0.0, 0.0)
    trimmed = one.trimmed(1e-8)
    assert trimmed.infinite == 1e-9
    assert trimmed.delta(5.0) == 1e-9 > one.delta(5.0) == 0
    assert trimmed.chances.sum() + trimmed.infinite == pytest.approx(1.0 + 2e-9, abs=1e-15)
