"""Truncated geometric noise on the integers, in exact integers: the noise of optimal selection.

P(noise = x) falls by at most a factor e^epsilon from 0 outwards to either side, and is 0 beyond
`reach`. Its probabilities are whole numbers of units of 2^-64, so one random word draws it without
an error. `ratio` is at most e^epsilon. From `edge` = P(noise = reach) inwards each probability is
the last one times the ratio, rounded down; 0 has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import ceil, isqrt
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.errors import UsageError
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.randomness import Randomness, keys_if_needed

RATIO_BITS = 32  # ratios are in units of 2^-RATIO_BITS
ONE_WORD = 1 << 64  # probabilities are in units of 2^-64


@dataclass(frozen=True)
class TruncatedGeometric:
    ratio: int
    reach: int
    edge: int

    @cached_property
    def units(self) -> tuple[int, ...]:
        """P(noise = x) for x = -reach, ..., reach, in units of 2^-64."""
        side = [self.edge]
        while len(side) < self.reach:
            side.append(side[-1] * self.ratio >> RATIO_BITS)
        return (*side, ONE_WORD - 2 * sum(side), *side[::-1])

    @property
    def is_private(self) -> bool:
        """Whether neighbouring probabilities differ by at most the ratio, and none is below 0."""
        return min(self.units) > 0 and all(
            max(pair) << RATIO_BITS <= self.ratio * min(pair) for pair in pairwise(self.units)
        )

    @cached_property
    def starts(self) -> Any:
        """For each value of noise the least random word that gives it."""
        return np.array([0, *accumulate(self.units[:-1])], dtype=np.uint64)

    def tail_lower_bound(self, k: int) -> Fraction:
        """P(noise >= k), exactly."""
        return Fraction(sum(self.units[max(k + self.reach, 0) :]), ONE_WORD)

    def chances_below(self, k: Integers) -> Floats:
        """P(noise < k) for each k."""
        below = np.array([0, *accumulate(self.units)], dtype=np.float64) / ONE_WORD
        return np.asarray(below[np.clip(k + self.reach, 0, len(below) - 1)])

    @property
    def deviation(self) -> int:
        """The standard deviation, rounded up."""
        square = sum(x * x * each for x, each in zip(self._values, self.units, strict=True))
        return isqrt(ceil(Fraction(square, ONE_WORD)) - 1) + 1

    @property
    def _values(self) -> range:
        return range(-self.reach, self.reach + 1)


@lru_cache(maxsize=8, typed=True)
def truncated_geometric(ratio: int, reach: int, edge: int) -> TruncatedGeometric:
    """The noise, checked: one whose probabilities differ by more than its ratio is refused."""
    noise = TruncatedGeometric(ratio, reach, edge)
    if not noise.is_private:
        raise UsageError("noise: these numbers make no truncated geometric noise")
    return noise


def draw_truncated_geometric(
    randomness: Randomness,
    noise: TruncatedGeometric,
    count: int,
    purpose: str,
    keys: pa.Array | None = None,
) -> Integers:
    """`count` independent draws: the noise of each random word, by inversion."""
    words = randomness.random_words(count, purpose, keys)
    return np.searchsorted(noise.starts, words, side="right").astype(np.int64) - 1 - noise.reach


def truncated_noise_of_rows(
    randomness: Randomness, key: Any, ratio: int, reach: int, edge: int, purpose: str
) -> pa.Array:
    """`dphh_truncated_noise(key, ratio, reach, edge, purpose)`: one draw for each row."""
    noise = truncated_geometric(ratio, reach, edge)
    names = keys_if_needed(key, randomness, purpose)
    return pa.array(draw_truncated_geometric(randomness, noise, len(key), purpose, names))
