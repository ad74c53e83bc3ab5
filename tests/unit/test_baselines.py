"""What figures of examples compare dphh with must itself be right."""

from __future__ import annotations

from math import exp

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
