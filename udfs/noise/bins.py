"""Bins of noised weights, and how likely noise alone falls into each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, inf

import numpy as np

from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import TABLE_ONE, RoundedGaussian, rounded_gaussian

#: The lower end of each bin of round 1's noised weights, in sigmas of that round.
BIN_STARTS_IN_SIGMAS = np.r_[-inf, np.arange(-1, 6.01, 0.5), 7, 8, 10, 12 * 1.5 ** np.arange(8)]


@dataclass(frozen=True)
class Bins:
    """Bins of round 1's noised weights, and the probability that noise alone falls into each."""

    sigma_grid: int

    @property
    def noise(self) -> RoundedGaussian:
        return rounded_gaussian(self.sigma_grid)

    @cached_property
    def starts(self) -> Integers:
        """The least integer of each bin; for the first bin, the end of the noise's table."""
        inner = [ceil(start * self.sigma_grid) for start in BIN_STARTS_IN_SIGMAS[1:]]
        return np.array([-self.noise.reach, *inner], dtype=np.int64)

    @cached_property
    def noise_probability_units(self) -> tuple[int, ...]:
        """The probability that noise alone falls into each bin, in units of 2^-256: exactly as the
        table has it."""
        from_start_on = [self.noise.survival(int(start)) for start in self.starts] + [0]
        return tuple(this - following for this, following in pairwise(from_start_on))

    @cached_property
    def noise_probabilities(self) -> Floats:
        return np.array([units / TABLE_ONE for units in self.noise_probability_units])

    def bin_of(self, noised: Integers) -> Integers:
        return np.maximum(np.searchsorted(self.starts, noised, side="right") - 1, 0)
