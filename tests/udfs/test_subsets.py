"""Subset selection: the law of a report by enumeration and by counts."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from math import comb, e, exp

import numpy as np
import pyarrow as pa
import pytest
from mpmath import mp, mpf
from scipy.stats import binom, chi2, chisquare, norm

from dphh.errors import UsageError
from dphh.udfs.noise.randomness import RandomWords, SystemRandomness
from dphh.udfs.rules.reports import (
    SubsetSelection,
    draw_subsets,
    estimated_holders,
    subset_selection,
)
from tests.draws import CHANCE

SYSTEM = SystemRandomness()
TOP = 2**64 - 1


# The randomiser's own law, by enumeration of all that the code can be told


class Undecided(Exception):  # noqa: N818 - not an error: the next word has to be chosen
    def __init__(self, purpose: str) -> None:
        self.purpose = purpose


class Path:
    """Hands out the words of one path through the tree of all draws; says where it ends."""

    is_test = True

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path = path
        self.asked = 0

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        start, self.asked = self.asked, self.asked + count
        if self.asked > len(self.path):
            raise Undecided(purpose)
        return np.array(self.path[start : self.asked], dtype=np.uint64)


def law_by_enumeration(
    mechanism: SubsetSelection, value: int, least: Fraction
) -> tuple[dict[tuple[int, ...], Fraction], Fraction]:
    """The chance of every report, and what is left on paths rarer than `least`.

    A word for another value is as good as its remainder, and a word for the coin as good as which
    side of the numerator it lies on.
    """
    others = mechanism.domain - 1
    heads = Fraction(mechanism.numerator, 2**64)
    reports: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    left = Fraction(0)
    open_paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while open_paths:
        path, chance = open_paths.pop()
        if chance < least:
            left += chance
            continue
        try:
            (report,) = draw_subsets(Path(path), np.array([value]), mechanism, "x").tolist()
        except Undecided as undecided:
            if undecided.purpose == "x/own":
                coins = [(mechanism.numerator - 1, heads), (mechanism.numerator, 1 - heads)]
                open_paths += [((*path, word), chance * share) for word, share in coins]
            else:
                open_paths += [((*path, word), chance / others) for word in range(others)]
        else:
            reports[tuple(report)] += chance
    return reports, left


SMALL = [(2, 1, 1.0), (3, 1, 0.5), (3, 2, 2.0), (4, 2, 1.0), (5, 2, 3.0), (5, 3, 0.3), (6, 3, 1.0)]


@pytest.mark.parametrize("domain, size, epsilon", SMALL)
def test_no_report_tells_two_values_apart_by_more_than_epsilon(
    domain: int, size: int, epsilon: float
) -> None:
    mechanism = subset_selection(domain, epsilon, size)
    p = Fraction(mechanism.numerator, 2**64)
    laws = []
    for value in range(domain):
        reports, left = law_by_enumeration(mechanism, value, Fraction(1, 20_000))
        assert set(reports) == set(combinations(range(domain), size))
        # What is left would go to sets that hold the value, or not: within it the law is exact.
        assert left < Fraction(1, 30)
        for report, chance in reports.items():
            held = value in report
            exact = p / comb(domain - 1, size - 1) if held else (1 - p) / comb(domain - 1, size)
            assert exact - left <= chance <= exact
        for held in (True, False):  # and no set is favoured over its equals, not by a hair
            alike = {chance for report, chance in reports.items() if (value in report) == held}
            assert len(alike) == 1
        laws.append((reports, left))
    likelier = Fraction(exp(epsilon)) * (1 + Fraction(1, 10**15))  # what a float may lack
    for one, _ in laws:
        for other, left in laws:
            assert all(one[r] <= likelier * (other[r] + left) for r in one)


@pytest.mark.parametrize(
    "domain, epsilon", [(2, 0.1), (17, 1.0), (1000, 4.0), (10**7, 4.6), (9, 60)]
)
def test_epsilon_is_exact_and_not_passed(domain: int, epsilon: float) -> None:
    mechanism = subset_selection(domain, epsilon)
    s, d, n = mechanism.domain, mechanism.size, mechanism.numerator
    with mp.workdps(60):
        exact = mp.log(mpf(n) * (s - d) / (mpf(2**64 - n) * d))
        next_up = mp.log(mpf(n + 1) * (s - d) / (mpf(2**64 - n - 1) * d)) if n < TOP else mp.inf
        assert mpf(mechanism.epsilon) >= exact > mpf(np.nextafter(mechanism.epsilon, 0))
        assert exact <= mpf(epsilon) < next_up
    assert mechanism.epsilon <= epsilon


@pytest.mark.parametrize("domain", [2, 3, 10, 101, 10**4, 10**6 + 1])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, 10.0])
def test_the_size_is_next_to_the_best(domain: int, epsilon: float) -> None:
    """The paper rounds up s / (e^epsilon + 1), where Ye and Barg let it be either neighbour."""
    mechanism = subset_selection(domain, epsilon)
    assert mechanism.size == -(-domain // (1 + e**epsilon))
    largest = min((domain + 1) // 2, mechanism.size + 3)
    sizes = range(max(mechanism.size - 3, 1), largest + 1)
    variances = {d: float(subset_selection(domain, epsilon, d).variance(1000)) for d in sizes}
    assert variances[mechanism.size] <= 1.35 * min(variances.values())
    if mechanism.size > 20:
        assert variances[mechanism.size] <= 1.001 * min(variances.values())


# Draws


def test_reports_are_uniform_beside_the_own_value() -> None:
    mechanism = subset_selection(7, 1.2, 3)
    count = 300_000
    reports = draw_subsets(SYSTEM, np.full(count, 4), mechanism, "test")
    seen = Counter(map(tuple, reports.tolist()))
    p = mechanism.p
    sets = list(combinations(range(7), 3))
    expected = [count * (p / comb(6, 2) if 4 in s else (1 - p) / comb(6, 3)) for s in sets]
    assert set(seen) <= set(sets)
    assert chisquare([seen[s] for s in sets], expected).pvalue > CHANCE


@pytest.mark.parametrize(
    "domain, size, count", [(1000, 46, 20_000), (100, 50, 20_000), (10**7, 10**5, 6)]
)
def test_reports_are_sets_of_the_domain_and_rows_are_independent(
    domain: int, size: int, count: int
) -> None:
    mechanism = subset_selection(domain, 3.0, size)
    values = np.arange(count) % domain
    reports = draw_subsets(SYSTEM, values, mechanism, "test")
    assert reports.shape == (count, size) and reports.dtype == np.int64
    assert (np.diff(reports, axis=1) > 0).all()
    assert reports.min() >= 0 and reports.max() < domain
    own = int((reports == values[:, None]).any(axis=1).sum())
    low, high = binom.ppf([CHANCE, 1 - CHANCE], count, mechanism.p)
    assert low <= own <= high
    if domain <= 1000:
        # Without the own values every value is reported alike. A row of fixed size gives a sum of
        # squares a little smaller than a multinomial's, so chi-squared errs on the safe side.
        others = np.bincount(reports[reports != values[:, None]], minlength=domain)
        assert chisquare(others).pvalue > CHANCE
        assert reports[0].tolist() != reports[1].tolist()


def test_the_own_value_has_no_place_of_its_own() -> None:
    mechanism = subset_selection(101, 5.0, 3)
    reports = draw_subsets(SYSTEM, np.full(60_000, 50), mechanism, "test")
    places = np.bincount(np.argwhere(reports == 50)[:, 1], minlength=3)
    # Of two uniform others, both above, one on either side, both below: 1/4, 1/2, 1/4.
    share = np.array([comb(50, 2), 50 * 50, comb(50, 2)]) / comb(100, 2)
    assert chisquare(places, places.sum() * share).pvalue > CHANCE


def test_estimates_are_unbiased_with_the_variance_they_say() -> None:
    mechanism = subset_selection(30, 1.5)
    values = np.repeat(np.arange(30), np.arange(30) * 4)
    holders = np.bincount(values, minlength=30)
    runs = 400
    found = np.array(
        [
            estimated_holders(
                np.bincount(draw_subsets(SYSTEM, values, mechanism, "t").ravel(), minlength=30),
                len(values),
                mechanism,
            )
            for _ in range(runs)
        ]
    )
    variance = mechanism.variance(len(values), holders)
    standardised = (found.mean(axis=0) - holders) / np.sqrt(variance / runs)
    assert abs(standardised).max() < norm.isf(CHANCE / 60)
    squares = (runs - 1) * found.var(axis=0, ddof=1) / variance
    low, high = chi2.ppf([CHANCE / 60, 1 - CHANCE / 60], runs - 1)
    assert low < squares.min() <= squares.max() < high


def test_values_outside_the_domain_are_refused_and_not_shown() -> None:
    mechanism = subset_selection(10, 1.0)
    for value in (-1, 10, 777):
        with pytest.raises(UsageError, match="from 0 to 9; found others"):
            draw_subsets(SYSTEM, np.array([3, value]), mechanism, "x")
    with pytest.raises(UsageError, match="keys"):
        draw_subsets(SYSTEM, np.array([3, 4]), mechanism, "x", pa.array(["a"]))
    with pytest.raises(UsageError, match="dimensions"):
        draw_subsets(SYSTEM, np.array([[3, 4]]), mechanism, "x")
    assert draw_subsets(SYSTEM, np.array([], dtype=np.int64), mechanism, "x").shape == (0, 3)
