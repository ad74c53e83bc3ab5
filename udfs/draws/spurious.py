"""Spurious n-grams of DPNE: valid grams that no user keeps, and that noise lifts to the threshold.

DPNE's histogram H_k contains every valid gram, most of them with weight 0. They are too many to
list, and leaving them out would reveal which valid grams some user keeps. So their number is drawn
from Binomial(|V_k| - |supp H_k|, P[noise >= rho]), they are drawn uniformly from V_k without
supp H_k, and their scores from the noise given that it reaches rho. This is exactly the output of
Algorithm 1 of the paper (its Appendix A does the same).

Candidate keys are drawn before it is known which of them some user keeps. A query of the level
drops the kept ones (`sql/ngrams/released_grams.sql`), so that kept keys never leave that query.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.udfs.draws.absent import draw_candidate_indices, rows_of_candidates
from dphh.udfs.draws.noise import draw_binomial, draw_noise_at_least
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.kernel.lists import lists_of
from dphh.udfs.text.hashes import Integers


class ValidGrams(Protocol):
    """V_k, the valid grams: how many, and their keys by index. They are never listed."""

    def __len__(self) -> int: ...

    def keys(self, indices: Integers) -> Integers: ...


def spurious_of_level(
    randomness: Randomness,
    kept_count: Any,
    valid: ValidGrams,
    sigma: int,
    threshold: int,
    purpose: str,
) -> pa.Array:
    """`dphh_lifted(kept, valid, sigma, threshold, purpose)`, in a query of one row. Of all valid
    grams but the `kept` ones that some user keeps, draws how many noise lifts to the threshold,
    their noised weights, and candidate keys for them: rows (position, key, noisy)."""
    absent = len(valid) - kept_count[0].as_py()
    tail = rounded_gaussian(sigma).tail_upper_bound(threshold)
    number = draw_binomial(randomness, absent, tail, f"{purpose}/spurious number")
    name = f"{purpose}/spurious scores"
    noisy = draw_noise_at_least(randomness, sigma, threshold, number, name)
    keys = noisy
    if number:
        name = f"{purpose}/spurious keys"
        keys = valid.keys(draw_candidate_indices(randomness, len(valid), absent, number, name))
    return lists_of(np.array([len(keys)]), rows_of_candidates(keys, noisy=noisy))
