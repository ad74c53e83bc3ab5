"""V_k by class of forecast, against writing it down."""

from __future__ import annotations

import numpy as np
import pytest

from dphh.mechanisms.ngrams.ladder.classes import STEP, ValidClasses, valid_classes
from dphh.mechanisms.ngrams.ladder.rungs import PAIR, Rung, first_rung, next_rung, valid_grams


def ladder(levels: int, seed: int = 1) -> tuple[Rung, Rung, np.ndarray, np.ndarray]:
    """Released grams of a level, the words, and masses of that level and the one below."""
    rng = np.random.default_rng(seed)
    words = rung = first_rung(9)
    masses = np.exp(rng.normal(2, 2, 9))
    before = np.array([masses.sum()])
    for _ in range(levels - 1):
        every = valid_grams(rung, words, "both").keys(
            np.arange(len(valid_grams(rung, words, "both")))
        )
        keys = np.sort(rng.choice(every, len(every) // 2, replace=False))
        rung, before = next_rung(rung, words, keys, "both"), masses
        masses = np.exp(rng.normal(2, 2, len(keys)))
    return rung, words, masses, before


def all_keys(valid: ValidClasses) -> list[np.ndarray]:
    return [valid.keys(c, np.arange(size)) for c, size in enumerate(valid.sizes)]


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_every_valid_gram_is_in_one_class(levels: int) -> None:
    rung, words, masses, before = ladder(levels)
    valid = valid_classes(rung, masses, before)
    everything = valid_grams(rung, words, "both")
    expected = everything.keys(np.arange(len(everything)))
    assert np.array_equal(np.sort(np.concatenate(all_keys(valid))), np.sort(expected))
    assert len(valid) == len(everything)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_class_holds_the_pairs_of_its_forecast(levels: int) -> None:
    rung, _, masses, before = ladder(levels)
    valid = valid_classes(rung, masses, before)
    for group, keys in enumerate(all_keys(valid)):
        assert (valid.of(keys) == group).all()
        left, right = keys >> PAIR, keys & (2**PAIR - 1)
        overlap = before[0] if rung.level == 1 else before[rung.keys[left] & (2**PAIR - 1)]
        independent = masses[left] * masses[right] / overlap
        # Two floors, so at most a step below and a step above the middle.
        assert (np.abs(np.log(independent / valid.forecasts[group])) <= STEP + 1e-9).all()
