"""The sequence fragment puzzle, beside TrieHH in a figure: coins, hashes, estimator, finds."""

from __future__ import annotations

from itertools import product
from math import exp, sqrt

import numpy as np
import pytest
from baselines.sfp import (
    LETTERS,
    draw_hashes,
    draw_sketch,
    estimate,
    flip_numerator,
    sfp,
    sketch_sums,
)

from dphh.testing import SeededRandomness


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


WORDS = ["the", "hello", "watermelon", "a", "don't", "watermelons", "été", "friday"]


@pytest.mark.slow
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
