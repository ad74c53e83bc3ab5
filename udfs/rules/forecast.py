"""The forecast ladder's rules: what a user adds in the two rounds of a level, in integers.

Round 1: equal weights, and a count of users by bins of how many grams they hold. Round 2: weights
by table row, scaled so that each user's L2 norm is what was priced. Both rules look at one user at
a time.

A whole run uses one table of noise, for an integer sigma_grid. In a round whose noise should be
sigma users, every user adds a vector of integers of L2 norm at most `unit` =
floor(sigma_grid / sigma), and round(N(0, sigma_grid^2)) is added to each sum: noise of
sigma_grid / unit >= sigma users.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

import numpy as np

from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.contributions import HeldKeys, first_occurrences
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.rules.weights import weights_in_proportion

#: In round 1, this part of a user's squared norm, 1 / LIST_NORM_DIVISOR, goes to the bin of the
#: user's list size, and the rest to the user's grams.
LIST_NORM_DIVISOR = 50
#: The least list size of each bin of list sizes.
LIST_SIZE_BIN_STARTS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**i for i in range(5, 15)])
#: Each weight g of round 2 must be below this. Those of plans are below 3,500.
ROUND_2_WEIGHTS_BELOW = 1 << 12


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


@dataclass(frozen=True)
class Round1Weights:
    """Round 1's weights: isqrt(98 unit^2 / (100 t)) for each of a user's t grams, 0 if t is more
    than 98 unit^2 / 100.

    Grams of weight 0 stay in the output. Round 2 gives each valid gram the weight of its row, which
    depends on its noised weight, so every gram that any user holds must be noised here, whatever
    its weight. If a gram of weight 0 were left out, a new user who gives it some weight would
    change what all its other holders give in round 2.
    """

    unit: int
    keeps_zeros: ClassVar[bool] = True

    def __call__(self, held: HeldKeys) -> Integers:
        users = np.bincount(held.key_counts)
        sizes = np.flatnonzero(users)
        weights = np.zeros_like(users)
        weights[sizes] = [round_1_weight(self.unit, max(t, 1)) for t in sizes.tolist()]
        return weights.take(held.key_counts).take(held.owner)

    def weigh_list_sizes(self, key_counts: Integers) -> tuple[Integers, Integers]:
        """For each list size that a user has: the key of its bin, -1 - bin, and what its users add
        to this key together."""
        users = np.bincount(key_counts)
        sizes = np.flatnonzero(users)
        sizes = sizes[sizes > 0]  # a user without a valid gram is in no bin
        return -1 - bins_of_list_sizes(sizes), users[sizes] * list_size_weight(self.unit)


@dataclass(frozen=True, eq=False)
class Round2Weights:
    """Round 2's weights: floor(unit g / |g|_2) for each gram.

    `g_by_gram` has an index of all grams that any user holds, as round 1 noised them, and the g of
    each, so that given round 1's output g does not depend on who else holds a gram. Grams of weight
    0 may be dropped here, because round 2 adds noise to all of these grams.
    """

    g_by_gram: tuple[KeyIndex, Integers]
    unit: int

    def __post_init__(self) -> None:
        # Squares of larger weights would overflow, with a million grams from 2^23 on.
        if self.g_by_gram[1].max(initial=0) >= ROUND_2_WEIGHTS_BELOW:
            raise ValueError(f"no plan has weights of {ROUND_2_WEIGHTS_BELOW:,} or more in round 2")

    def __call__(self, held: HeldKeys) -> Integers:
        first = first_occurrences(held.keys)  # the pairs of a gram stand side by side
        grams, g_of_grams = self.g_by_gram
        positions = grams.indices(held.keys.take(first))
        if positions.min(initial=0) < 0:
            raise RuntimeError("a defect, please report: round 2 has a gram that round 1 did not")
        g = np.repeat(g_of_grams.take(positions), np.diff(first, append=len(held.keys)))
        return weights_in_proportion(self.unit, g, held.owner, len(held.key_counts))
