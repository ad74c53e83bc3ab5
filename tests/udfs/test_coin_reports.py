"""Reports by coins: the law of what is drawn, by enumeration and by counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, pairwise
from math import exp

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chi2, chisquare

from dphh.errors import UsageError
from dphh.mechanisms.ldp_trie.local_reports import randomiser
from dphh.mechanisms.ldp_trie.sums import Level, epsilon_of_coins
from dphh.privacy.subset_selection import SubsetSelection, estimate
from dphh.testing import SeededRandomness
from dphh.udfs.draws import coin_reports as module
from dphh.udfs.draws.coin_reports import NOTHING, draw_coins, draw_reports
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.draws.subsets import draw_subsets
from tests.udfs.test_subsets import Path, Undecided

SYSTEM = SystemRandomness()
CHANCE = 1e-9  # how often a sound sampler may fail one statistical test
#: How far the table is from the law, relatively.
TABLE = Fraction(1, 1 << 80)
Law = dict[tuple[int, ...], Fraction]


# The law of a report, by enumeration of all that the code can be told


def law_drawn(
    mechanism: SubsetSelection, value: int, least: Fraction
) -> tuple[Law, dict[tuple[int, bool], Fraction]]:
    """The chance of every report, and what is left on paths rarer than `least`: of reports of which
    size, with the own value or without it.

    A word for another value is as good as its remainder; a first word as good as any other between
    the same two entries of the table.
    """
    nothing = value == NOTHING
    bound = mechanism.domain - (not nothing)
    own, others, _, entries = module._table_of_outcomes(mechanism, nothing)
    edges = [0, *entries, 1 << 320]
    firsts = [((low >> 256) + 1, Fraction(high - low, 1 << 320)) for low, high in pairwise(edges)]
    assert sum(chance for _, chance in firsts) == 1
    kinds = {
        word: (int(o) + int(k), bool(o))
        for (word, _), o, k in zip(firsts, own, others, strict=True)
    }
    law: Law = defaultdict(Fraction)
    left: dict[tuple[int, bool], Fraction] = defaultdict(Fraction)
    open_paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while open_paths:
        path, chance = open_paths.pop()
        if chance < least:
            left[kinds[path[0]]] += chance
            continue
        try:
            drawn, sizes = draw_coins(Path(path), np.array([value]), mechanism, "x")
        except Undecided as undecided:
            if undecided.purpose == "x/own":
                open_paths += [((*path, word), chance * share) for word, share in firsts]
            else:
                open_paths += [((*path, word), chance / bound) for word in range(bound)]
        else:
            assert sizes.tolist() == [len(drawn)]
            law[tuple(drawn.tolist())] += chance
    return law, left


def law_of_coins(mechanism: SubsetSelection, value: int) -> Law:
    """As the definition has it: a coin of its own for every value."""
    law = {}
    for size in range(mechanism.domain + 1):
        for report in combinations(range(mechanism.domain), size):
            chance = Fraction(1)
            for v in range(mechanism.domain):
                coin = mechanism.own_chance if v == value else mechanism.other_chance
                chance *= coin if v in report else 1 - coin
            law[report] = chance
    return law


SMALL = [(2, 1.0), (3, 0.5), (4, 1.5), (5, 3.0)]


@pytest.mark.parametrize("domain, local", SMALL)
def test_a_report_is_a_coin_for_every_value(domain, local):
    mechanism = randomiser(domain, local, "coins")
    laws = []
    for value in range(NOTHING, domain):
        drawn, left_of = law_drawn(mechanism, value, Fraction(1, 20_000))
        left = sum(left_of.values(), Fraction(0))
        exact = law_of_coins(mechanism, value)
        assert left < Fraction(1, 20)
        for report, chance in exact.items():
            found = drawn.get(report, Fraction(0))
            assert chance * (1 - TABLE) - left <= found <= chance * (1 + TABLE)
        # No set is favoured over its equals, of the same size and with the own value or without.
        alike = defaultdict(set)
        for report, chance in drawn.items():
            alike[len(report), value in report].add(chance)
        assert all(len(chances) == 1 for chances in alike.values())
        laws.append((drawn, left))
    likelier = Fraction(exp(local)) * (1 + Fraction(1, 10**15))  # what a float may lack
    for one, _ in laws:
        for other, left in laws:
            assert all(one[r] <= likelier * (other.get(r, 0) + left) for r in one)


def test_sums_of_what_is_drawn_keep_to_a_users_promise():
    """All sums of all reports, enumerated: a user of two, among another of two."""
    domain, delta = 4, 0.05
    mechanism = randomiser(domain, 1.0, "coins")
    laws = {}
    for value in range(NOTHING, domain):
        drawn, left = law_drawn(mechanism, value, Fraction(1, 20_000))
        whole: Counter[tuple[int, bool]] = Counter()
        for report, chance in drawn.items():
            whole[len(report), value in report] += chance
        law: Counter[tuple[int, ...]] = Counter()
        for report, chance in drawn.items():
            alike = len(report), value in report
            # What is left is of sets like these, all of which are as likely.
            more = left[alike] * chance / whole[alike]
            counts = tuple(int(v in report) for v in range(domain))
            law[counts] += float(chance + more)
        assert sum(law.values()) == pytest.approx(1)
        laws[value] = law

    def summed(values):
        total: Counter[tuple[int, ...]] = Counter({(0,) * domain: 1.0})
        for value in values:
            longer: Counter[tuple[int, ...]] = Counter()
            for counts, chance in total.items():
                for report, share in laws[value].items():
                    longer[tuple(map(sum, zip(counts, report, strict=True)))] += chance * share
            total = longer
        return total

    promised = epsilon_of_coins(mechanism, Level(2, 2), 2, delta)
    found = 0.0
    for others in [(0, 1), (2, 3), (NOTHING, NOTHING), (0, 2)]:
        for before, after in [((0, 1), (2, 3)), ((0, 1), (NOTHING, NOTHING)), ((0, 1), (1, 2))]:
            for one, other in [(before, after), (after, before)]:
                p, q = summed([*others, *one]), summed([*others, *other])
                over = sum(max(p[c] - exp(promised) * q[c], 0.0) for c in p)
                assert over <= delta
                found = max(found, sum(max(p[c] - exp(0.6 * promised) * q[c], 0.0) for c in p))
    assert found > delta  # a promise of 0.6 of it would be false


# By counts


def test_sizes_and_own_values_come_as_often_as_they_should():
    mechanism, runs = randomiser(2001, 4.0, "coins"), 20_000
    held = np.arange(runs) % 2001
    held[::4] = NOTHING
    drawn, sizes = draw_coins(SYSTEM, held, mechanism, "x")
    owners = np.repeat(np.arange(runs), sizes)
    own = np.zeros(runs, dtype=int)
    own[owners[drawn == held[owners]]] = 1
    holders = held != NOTHING
    low, high = binom.ppf([CHANCE, 1 - CHANCE], int(holders.sum()), mechanism.p)
    assert low <= own.sum() <= high
    for these, among in ((holders, 2000), (~holders, 2001)):
        law = binom.pmf(np.arange(120), among, mechanism.q) * these.sum()
        counted = np.bincount((sizes - own)[these], minlength=120)[:120]
        common = law >= 10
        cells = np.append(counted[common], counted[~common].sum())
        expected = np.append(law[common], law[~common].sum())
        assert chisquare(cells, expected * cells.sum() / expected.sum()).pvalue > CHANCE
    others = np.bincount(drawn[drawn != held[owners]], minlength=2001)
    assert chisquare(others).pvalue > CHANCE


def test_counts_have_the_mean_and_spread_of_coins_and_do_not_hang_together():
    mechanism, clients = randomiser(41, 1.0, "coins"), 300
    values = np.minimum(np.random.default_rng(5).geometric(0.1, clients) - 1, 40)
    counts = np.bincount(values, minlength=41)
    found = np.array([
        np.bincount(draw_coins(SYSTEM, values, mechanism, "x")[0], minlength=41) for _ in range(800)
    ])  # fmt: skip
    means = estimate(found, clients, mechanism).mean(axis=0)
    deviation = np.sqrt(mechanism.variance(clients, counts) / 800)
    assert chi2.sf((((means - counts) / deviation) ** 2).sum(), 41) > CHANCE
    correlations = np.corrcoef(found.T)[np.triu_indices(41, 1)]
    assert chi2.sf(800 * (correlations**2).sum(), len(correlations)) > CHANCE
    assert found.sum(axis=1).std() > 1  # of subsets it would be the same, always


def test_values_rise_and_are_each_there_once():
    mechanism = randomiser(30, 0.3, "coins")
    drawn, sizes = draw_coins(SYSTEM, np.arange(-1, 29).repeat(50), mechanism, "x")
    for report in np.split(drawn, np.cumsum(sizes)[:-1]):
        assert (np.diff(report) > 0).all()
        assert report.size == 0 or (report[0] >= 0 and report[-1] < 30)


class Scripted:
    """Hands out the words it was given for whether and how many; the system's for the rest."""

    is_test = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count, purpose, keys=None):
        if not purpose.startswith("x/own"):
            return SYSTEM.words(count, purpose)
        given, self.left = self.left[:count], self.left[count:]
        assert len(given) == count
        return np.array(given, dtype=np.uint64)


@pytest.mark.parametrize("domain, local", [(4, 1.0), (50, 2.0)])
def test_at_a_chances_edge_all_words_decide(domain, local):
    """Either side of every cumulative chance, with exact chances from fractions."""
    mechanism = randomiser(domain, local, "coins")
    q = mechanism.other_chance
    cumulative, term = Fraction(0), (1 - q) ** domain
    for size in range(domain):
        cumulative += term
        term = term * (domain - size) * q / ((size + 1) * (1 - q))
        if term < Fraction(1, 1 << 60):
            break
        edge = int(cumulative * 2**320)
        # Weights are right to 2^-82 or so.
        for uniform, expected in ((edge - 2**250, size), (edge + 2**250, size + 1)):
            words = [uniform >> shift & (2**64 - 1) for shift in (256, 192, 128, 64, 0)]
            _, sizes = draw_coins(Scripted(*words), np.array([NOTHING]), mechanism, "x")
            assert sizes.tolist() == [expected]


# Names, blocks, forms


def test_a_seeds_report_hangs_on_its_key_alone(monkeypatch):
    mechanism = randomiser(40, 1.0, "coins")
    values = np.arange(-1, 39).repeat(5)
    keys = pa.array([f"user {i}" for i in range(200)])

    def drawn(order, randomness):
        found, sizes = draw_coins(randomness, values[order], mechanism, "p", keys.take(order))
        reports = np.split(found, np.cumsum(sizes)[:-1])
        return {int(row): report.tolist() for row, report in zip(order, reports, strict=True)}

    forwards = np.arange(200)
    as_one = drawn(forwards, SeededRandomness(4))
    assert as_one == drawn(forwards[::-1].copy(), SeededRandomness(4))
    monkeypatch.setattr(module, "_BLOCK", 60)
    assert as_one == drawn(forwards, SeededRandomness(4))
    assert as_one != drawn(forwards, SeededRandomness(5))


def test_both_forms_are_drawn_as_rows_of_one_kind():
    values = np.arange(12)
    mechanism = randomiser(12, 1.0, "subsets")
    drawn, sizes = draw_reports(SeededRandomness(1), values, mechanism, "subsets", "x")
    assert sizes.tolist() == [mechanism.size] * 12
    rows = draw_subsets(SeededRandomness(1), values, mechanism, "x")
    assert drawn.tolist() == rows.ravel().tolist()
    coins = randomiser(12, 1.0, "coins")
    _, sizes = draw_reports(SYSTEM, values.repeat(9), coins, "coins", "x")
    assert len(set(sizes.tolist())) > 1


def test_no_reports_and_what_is_no_report():
    mechanism = randomiser(12, 1.0, "coins")
    drawn, sizes = draw_coins(SYSTEM, np.array([], dtype=np.int64), mechanism, "x")
    assert (len(drawn), len(sizes)) == (0, 0)
    for values, said in [([12], "from 0 to 11"), ([-2], "from 0 to 11"), ([[1]], "one array")]:
        with pytest.raises(UsageError, match=said):
            draw_coins(SYSTEM, np.array(values), mechanism, "x")
    with pytest.raises(UsageError, match="keys: found 1 for 2 draws"):
        draw_coins(SYSTEM, np.array([1, 2]), mechanism, "x", pa.array(["a"]))
