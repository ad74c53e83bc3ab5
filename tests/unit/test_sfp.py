"""The sequence fragment puzzle: its coins, its hashes, its estimator, and what it finds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb, exp, log, sqrt

import numpy as np
import pytest
from baselines.sfp import (
    LETTERS,
    Hashes,
    assemble,
    draw_binomials,
    draw_hashes,
    draw_sketch,
    estimate,
    estimate_variance,
    flip_numerator,
    local_epsilon,
    sfp,
    sketch_sums,
)
from baselines.sfp_puzzle import fragment_sums, most_frequent
from baselines.sfp_sketch import _binomial
from mpmath import mp, mpf

from dphh.errors import UsageError
from dphh.testing import SeededRandomness

# The bit randomiser.


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0, 9.7, 60.0, 2000.0])
def test_a_message_is_at_most_e_to_the_epsilon_times_likelier_for_another_word(epsilon):
    flip = flip_numerator(epsilon)
    with mp.workprec(4000):
        q = mpf(flip) / mpf(2) ** 64
        assert ((1 - q) / q) ** 2 <= mp.exp(epsilon)
        if epsilon < 60:  # and no more noise than that takes
            assert q * (1 + mp.exp(mpf(epsilon) / 2)) < 1 + mpf(2) ** -30


def test_the_ratio_by_all_messages_of_a_small_sketch():
    flip, cells = Fraction(flip_numerator(1.0), 1 << 64), 4

    def probability(message, cell):
        chance = Fraction(1)
        for at, bit in enumerate(message):
            chance *= 1 - flip if bit == (at == cell) else flip
        return chance

    worst = max(
        probability(message, one) / probability(message, other)
        for message in product((0, 1), repeat=cells)
        for one, other in product(range(cells), repeat=2)
    )
    assert worst == ((1 - flip) / flip) ** 2
    assert exp(1) * (1 - 1e-12) < worst <= Fraction(exp(1)) * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize("coins", [1, 2, 20, 70])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_sums_of_coins_have_the_binomials_probabilities(coins, epsilon):
    flip = flip_numerator(epsilon)
    table, q, below = _binomial(coins, flip), Fraction(flip, 1 << 64), Fraction(0)
    assert table.lowest == 0
    assert table.entries[-1] == 1 << 144
    for heads in range(coins + 1):
        below += comb(coins, heads) * q**heads * (1 - q) ** (coins - heads)
        if heads < len(table.entries):
            assert abs(Fraction(table.entries[heads], 1 << 144) - below) < Fraction(2, 1 << 144)
        else:
            assert 1 - below < Fraction(2, 1 << 144)


class Counting:
    """Every 16-bit number once, the further bits all 0 or all 1."""

    is_test = True

    def __init__(self, tail):
        self.tail = tail

    def words(self, count, purpose, keys=None):
        if purpose == "sfp coins":
            return np.arange(1 << 16, dtype=np.uint16).view(np.uint64)
        return np.full(count, self.tail, dtype=np.uint64)


def test_sums_of_coins_are_drawn_by_inversion():
    flip, coins = flip_numerator(3.0), 25
    entries = _binomial(coins, flip).entries
    for tail, further in ((0, 0), ((1 << 64) - 1, (1 << 128) - 1)):
        drawn = draw_binomials(Counting(tail), coins, flip, 1 << 16)
        uniforms = [top << 128 | further for top in range(1 << 16)]
        expected = np.zeros(1 << 16, dtype=np.int64)
        for entry in entries:
            expected += np.array([entry <= uniform for uniform in uniforms])
        assert (drawn == expected).all()


# Hash functions.


@pytest.mark.parametrize(
    ("sizes", "cells"), [((2, 2), 2), ((2, 2), 4), ((3, 2), 2), ((2, 2, 2), 2)]
)
def test_hashes_are_three_wise_independent_by_all_tables(sizes, cells):
    """One function for each way to fill the tables: any three keys take all values alike."""
    entries = sum(sizes)
    fillings = np.array(list(product(range(cells), repeat=entries)), dtype=np.uint16)
    ends = np.cumsum(sizes)
    hashes = Hashes(tuple(np.split(fillings, ends[:-1], axis=1)))
    keys = list(product(*map(range, sizes)))
    everyone = np.arange(len(fillings))
    values = {key: hashes.of(everyone, np.tile(key, (len(fillings), 1))) for key in keys}
    for three in combinations(keys, 3):
        seen = Counter(zip(*(values[key].tolist() for key in three), strict=True))
        assert len(seen) == cells**3
        assert set(seen.values()) == {len(fillings) // cells**3}


def test_tables_are_uniform():
    hashes = draw_hashes(SeededRandomness(1), 500, 8, [256, 27], "test")
    assert [table.shape for table in hashes.tables] == [(500, 256), (500, 27)]
    for table in hashes.tables:
        seen, expected = np.bincount(table.ravel()), table.size / 8
        assert len(seen) == 8
        assert ((seen - expected) ** 2 / expected).sum() < 30  # 7 degrees: 1e-4


# The sketch.


def test_a_sketch_has_the_law_of_the_users_messages():
    """Every cell's sum against the exact distribution of its coins."""
    flip = flip_numerator(1.5)
    q = flip / 2.0**64
    function, cell = np.array([0, 0, 0, 1, 1]), np.array([2, 2, 3, 0, 1])
    runs, source = 4000, SeededRandomness(2)
    sums = np.array([draw_sketch(source, function, cell, (3, 4), flip) for _ in range(runs)])
    assert not sums[:, 2].any()
    for row, at in product(range(2), range(4)):
        law = np.array([1.0])
        for user in np.flatnonzero(function == row):
            one = 1 - q if cell[user] == at else q
            law = np.convolve(law, [1 - one, one])
        seen = np.bincount(sums[:, row, at], minlength=len(law))
        assert ((seen - runs * law) ** 2 / (runs * law)).sum() < 25  # 3 degrees: 2e-5
    flat = sums[:, :2].reshape(runs, -1)
    correlations = np.corrcoef(flat.T) - np.eye(8)
    assert abs(correlations).max() < 4.5 / sqrt(runs)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_the_estimator_is_unbiased_and_has_its_variance(epsilon):
    """Over hash functions, choices of function and coins alike. Few cells, so collisions count."""
    flip, functions, cells, runs = flip_numerator(epsilon), 4, 8, 4000
    counts = [60, 25, 10, 5, 0]
    users = sum(counts)
    keys = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]])
    held = np.repeat(np.arange(5), counts)
    source = SeededRandomness(3)
    estimates = np.empty((runs, 5))
    drawn = source.words(runs * users, "functions").reshape(runs, users) % np.uint64(functions)
    for run, function in enumerate(drawn.astype(np.int64)):
        hashes = draw_hashes(source, functions, cells, [3, 3], "hashes")
        sketch = draw_sketch(
            source, function, hashes.of(function, keys[held]), (functions, cells), flip
        )
        estimates[run] = estimate(sketch_sums(hashes, sketch, keys), users, cells, flip)
    for word, own in enumerate(counts):
        others = [count for other, count in enumerate(counts) if other != word]
        variance = estimate_variance(users, others, own, functions, cells, flip)
        assert abs(estimates[:, word].mean() - own) < 4 * sqrt(variance / runs)
        # The sample variance's own spread, from the sample's fourth moment.
        squares = (estimates[:, word] - own) ** 2
        assert abs(squares.mean() - variance) < 4 * squares.std() / sqrt(runs)


def test_the_estimator_is_the_papers():
    """f~ from M and c_epsilon as section D and Apple write them."""
    source, epsilon, functions, cells, users = SeededRandomness(4), 2.0, 8, 16, 300
    flip = flip_numerator(epsilon)
    hashes = draw_hashes(source, functions, cells, [5], "hashes")
    function = np.arange(users) % functions
    keys = np.arange(5)[:, np.newaxis]
    sketch = draw_sketch(
        source, function, hashes.of(function, keys[np.arange(users) % 5]), (functions, cells), flip
    )
    c_epsilon = (exp(epsilon / 2) + 1) / (exp(epsilon / 2) - 1)
    in_row = np.bincount(function)[:, np.newaxis]
    signed = 2 * sketch - in_row
    matrix = functions * (c_epsilon / 2 * signed + in_row / 2)
    estimates = estimate(sketch_sums(hashes, sketch, keys), users, cells, flip)
    for key, f in zip(keys, estimates, strict=True):
        mean = np.mean([matrix[j, hashes.tables[0][j, key[0]]] for j in range(functions)])
        assert f == pytest.approx(cells / (cells - 1) * (mean - users / cells), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("peak", [7, 300, 5000, 3_000_000])
def test_all_fragments_at_once_are_asked_as_one_by_one(peak):
    rng = np.random.default_rng(5)
    hashes = draw_hashes(SeededRandomness(5), 12, 16, [256, 6, 6], "hashes")
    sketches = rng.integers(0, peak, size=(5, 12, 16), dtype=np.int32)
    sums = fragment_sums(hashes, sketches, 4)
    keys = np.array(list(product(range(256), range(4), range(4))))
    for at in range(5):
        assert (sums[at] == sketch_sums(hashes, sketches[at], keys)).all()


def test_the_most_frequent_fragments():
    symbols = ["", "a", "b"]
    sums = np.zeros(256 * 9, dtype=np.int64)
    for (w, a, b), count in {(3, 1, 2): 50, (9, 2, 0): 40, (3, 0, 0): 30, (4, 0, 1): 60}.items():
        sums[w * 9 + a * 3 + b] = count
    found = most_frequent(sums, 100, 4, 1024, flip_numerator(100.0), symbols)
    assert [(one.hash, one.text) for one in found] == [(3, "ab"), (9, "b"), (3, "")]
    assert [round(one.estimate) for one in found] == [50, 40, 30]
    three = most_frequent(sums, 100, 3, 1024, flip_numerator(100.0), symbols)
    assert three == found[:2]


# The puzzle.


def test_fragments_are_put_together_under_their_hash():
    fragments = [
        [(1, "he"), (1, "wo"), (2, "at"), (3, "no")],
        [(1, "ll"), (1, "rd"), (2, "")],
        [(1, "o"), (1, ""), (2, "")],
        [(1, ""), (2, ""), (3, "")],
        [(1, ""), (2, "")],
    ]
    assert {w: sorted(words) for w, words in assemble(fragments).items()} == {
        1: ["hell", "hello", "herd", "herdo", "woll", "wollo", "word", "wordo"],
        2: ["at"],
    }


def test_nothing_follows_padding():
    fragments = [[(1, "ab")], [(1, "c"), (1, "de")], [(1, "fg"), (1, "")], [(1, "")], [(1, "")]]
    assert sorted(assemble(fragments)[1]) == ["abc", "abde", "abdefg"]


def test_it_is_the_product_of_all_that_share_a_hash():
    rng = np.random.default_rng(6)
    pairs = ["ab", "cd", "a", "", "ef"]
    for _ in range(50):
        fragments = [
            sorted({(int(rng.integers(3)), pairs[rng.integers(5)]) for _ in range(7)})
            for _ in range(5)
        ]
        expected = {}
        for w in range(3):
            whole = [
                "".join(text.ljust(2, "$") for text in chosen)
                for chosen in product(*([text for v, text in at if v == w] for at in fragments))
            ]
            if words := {s.rstrip("$") for s in whole if "$" not in s.rstrip("$")}:
                expected[w] = sorted(words)
        assert {w: sorted(words) for w, words in assemble(fragments).items()} == expected


def test_too_many_products_are_refused():
    with pytest.raises(UsageError, match="threshold"):
        assemble([[(0, a + b) for a in LETTERS for b in LETTERS]] * 5)


WORDS = ["the", "hello", "watermelon", "a", "don't", "watermelons", "été", "friday"]


def test_noiseless_messages_give_back_the_words():
    """At epsilon 200 hardly a bit flips: all is found, cut to ten, but for what Omega lacks."""
    words = WORDS * 2000
    for seed, extra in enumerate([{}, {"word_share": 0.5}, {"check_hash": True}]):
        found = sfp(
            words,
            epsilon=200.0,
            threshold=7,
            alphabet=LETTERS + "'",
            randomness=SeededRandomness(seed),
            **extra,
        )
        assert set(found.words) == {"the", "hello", "watermelon", "a", "don't", "friday"}
        assert found.local_epsilon == 200.0
        if "word_share" in extra:
            counted = dict(zip(found.words, found.estimates, strict=True))
            assert counted["watermelon"] == pytest.approx(4000, rel=0.05)
            assert counted["a"] == pytest.approx(2000, rel=0.05)
        else:
            assert found.estimates is None


def population():
    """20 words, which 2,000 users each will hold, and 60,000 words of one user each."""
    rng = np.random.default_rng(7)
    letters = np.array(list(LETTERS))
    made = {"".join(rng.choice(letters, size=3 + i % 8)) for i in range(30)}
    frequent = sorted(made)[:20]
    unique = {"".join(row) for row in rng.choice(letters, size=(60_000, 9))} - set(frequent)
    return frequent, unique


@pytest.mark.slow
def test_it_finds_the_frequent_and_none_of_the_unique():
    frequent, unique = population()
    words = frequent * 2000 + sorted(unique)
    found = sfp(words, epsilon=10.0, threshold=25, randomness=SeededRandomness(8))
    assert set(frequent) <= set(found.words)
    assert not set(found.words) & unique
    assert len(found.fragments) == 5
    for at, q in enumerate(found.fragments):
        assert len(q) <= 25
        assert [one.estimate for one in q] == sorted((one.estimate for one in q), reverse=True)
        texts = {word[2 * at : 2 * at + 2] for word in frequent}
        assert texts <= {one.text for one in q}
        # About 400 users send a frequent word's fragment of this position.
        for one in q[:15]:
            assert 250 < one.estimate < 1400
    # A sketch of whole words, or their own hashes, leave nothing but words.
    for extra in ({"word_share": 0.5, "epsilon": 20.0}, {"check_hash": True, "epsilon": 10.0}):
        checked = sfp(words, threshold=25, randomness=SeededRandomness(9), **extra)
        assert set(checked.words) >= set(frequent)
        assert len(checked.words) <= len(frequent) + 1


def test_at_a_small_epsilon_it_finds_none():
    frequent, _ = population()
    found = sfp(frequent * 200, epsilon=0.1, threshold=20, randomness=SeededRandomness(10))
    assert not set(found.words) & set(frequent)


# The central epsilon.


def test_the_local_epsilon_meets_the_codes_bound():
    users, epsilon, delta = 658_769, 4.0, 2.3e-12
    local = local_epsilon(epsilon, delta, users)

    def bound(e0):
        t = ((exp(epsilon) - 1) / ((exp(epsilon) + 1) * (exp(e0) - exp(-e0)))) ** 2
        tail = exp(-(1 - exp(-2)) * users * min(exp(-e0), t))
        return (exp(epsilon) - 1) / (4 * users * t) * tail

    assert bound(local) == pytest.approx(delta, rel=1e-6)
    assert bound(local) <= delta * (1 + 1e-9)
    assert local > epsilon
    assert local == pytest.approx(0.5 * log(users / log(1 / delta)), abs=1.0)
    # With few users shuffling gives nothing.
    assert local_epsilon(epsilon, delta, 100) == epsilon
    words = ["one", "two"] * 500
    found = sfp(words, epsilon=0.5, delta=1e-6, threshold=2, randomness=SeededRandomness(1))
    assert found.local_epsilon == local_epsilon(0.5, 1e-6, 1000)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"threshold": 0}, "threshold"),
        ({"cells": 1000}, "cells"),
        ({"functions": 0}, "functions"),
        ({"alphabet": "aa"}, "alphabet"),
        ({"word_share": 1.0}, "word_share"),
        ({"words": []}, "words"),
        ({"words": ["a", None]}, "word"),
        ({"words": ["a", "se\0cret"]}, "NUL"),
    ],
)
def test_errors_name_what_is_wrong(wrong, named):
    given = {"words": ["a", "b"], "epsilon": 1.0, "threshold": 5} | wrong
    with pytest.raises(UsageError, match=named) as error:
        sfp(given.pop("words"), **given)
    assert "cret" not in str(error.value)
