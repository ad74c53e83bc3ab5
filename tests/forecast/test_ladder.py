"""Whole levels in memory: spurious grams at few released words."""

from __future__ import annotations

import numpy as np
import pytest

from dphh.mechanisms.ngrams.forecast.climb import begun
from tests.drawn_again import drawn_again
from tests.forecast.in_memory import SIGMA_GRID, InMemory, Positions, climb


def pairs_of(words: int, held: int, holders: int, rng: np.random.Generator) -> Positions:
    """`held` distinct pairs of `words`, each in the text of `holders` users."""
    keys = rng.choice(words * words, held, replace=False).repeat(holders)
    user = np.arange(len(keys)).repeat(2)
    return Positions.of_texts(user, user, np.stack([keys // words, keys % words], 1).ravel())


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize(("words", "runs"), [(5, 30), (17, 15), (100, 4)])
@drawn_again
def test_spurious_grams_keep_their_budget(words: int, runs: int, tiny: bool) -> None:
    """Nobody's pairs, or a third of them held by one user each; eta .2, to see it sooner."""
    eta, rng = 0.2, np.random.default_rng(words)
    masses = np.exp(rng.normal(3, 1, words))
    spurious = []
    for _ in range(runs):
        held = words * words // 3 if tiny else 0
        engine = InMemory(pairs_of(words, held, 1, rng))
        for _ in climb(begun(words, masses, 0.5, 2, 0.2, eta, SIGMA_GRID), engine):
            pass
        spurious.append(engine.spurious[0])
    assert np.mean(spurious) <= eta * words + 4 * np.std(spurious) / runs**0.5 + 1 / runs


def test_a_level_that_nobody_holds_a_gram_of_runs_all_the_same() -> None:
    nobody = Positions(*(np.empty(0, dtype=np.int64) for _ in range(3)), users=3)
    start = begun(40, np.full(40, 9.0), 0.8, 3, 0.2, 0.5, SIGMA_GRID)
    levels = list(climb(start, InMemory(nobody)))
    assert len(levels) >= 1 and len(levels[0][0].valid) == 1_600
