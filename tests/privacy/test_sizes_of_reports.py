"""How reports by coins are limited in size, and how near their tables are to the coins' law."""

from __future__ import annotations

from fractions import Fraction
from math import comb, log

import numpy as np
import pytest
from mpmath import mp, mpf

from dphh.errors import UsageError
from dphh.mechanisms.ldp_trie.local_reports import randomiser
from dphh.privacy.coin_reports import LEFT_OUT, local_epsilon, outcomes, sizes
from dphh.privacy.subset_selection import SubsetSelection, subset_selection

SETTINGS = [(5, 1.0), (40, 0.5), (2000, 4.0), (10_160, 9.3), (10**6 + 1, 10.0), (10**6, 14.0)]


def tail(n: int, p: Fraction, first: int) -> mpf:
    """P[Binomial(n, p) >= first], for a first far above the mean: its sum, until nothing adds."""
    with mp.workdps(60):
        chance = mpf(p.numerator) / p.denominator
        odds = chance / (1 - chance)
        term = mp.binomial(n, first) * chance**first * (1 - chance) ** (n - first)
        total, k = mpf(0), first
        while k <= n and term > total * mpf(10) ** -40:
            total += term
            term *= odds * (n - k) / (k + 1)
            k += 1
        return total


@pytest.mark.parametrize("domain, local", SETTINGS)
def test_hardly_any_report_is_of_another_size(domain, local):
    mechanism = randomiser(domain, local, "coins")
    least, most = sizes(mechanism, "coins")
    assert 0 <= least <= mechanism.size <= most <= domain
    p, q = mechanism.own_chance, mechanism.other_chance
    # Of nothing; and of a value, whose own coin may have come up.
    left_out = tail(domain, q, most + 1) + tail(domain - 1, q, most)
    if least:
        left_out += tail(domain, 1 - q, domain - least + 1)
        left_out += tail(domain - 1, 1 - q, domain - least)
    assert left_out <= LEFT_OUT
    assert p > q


def test_a_report_is_not_much_longer_than_most():
    """What a forged report may hold: at the Gboard paper's setting four times the usual."""
    assert sizes(randomiser(10**6 + 1, 10.0, "coins"), "coins") == (0, 178)
    assert sizes(randomiser(10**6 + 1, 10.0, "subsets"), "subsets") == (46, 46)
    assert sizes(randomiser(7, 1.0, "coins"), "coins") == (0, 7)


@pytest.mark.parametrize("nothing", [False, True])
@pytest.mark.parametrize("domain, local", [(6, 1.0), (500, 2.0), (3000, 5.0)])
def test_every_weight_is_the_exact_one_to_a_part_in_two_to_the_81(domain, local, nothing):
    mechanism = randomiser(domain, local, "coins")
    p, q = mechanism.own_chance, mechanism.other_chance
    of = outcomes(mechanism, nothing)
    others = domain if nothing else domain - 1
    middle = max(range(len(of.weights)), key=of.weights.__getitem__)

    def exact(place: int) -> Fraction:
        k = of.others[place]
        coin = Fraction(1) if nothing else p if of.own[place] else 1 - p
        return coin * comb(others, k) * q**k * (1 - q) ** (others - k)

    scale = exact(middle) / of.weights[middle]
    for place in range(0, len(of.weights), 1 + len(of.weights) // 40):
        off = abs(of.weights[place] * scale / exact(place) - 1)
        assert off < Fraction(1, 1 << 82)


def test_what_a_report_tells_is_by_its_form():
    mechanism = subset_selection(10**6 + 1, 10.0)
    assert local_epsilon(mechanism, "subsets") == 10
    assert local_epsilon(mechanism, "coins") == pytest.approx(10.011, abs=1e-4)
    p, q = mechanism.p, mechanism.q
    assert local_epsilon(mechanism, "coins") >= log(p * (1 - q) / ((1 - p) * q)) - 1e-12
    assert local_epsilon(randomiser(10**6 + 1, 10.0, "coins"), "coins") <= 10


def test_nothing_tells_no_more_than_a_value():
    """Enumerated, sizes limited as they are: nothing against a value, each way."""
    for domain, local in [(5, 1.0), (60, 3.0), (2000, 4.0)]:
        mechanism = randomiser(domain, local, "coins")
        value, none = outcomes(mechanism, False), outcomes(mechanism, True)
        whole, whole_none = sum(value.weights), sum(none.weights)
        of_none = {
            k: Fraction(w, whole_none * comb(domain, k))
            for k, w in zip(none.others, none.weights, strict=True)
        }
        worst = Fraction(0)
        for own, k, weight in zip(value.own, value.others, value.weights, strict=True):
            one = Fraction(weight, whole * comb(domain - 1, k))
            ratio = one / of_none[k + own]
            worst = max(worst, ratio, 1 / ratio)
        assert np.log(float(worst)) <= mechanism.epsilon_of_independent_values


def test_reports_that_are_no_messages_are_refused():
    with pytest.raises(UsageError, match="reports: with coins a report would hold about 5,000,000"):
        sizes(SubsetSelection(10**7, 5_000_000, (2**64 // 10) * 9), "coins")
