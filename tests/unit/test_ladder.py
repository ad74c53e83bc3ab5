"""The ladder against plain enumeration of the valid grams, as tuples of words; and spurious grams:
how many, which, and their scores, against the exact distributions.

Those are drawn with the operating system's randomness. Each statistical check fails a right draw
with probability below 1e-8.
"""

from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2, chisquare, norm

from dphh.mechanisms.ngrams.ladder.rungs import ValidGrams, first_ladder, texts_of_grams
from dphh.udfs.noise.absent import spurious_of_level
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.udfs.noise.table import rounded_gaussian
from tests.conftest import full

WORDS = [f"w{i}" for i in range(5)]


def enumerated(below, words):
    """V_k by its definition."""
    level = len(next(iter(below))) + 1 if below else 0
    return {
        gram
        for gram in product(sorted(words), repeat=level)
        if gram and gram[:-1] in below and gram[1:] in below
    }


@st.composite
def released_sets(draw, top=4):
    """S_1, S_2, ..., each some of the grams that the one before makes valid."""
    words = draw(st.sets(st.sampled_from(WORDS)))
    sets = [{(word,) for word in words}]
    for _ in range(2, draw(st.integers(2, top)) + 1):
        valid = sorted(enumerated(sets[-1], words))
        sets.append(draw(st.sets(st.sampled_from(valid))) if valid else set())
    return sets


def climbed(sets):
    """The ladders of these sets, each with one rung more, made as a run makes them."""
    ladders = [first_ladder(pa.array(sorted(word for (word,) in sets[0]), pa.string()))]
    for chosen in sets[1:]:
        keys = all_keys(ladders[-1].valid_grams())
        spell = top_in_words(ladders[-1].with_next(keys))
        kept = [key for key, gram in zip(keys.tolist(), spell, strict=True) if gram in chosen]
        ladders.append(ladders[-1].with_next(np.array(sorted(kept), dtype=np.int64)))
    return ladders


def top_in_words(ladder):
    _, tokens = texts_of_grams(ladder.top, ladder.vocabulary, " ")
    return [tuple(gram) for gram in tokens.to_pylist()]


@given(sets=released_sets())
@settings(max_examples=40, deadline=None)
def test_each_index_is_another_valid_gram_and_every_valid_gram_has_one(sets):
    words = {word for (word,) in sets[0]}
    for ladder, below in zip(climbed(sets), sets, strict=True):
        valid = ladder.valid_grams()
        keys = all_keys(valid)
        assert len(set(keys.tolist())) == len(valid)
        found = top_in_words(ladder.with_next(np.sort(keys)))
        assert sorted(found) == sorted(enumerated(below, words))


def test_more_grams_than_could_be_written_down_have_keys_of_their_own():
    many = 2**31 - 1  # as many words as a key has room for
    beyond = ValidGrams(
        ending=np.array([many - 1]),
        beginning=np.array([many - 1]),
        begins=np.array([1]),
        starts_ending=np.array([0]),
        starts_beginning=np.array([0]),
        cumulative=np.array([1]),
    )
    (key,) = beyond.keys(np.array([0])).tolist()
    assert divmod(key, 2**32) == (many - 1, many - 1)
    words = first_ladder(range(70_000))
    valid = words.valid_grams()
    assert len(valid) == 70_000**2
    ends = valid.keys(np.array([0, 70_000, 70_000**2 - 1])).tolist()
    assert [divmod(key, 2**32) for key in ends] == [(0, 0), (1, 0), (69_999, 69_999)]


FAILS = 1e-9
SIGMA = 40
NOISE = rounded_gaussian(SIGMA)


def grams(words=6, dropped=(3, 8, 20)):
    """V_3 over a level 2 that lacks a few pairs, so that overlaps differ in size."""
    ladder = first_ladder(range(words))
    keys = np.delete(np.sort(all_keys(ladder.valid_grams())), list(dropped))
    return ladder.with_next(keys).valid_grams()


def all_keys(valid):
    return valid.keys(np.arange(len(valid), dtype=np.int64))


def drawn(valid, held, threshold):
    """Keys and noisy weights, as released_grams.sql takes them of what was lifted."""
    kept = pa.array([len(held)])
    rows = spurious_of_level(SystemRandomness(), kept, valid, SIGMA, threshold, "test").flatten()
    keys, noisy = rows.field("key").to_numpy(), rows.field("noisy").drop_null().to_numpy()
    return keys[~np.isin(keys, held)][: len(noisy)], noisy


def test_they_are_uniform_over_what_is_valid_and_not_held():
    valid = grams(words=4, dropped=(1, 6))
    every = all_keys(valid)
    free = sorted(set(every.tolist()) - set(every[::4].tolist()))
    seen: Counter[int] = Counter()
    for _ in range(1500):
        keys, scores = drawn(valid, every[::4], SIGMA)
        assert len(np.unique(keys)) == len(keys) == len(scores)
        assert (scores >= SIGMA).all()
        seen.update(keys.tolist())
    assert seen.keys() <= {*free}
    # How often a gram passes is Binomial(runs, p), independently of the other grams.
    p = float(NOISE.tail_upper_bound(SIGMA))
    counts = np.array([seen[key] for key in free])
    statistic = ((counts - 1500 * p) ** 2 / (1500 * p * (1 - p))).sum()
    assert statistic < chi2.isf(FAILS, len(free))


@pytest.mark.parametrize("threshold", [30, 90])
def test_their_number_is_binomial(threshold):
    valid = grams()
    every = all_keys(valid)
    held, runs = every[: len(every) // 3], 3000 if full() else 1000
    free = len(every) - len(held)
    p = float(norm.sf((threshold - 0.5) / SIGMA))
    numbers = Counter(len(drawn(valid, held, threshold)[0]) for _ in range(runs))
    # Bins of at least 5 expected runs.
    low = int(binom.ppf(0.02, free, p))
    high = int(binom.ppf(0.98, free, p))
    expected = [binom.cdf(low, free, p)]
    expected += [binom.pmf(n, free, p) for n in range(low + 1, high)]
    expected += [binom.sf(high - 1, free, p)]
    found = [sum(c for n, c in numbers.items() if n <= low)]
    found += [numbers[n] for n in range(low + 1, high)]
    found += [sum(c for n, c in numbers.items() if n >= high)]
    assert chisquare(found, runs * np.array(expected)).pvalue > FAILS


def test_their_scores_are_the_noise_given_that_it_passed():
    valid = grams()
    nobody = np.empty(0, dtype=np.int64)
    threshold = 60
    scores = np.concatenate([drawn(valid, nobody, threshold)[1] for _ in range(600)])
    assert scores.min() >= threshold
    # The continuous law at the borders of integer cells is the rounded one's own.
    edges = np.array([60, 65, 70, 75, 80, 90, 100, 120])
    mass = norm.sf((edges - 0.5) / SIGMA)
    expected = np.append(mass[:-1] - mass[1:], mass[-1]) / mass[0]
    found = np.append(np.histogram(scores, edges)[0], 0)
    found[-2:] = ((scores >= 100) & (scores < 120)).sum(), (scores >= 120).sum()
    assert chisquare(found, len(scores) * expected).pvalue > FAILS


def test_the_last_one_that_nobody_holds_is_found():
    """One free gram among some 14 thousand: nearly every proposal is rejected."""
    valid = grams(words=25, dropped=(3, 77))
    every = all_keys(valid)
    free = every[1234]
    held = np.delete(every, 1234)
    passed = [drawn(valid, held, 1)[0].tolist() for _ in range(40)]
    assert [free] in passed  # P[noise >= 1] is 0.49: all forty stay away with 2e-12
    assert all(keys in ([], [free]) for keys in passed)
