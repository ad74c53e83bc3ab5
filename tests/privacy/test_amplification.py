"""Amplification: never below the truth of the shuffled model, enumerated; and published numbers."""

from collections import defaultdict
from itertools import combinations, combinations_with_replacement, product
from math import comb, exp, expm1

import pytest
from k_anonymity import k_anonymity, kept_at_most, lemma_1, normal_k
from published_amplification import (
    blanket_of_any_randomiser,
    closed_form_2021,
    closed_form_2023,
    epsilon_by_blocks,
)

from dphh.mechanisms.ldp_trie.amplification import (
    Blanket,
    blanket_of_subsets,
    central_delta,
    central_epsilon,
)
from dphh.udfs.rules.reports import SubsetSelection, subset_selection

Law = dict[tuple[int, ...], float]
REPORTS, DELTA = 30_000_000, 1e-10  # the Gboard paper's
GBOARD = subset_selection(10**6 + 1, 10.0)
EPSILONS = [0.0, 0.05, 0.2, 0.5, 1.0, 1.5]


def subsets_law(mechanism: SubsetSelection, value: int) -> Law:
    s, d, p = mechanism.domain, mechanism.size, mechanism.p
    return {
        report: p / comb(s - 1, d - 1) if value in report else (1 - p) / comb(s - 1, d)
        for report in combinations(range(s), d)
    }


def shuffled(laws: list[Law]) -> dict[tuple[tuple[int, ...], ...], float]:
    """The law of the multiset of reports."""
    mixed: dict[tuple[tuple[int, ...], ...], float] = {(): 1.0}
    for law in laws:
        longer: dict[tuple[tuple[int, ...], ...], float] = defaultdict(float)
        for reports, chance in mixed.items():
            for report, share in law.items():
                longer[tuple(sorted((*reports, report)))] += chance * share
        mixed = longer
    return mixed


def true_delta(one: list[Law], other: list[Law], epsilon: float) -> float:
    p, q = shuffled(one), shuffled(other)
    return sum(max(chance - exp(epsilon) * q[key], 0.0) for key, chance in p.items())


def worst_deltas(mechanism: SubsetSelection, reports: int) -> list[float]:
    """For each epsilon, over all others' values and all pairs (up to renaming: 0 and 1)."""
    domain = mechanism.domain
    laws = [subsets_law(mechanism, value) for value in range(domain)]
    worst = [0.0] * len(EPSILONS)
    for others in combinations_with_replacement(range(domain), reports - 1):
        rest = [laws[value] for value in others]
        p, q = shuffled([laws[0], *rest]), shuffled([laws[1], *rest])
        for i, epsilon in enumerate(EPSILONS):
            delta = sum(max(c - exp(epsilon) * q[key], 0.0) for key, c in p.items())
            worst[i] = max(worst[i], delta)
    return worst


@pytest.mark.parametrize(
    "domain, size, epsilon, reports",
    [
        (2, 1, 1.0, 6),
        (3, 1, 1.0, 5),
        (3, 2, 0.7, 5),
        (4, 1, 3.0, 4),
        (4, 2, 1.0, 4),
        (4, 2, 3.0, 4),
        (5, 2, 1.5, 3),
        (5, 3, 0.5, 3),
        (6, 3, 2.0, 2),
    ],
)
def test_subset_selection_is_never_below_the_truth(domain, size, epsilon, reports):
    mechanism = subset_selection(domain, epsilon, size)
    worst = worst_deltas(mechanism, reports)
    own, general = blanket_of_subsets(mechanism), blanket_of_any_randomiser(epsilon)
    for central, delta in zip(EPSILONS, worst, strict=True):
        assert delta <= central_delta(own, reports, central) * (1 + 1e-12) + 1e-15
        assert delta <= central_delta(general, reports, central) * (1 + 1e-12) + 1e-15


def test_a_group_is_never_below_the_truth():
    mechanism = subset_selection(3, 0.7, 2)
    laws = [subsets_law(mechanism, value) for value in range(3)]
    rest = [laws[0], laws[1], laws[2]]
    for delta in (0.3, 0.1, 0.01):
        epsilon = central_epsilon(blanket_of_subsets(mechanism), 5, delta, 2)
        for pair in product(range(3), repeat=4):
            one, other = [laws[v] for v in pair[:2]], [laws[v] for v in pair[2:]]
            assert true_delta(one + rest, other + rest, epsilon) <= delta


def pair_delta(blanket: Blanket, reports: int, epsilon: float) -> float:
    """All counts of the pair of distributions, one by one; m is one of them."""
    n, share, tell = reports - 1, blanket.share, blanket.tell
    p: dict[tuple[int, int, int], float] = defaultdict(float)
    q: dict[tuple[int, int, int], float] = defaultdict(float)
    own, other, idle = blanket.own_chance, blanket.other_chance, blanket.idle_chance
    for m in range(n + 1):
        for c in range(m + 1):
            for i in range(c + 1):
                chance = comb(n, m) * share**m * (1 - share) ** (n - m)
                chance *= comb(m, c) * tell**c * (1 - tell) ** (m - c) * comb(c, i) / 2**c
                for law, first, second in ((p, own, other), (q, other, own)):
                    law[m, i + 1, c - i] += first * chance
                    law[m, i, c - i + 1] += second * chance
                    law[m, i, c - i] += idle * chance
    return sum(max(chance - exp(epsilon) * q[key], 0.0) for key, chance in p.items())


@pytest.mark.parametrize("reports", [1, 2, 10, 40])
@pytest.mark.parametrize(
    "blanket",
    [
        blanket_of_any_randomiser(1.0),
        blanket_of_any_randomiser(5.0),
        Blanket(3.0, 0.2, 0.5, 0.4, 0.5),
        Blanket(9.0, 0.6, 0.1, 0.9, 0.05),
        blanket_of_subsets(subset_selection(20, 2.0)),
    ],
)
def test_central_delta_is_the_pairs(blanket, reports):
    for epsilon in [*EPSILONS, 2.9, 8.0]:
        exact = pair_delta(blanket, reports, epsilon)
        found = central_delta(blanket, reports, epsilon)
        assert exact * (1 - 1e-12) - 1e-15 <= found <= exact * (1 + 1e-6) + 1e-13


def test_more_reports_hide_more_and_epsilon_ends_at_the_local_one():
    for blanket in (
        blanket_of_any_randomiser(4.0),
        blanket_of_subsets(subset_selection(1000, 4.0)),
    ):
        found = [central_epsilon(blanket, n, 1e-6) for n in (1, 10, 10**3, 10**5)]
        assert found == sorted(found, reverse=True)
        assert 3.9 < found[0] <= 4.0
        assert found[-1] < 0.2
        for n in (10**3, 10**5):
            epsilon = central_epsilon(blanket, n, 1e-6)
            assert central_delta(blanket, n, epsilon, 1e-12) <= 1e-6
            assert central_delta(blanket, n, epsilon * 0.99, 1e-12) > 1e-6


def test_the_gboard_papers_central_epsilon():
    assert epsilon_by_blocks(10.0, REPORTS, DELTA) == pytest.approx(0.31475, abs=1e-5)
    assert central_epsilon(blanket_of_any_randomiser(10.0), REPORTS, DELTA) == pytest.approx(
        0.30747, abs=1e-5
    )
    assert central_epsilon(blanket_of_subsets(GBOARD), REPORTS, DELTA) == pytest.approx(
        0.1493, abs=5e-5
    )
    assert closed_form_2021(10.0, REPORTS, DELTA) == pytest.approx(0.7308, abs=5e-5)
    assert closed_form_2023(10.0, REPORTS, DELTA) == pytest.approx(0.5654, abs=5e-5)


def test_the_gboard_papers_k_anonymity():
    reports, keep = REPORTS, 10_000
    assert lemma_1(GBOARD, reports, keep) is None
    assert k_anonymity(GBOARD, reports, keep) == 48
    assert normal_k(GBOARD, reports, keep) == pytest.approx(50.0, abs=0.1)
    assert kept_at_most(GBOARD, reports, keep, 45) <= 0.05  # the paper's 45 is true


@pytest.mark.parametrize("local", [10, 20, 28, 30])
def test_what_is_positive_alone_is_not_lost_where_its_edge_is_rounded(local):
    """One report, nobody else: the own value without the other one, or the reverse."""
    blanket = blanket_of_subsets(subset_selection(183, local))
    for less in (0.1, 0.01, 1.25e-3, 1e-4):
        truth = blanket.own_chance * -expm1(-less)
        assert central_delta(blanket, 1, blanket.epsilon - less, 1e-12) >= truth * (1 - 1e-9)
    assert central_epsilon(blanket, 1, 1e-6) >= blanket.epsilon - 1.01e-6
