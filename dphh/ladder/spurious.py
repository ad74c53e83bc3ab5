"""Spurious n-grams: what the noise would have lifted over the threshold from a weight of zero.

DPNE's histogram H_k holds every valid gram, most of them with weight 0. Writing those down is
impossible, and leaving them out would show which valid grams somebody holds. So their number is
drawn from Binomial(|V_k| - |supp H_k|, P[noise >= rho]), they are drawn uniformly from V_k without
supp H_k, and their scores from the noise given that it reaches rho: exactly what Algorithm 1 of
the paper would have released (its Appendix A does the same).

Keys are proposed before it is known which of them somebody holds: a query of the level drops those
(`sql/ngrams/released_grams.sql`), so that no list of held keys is ever looked at outside of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.ladder.absent import proposed
from dphh.ladder.rungs import Integers, ValidGrams
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.udfs.draws.noise import draw_above, draw_binomial
from dphh.udfs.draws.randomness import Randomness


@dataclass(frozen=True)
class LiftedGrams:
    """The spurious grams of a level, before it is known which valid grams somebody holds.

    `keys` are of valid grams, each once, in the order drawn: more than `noisy` has entries. The
    first of them that nobody holds has the first noised weight, the second the second, and so on.
    """

    keys: Integers
    noisy: Integers

    def to_table(self) -> Any:
        """(place, key, noisy): in the order drawn, without a weight where keys are left over."""
        more = len(self.keys) - len(self.noisy)
        noisy = pa.concat_arrays([pa.array(self.noisy, pa.int64()), pa.nulls(more, pa.int64())])
        return pa.table({"place": np.arange(len(self.keys)), "key": self.keys, "noisy": noisy})


def lifted_grams(
    valid: ValidGrams, held: int, sigma: int, threshold: int, randomness: Randomness, purpose: str
) -> LiftedGrams:
    """By how many valid grams somebody holds: how many of the others noise of this sigma lifts to
    the threshold, their noised weights, and keys for them."""
    absent = len(valid) - held
    tail = rounded_gaussian(sigma).tail(threshold)
    number = draw_binomial(randomness, absent, tail, f"{purpose}/spurious number")
    noisy = draw_above(randomness, sigma, threshold, number, f"{purpose}/spurious scores")
    if not number:
        return LiftedGrams(noisy, noisy)
    chosen = proposed(len(valid), number, absent, randomness, f"{purpose}/spurious keys")
    return LiftedGrams(valid.keys(chosen), noisy)
