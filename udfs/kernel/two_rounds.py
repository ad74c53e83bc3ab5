"""The weight rules of the forecast ladder's two rounds, for `contributions`.

Round 1: equal weights, and a count of users by bins of how many grams they hold. Round 2: weights
by table row, scaled so that each user's L2 norm is what was priced. Both rules look at one user at
a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dphh.privacy.forecast_rounds import (
    bins_of_list_sizes,
    list_size_weight,
    round_1_weight,
    round_2_weights,
)
from dphh.udfs.kernel.contributions import HeldKeys, first_occurrences
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.text.hashes import Integers

#: Each weight g of round 2 must be below this. Those of plans are below 3,500.
ROUND_2_WEIGHTS_BELOW = 1 << 12


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
        return round_2_weights(self.unit, g, held.owner, len(held.key_counts))
