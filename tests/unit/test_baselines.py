"""What figures of examples compare dphh with must itself be right."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import exp, isclose, isqrt, sqrt

import numpy as np
import pytest
from baselines.dpsu import found_by, priced
from baselines.policy_gaussian import policy_weights
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
from tests.engines.ladders import grams_of


def test_weights_by_hand():
    # One item: straight up by 1, until the gap is less.
    assert policy_weights([["a"]] * 2, 2.5, 10) == {"a": 2.0}
    assert policy_weights([["a"]] * 9, 2.5, 10) == {"a": 2.5}
    # Gaps of 3 and 3: by 1/sqrt(2) each.
    first = policy_weights([["a", "b"]], 3.0, 10)
    assert all(isclose(w, 1 / sqrt(2)) for w in first.values())
    # Then gaps of 3 and 4, of norm 5: by 3/5 and 4/5.
    second = policy_weights([["a"], ["a", "b"]], 4.0, 10)
    assert isclose(second["a"], 1 + 3 / 5)
    assert isclose(second["b"], 4 / 5)
    # An item at Gamma takes nothing: all goes to the other.
    third = policy_weights([["a"], ["a", "b"]], 1.0, 10)
    assert third == {"a": 1.0, "b": 1.0}


METHODS = ("all", "even", "single")
ROWS = [(user, ["a", "b", "ab"[user % 2], "c"]) for user in range(400)] + [(999, ["x"])]


def weights(length, lengths):
    """How much users give to each n-gram of `length`, where they may give to those of `lengths`."""
    held = defaultdict(set)
    for user, tokens in ROWS:
        for n in lengths:
            held[user] |= grams_of(tokens, n)
    given: Counter[tuple[str, ...]] = Counter()
    for grams in held.values():
        unit = isqrt(1024**2 // len(grams)) if grams else 0
        given.update({gram: unit / 1024 for gram in grams if len(gram) == length})
    return given


@pytest.mark.parametrize("method", METHODS)
def test_what_many_hold_is_found_at_its_weight_but_for_noise(written, method):
    baseline = priced(method, max_n=3, epsilon=8.0, delta=1e-4, max_items=10)
    corpus = written(ROWS, text="what", as_="list")
    found = found_by(baseline, corpus, randomness=SeededRandomness(1))
    for level in baseline.levels:
        lengths = [1, 2, 3] if method == "all" else [level.level]
        expected = weights(level.level, lengths)
        here = found.filter(level=level.level)
        scores = dict(zip(map(tuple, here["tokens"].to_list()), here["score"], strict=True))
        assert scores.keys() == {gram for gram, weight in expected.items() if weight > 5}
        assert all(abs(scores[gram] - expected[gram]) < 6 * level.sigma for gram in scores)


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
