"""Set unions of whole n-grams: baselines that must themselves be right."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import isqrt, sqrt

import pytest
from baselines.dpsu import found_by, priced

from dphh.privacy.gaussian import gaussian_sigma
from dphh.testing import SeededRandomness
from tests.engines.ladders import grams_of

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


def test_users_are_bounded_and_noised_as_the_paper_says():
    whole = gaussian_sigma(1.0, 0.5e-7)
    for method, lengths, caps, sigma in (
        ("all", [1, 2, 3], [24, 24, 24], whole),
        ("even", [1, 2, 3], [7, 8, 9], whole * sqrt(3)),
        ("single", [3], [9], whole),
    ):
        baseline = priced(method, max_n=3, epsilon=1.0, delta=1e-7, max_items=[7, 8, 9])
        assert [level.level for level in baseline.levels] == lengths
        assert [level.max_items for level in baseline.levels] == caps
        assert all(abs(level.sigma - sigma) < 1.5 / 1024 for level in baseline.levels)
