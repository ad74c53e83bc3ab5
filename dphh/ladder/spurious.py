"""Spurious n-grams of DPNE: valid grams that no user holds but that noise lifts over the threshold.

DPNE's histogram H_k contains every valid gram, most of them with weight 0. They are too many to
list, and leaving them out would reveal which valid grams some user holds. So their number is drawn
from Binomial(|V_k| - |supp H_k|, P[noise >= rho]), they are drawn uniformly from V_k without
supp H_k, and their scores from the noise given that it reaches rho. This is exactly the output of
Algorithm 1 of the paper (its Appendix A does the same).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.ladder.rungs import Integers, ValidGrams
from dphh.levels import PrunedLevel
from dphh.privacy.rounded_gaussian import RoundedGaussian, rounded_gaussian
from dphh.udfs.draws.noise import draw_above, draw_binomial
from dphh.udfs.draws.randomness import Randomness, uniform_below

#: Tells for each key whether some user holds it. The answer is private and stays in the engine.
Held = Callable[[Integers], "np.ndarray[tuple[int], np.dtype[np.bool_]]"]


def with_spurious(
    passed: Any,
    level: PrunedLevel,
    valid: ValidGrams,
    supported: int,
    held: Held,
    randomness: Randomness,
    purpose: str,
) -> Any:
    """The held grams that passed, and the level's spurious grams, as (key, noisy)."""
    assert level.threshold_grid is not None
    noise = rounded_gaussian(level.sigma_grid)
    keys, scores = draw_spurious(
        valid, supported, held, noise, level.threshold_grid, randomness, purpose
    )
    return pa.concat_tables([passed, pa.table({"key": keys, "noisy": scores})])


def draw_spurious(
    valid: ValidGrams,
    supported: int,
    held: Held,
    noise: RoundedGaussian,
    threshold: int,
    randomness: Randomness,
    purpose: str,
) -> tuple[Integers, Integers]:
    """Keys and noisy weights of the spurious grams of one level."""
    unsupported = len(valid) - supported
    number = draw_binomial(
        randomness, unsupported, noise.tail(threshold), f"{purpose}/spurious number"
    )
    keys = np.empty(0, dtype=np.int64)
    attempt = 0
    while len(keys) < number:
        attempt += 1
        # Oversample by the expected share of rejected draws.
        share = unsupported / len(valid)
        batch = min(int((number - len(keys)) / share * 1.1) + 16, 1 << 22)
        indices = uniform_below(randomness, len(valid), batch, f"{purpose}/spurious {attempt}")
        drawn = valid.keys(indices.astype(np.int64))
        drawn = drawn[~held(drawn)]
        # Keep each key's first occurrence: a prefix of a uniform sequence is uniform.
        together = np.concatenate([keys, drawn])
        _, first = np.unique(together, return_index=True)
        keys = together[np.sort(first)][:number]
    scores = draw_above(randomness, noise.sigma, threshold, number, f"{purpose}/spurious scores")
    return keys, scores
