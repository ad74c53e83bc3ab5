"""What sums of reports tell of a user: never below the truth, enumerated."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from itertools import combinations
from math import comb, exp, inf, log

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import binom

from dphh.mechanisms.ldp_trie.sums import (
    NARROW_BLOCKS,
    WIDE_BLOCKS,
    _third_value_in_blocks,
    _throws_in_blocks,
    epsilon_by_theorem_b,
)
from dphh.privacy.losses import Losses, losses_on_grid
from dphh.udfs.rules.reports import LevelReports, SubsetSelection, subset_selection

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

    return least_epsilon(at, delta)


def least_epsilon(at: Callable[[float], float], delta: float) -> float:
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


def by_theorem_b(mechanism: SubsetSelection, sent: LevelReports, replaced: int) -> float:
    """The statement of docs/ldp_trie.md, Theorem B, summed over all throws. Losses are rounded down
    to a grid and M is the least there is, so a bound is at least this."""
    s, d, p, step = mechanism.domain, mechanism.size, mechanism.p, 1e-3
    values, delta, reports = 3 * replaced, sent.delta, sent.users * sent.contributions
    m = (p - d / s) / (1 - d / s)
    plain = comb(s - values, d - 1) / comb(s, d)
    beside = comb(s - values - 1, d - 2) / comb(s - 1, d - 1)
    held = comb(s - values, d - 2) / comb(s - 1, d - 1)
    earlier = values * max(plain, beside, held)
    left = reports - replaced
    left -= int(binom.isf(1e-6 * delta, left, earlier)) if replaced > 1 else 0
    holders = min(3 * sent.users, left)
    of_holders = (1 - m) * 3 * plain
    law = np.convolve(
        binom.pmf(np.arange(holders + 1), holders, of_holders),
        binom.pmf(np.arange(left - holders + 1), left - holders, of_holders + m * 3 * beside),
    )
    local = log(p * (s - d) / ((1 - p) * d))
    own, other, idle = 1, exp(-local), exp(-local) * (s - values - d + 1) / d
    middle = int(local / step) + 2
    chances = np.zeros(2 * middle)
    for throws in np.flatnonzero(law > 1e-10 * delta) + 1:
        y, x = np.ogrid[: throws + 1, : throws + 1]
        fallen = law[throws - 1] * binom.pmf(y, throws, 1 / 3) * binom.pmf(x, throws - y, 0.5)
        some = fallen > 1e-12 * delta
        there, back = own * x + other * (throws - y - x), own * (throws - y - x) + other * x
        there, back = (
            (each + idle * y)[some] * 3 / (throws * (own + other + idle)) for each in (there, back)
        )
        places = middle + np.floor(np.log(there / back) / step).astype(int)
        chances += np.bincount(places, fallen[some] * there, len(chances))
    whole = reduce(np.convolve, [chances] * replaced)
    losses = step * (np.arange(len(whole)) - replaced * middle)
    return least_epsilon(lambda at: whole @ np.maximum(-np.expm1(at - losses), 0.0), delta)


@pytest.mark.parametrize(
    ("domain", "sent", "replaced"),
    [
        (600, LevelReports(300, 5, 1e-4), 1),
        (600, LevelReports(300, 5, 1e-4), 3),
        (60, LevelReports(1, 4, 3e-2), 4),
    ],
    ids=["one", "three, beside holders and others", "four, and nobody else's"],
)
def test_sums_of_many_reports_cost_what_the_theorem_says(domain, sent, replaced):
    mechanism = subset_selection(domain, 4.0)
    bound = epsilon_by_theorem_b(mechanism, sent, replaced)
    assert 0.9999 <= bound / by_theorem_b(mechanism, sent, replaced) < 1.02


@pytest.mark.parametrize("width", [NARROW_BLOCKS, WIDE_BLOCKS, 3.0])
def test_blocks_of_throws_are_never_more_throws_than_there_are(width):
    """Fewer throws hide less: the law of blocks is below that of T, and not much."""
    values, law = _throws_in_blocks(400, 0.3, 90, 0.7, 1e-12, width)
    throws = np.arange(491)
    true = np.convolve(binom.pmf(throws[:401], 400, 0.3), binom.pmf(throws[:91], 90, 0.7))
    fewer = np.array([law[values <= most].sum() for most in throws])
    assert (fewer >= np.cumsum(true) - 1e-11).all()
    assert true @ throws - 12 * width - 2 < law @ values < true @ throws


@pytest.mark.parametrize("width", [NARROW_BLOCKS, WIDE_BLOCKS, 3.0])
def test_blocks_of_the_third_value_hide_no_more_than_each_of_their_cases(width):
    own, wrong, idle = 0.5, 0.1, 0.4
    reports, of_wrong, law = _third_value_in_blocks(80, own, idle, wrong / own, 1e-12, width)
    y = np.arange(82)
    likely = binom.pmf(y, 81, 1 / 3) * 3 / 81
    of_wrong_value, of_third = wrong * (81 - y) / 2, idle * y
    weights = own * (81 - y) / 2 + of_wrong_value + of_third
    true = np.cumsum(likely * weights)
    assert law.sum() == pytest.approx(1, abs=1e-11)
    # If the user's report has the third value, it is as good as even between the other two.
    mixed = (of_wrong_value + of_third / 2) / weights
    ends = np.cumsum(law)
    block = np.searchsorted(ends, true - 1e-9)
    seen = np.flatnonzero(likely * weights > 1e-6)
    assert len(seen) > 20
    assert (reports[block[seen]] <= (81 - y)[seen]).all()
    assert (of_wrong[block[seen]] <= mixed[seen] + 1e-12).all()


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
