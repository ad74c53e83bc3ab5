"""Spurious grams: how many, which, and their scores, against the exact distributions.

With the operating system's randomness. Each statistical check fails a right draw with probability
below 1e-8.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, chi2, chisquare, norm

from dphh.mechanisms.ngrams.ladder.rungs import first_rung, next_rung, valid_grams
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.draws.spurious import lifted_grams

FAILS = 1e-9
SIGMA = 40
NOISE = rounded_gaussian(SIGMA)


def grams(words=6, pruning="both", dropped=(3, 8, 20)):
    """V_3 over a level 2 that lacks a few pairs, so that overlaps differ in size."""
    first = first_rung(words)
    pairs = valid_grams(first, first, pruning)
    keys = np.delete(np.sort(pairs.keys(np.arange(len(pairs), dtype=np.int64))), list(dropped))
    return valid_grams(next_rung(first, first, keys, pruning), first, pruning)


def all_keys(valid):
    return valid.keys(np.arange(len(valid), dtype=np.int64))


def drawn(valid, held, threshold):
    """Keys and noisy weights, as released_grams.sql takes them of what was lifted."""
    lifted = lifted_grams(valid, len(held), SIGMA, threshold, SystemRandomness(), "test")
    return lifted.keys[~np.isin(lifted.keys, held)][: len(lifted.noisy)], lifted.noisy


@pytest.mark.parametrize("pruning", ["both", "single"])
@pytest.mark.parametrize("threshold", [1, 40, 80])
def test_they_are_valid_never_held_and_never_drawn_twice(pruning, threshold):
    valid = grams(pruning=pruning)
    every = all_keys(valid)
    held = every[::3]
    for _ in range(30):
        keys, scores = drawn(valid, held, threshold)
        assert len(set(keys.tolist())) == len(keys) == len(scores)
        assert set(keys.tolist()) <= set(every.tolist()) - set(held.tolist())
        assert (scores >= threshold).all()


@pytest.mark.parametrize("pruning", ["both", "single"])
def test_they_are_uniform_over_what_is_valid_and_not_held(pruning):
    valid = grams(words=4, pruning=pruning, dropped=(1, 6))
    every = all_keys(valid)
    free = sorted(set(every.tolist()) - set(every[::4].tolist()))
    seen: Counter[int] = Counter()
    for _ in range(1500):
        seen.update(drawn(valid, every[::4], SIGMA)[0].tolist())
    # How often a gram passes is Binomial(runs, p), independently of the other grams.
    p = float(NOISE.tail(SIGMA))
    counts = np.array([seen[key] for key in free])
    statistic = ((counts - 1500 * p) ** 2 / (1500 * p * (1 - p))).sum()
    assert statistic < chi2.isf(FAILS, len(free))


@pytest.mark.parametrize("threshold", [30, 90])
def test_their_number_is_binomial(threshold):
    valid = grams()
    every = all_keys(valid)
    held, runs = every[: len(every) // 3], 3000
    free = len(every) - len(held)
    p = float(norm.sf((threshold - 0.5) / SIGMA))
    numbers = Counter(len(drawn(valid, held, threshold)[0]) for _ in range(runs))
    # Bins of at least 20 expected runs.
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
