"""The two rounds of a forecast level in integers: weights, bins, and the noise of unheld grams.

A whole run uses one table of noise, for an integer sigma_grid. In a round whose noise should be
sigma users, every user adds a vector of integers of L2 norm at most `unit` =
floor(sigma_grid / sigma), and round(N(0, sigma_grid^2)) is added to each sum: noise of
sigma_grid / unit >= sigma users.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, inf, isqrt

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.reweighing import floor_roots
from dphh.privacy.rounded_gaussian import TABLE_ONE, RoundedGaussian, rounded_gaussian
from dphh.privacy.set_union import LARGEST_TABLE_DISTANCE, delta_of_distance

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: In round 1, this part of a user's squared norm, 1 / LIST_NORM_DIVISOR, goes to the bin of the
#: user's list size, and the rest to the user's grams.
LIST_NORM_DIVISOR = 50
#: The least list size of each bin of list sizes.
LIST_SIZE_BIN_STARTS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**i for i in range(5, 15)])
#: The lower end of each bin of round 1's noised weights, in sigmas of that round.
BIN_STARTS_IN_SIGMAS = np.r_[-inf, np.arange(-1, 6.01, 0.5), 7, 8, 10, 12 * 1.5 ** np.arange(8)]


def norm_on_grid(sigma_in_users: float, sigma_grid: int) -> int:
    """A user's L2 norm in grid units, such that noise of sigma_grid units is noise of so many users
    or a little more."""
    return int(sigma_grid / sigma_in_users * (1 - 2**-40))


def round_1_weight(unit: int, grams_held: int) -> int:
    """What a user of so many grams adds to each in round 1."""
    return isqrt(unit * unit * (LIST_NORM_DIVISOR - 1) // (LIST_NORM_DIVISOR * grams_held))


def list_size_weight(norm: int) -> int:
    """What a user adds in round 1 to the bin of the user's list size."""
    return isqrt(norm * norm // LIST_NORM_DIVISOR)


def bins_of_list_sizes(list_sizes: Integers) -> Integers:
    return np.searchsorted(LIST_SIZE_BIN_STARTS, list_sizes, side="right") - 1


def round_2_weights(unit: int, planned: Integers, holders: Integers, users: int) -> Integers:
    """What each pair of a holder (0 to `users` - 1) and a gram adds in round 2: floor(unit g /
    |g|_2), where g is the pair's planned weight and |g|_2 the norm of the holder's, rounded up."""
    squares = np.zeros(users, dtype=np.int64)
    np.add.at(squares, holders, planned * planned)
    norms = floor_roots(np.maximum(squares, 1) - 1) + 1
    return unit * planned // norms[holders]


def forecast_draws_delta(epsilon: float) -> float:
    """The delta for the distance of a level's draws from the exact distributions, in both rounds.

    At most 2^62 valid grams with separate noise would be 2^63 table draws. There are at most 2^16
    rows, whose binomials and conditional draws are within 2^-150 each.
    """
    return delta_of_distance(2**63 * LARGEST_TABLE_DISTANCE + Fraction(2**18, 2**150), epsilon)


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
