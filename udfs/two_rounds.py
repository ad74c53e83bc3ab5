"""How users weigh in the two rounds of the forecast ladder: rules for `contributions`.

Round 1: plain weights, and the bin of how many grams a user holds. Round 2: weights by row, shared
out so that each user's norm is what was priced. Both look at one user at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphh.privacy.forecast.rounds import list_bin, list_weight, plain_weight, shared_out
from dphh.udfs.contributions import Held
from dphh.udfs.hashes import Integers
from dphh.udfs.places import Released


@dataclass(frozen=True)
class Plainly:
    """isqrt(98 unit^2 / (100 t)) to each of t grams."""

    unit: int

    def __call__(self, held: Held) -> Integers:
        sizes, where = np.unique(held.number, return_inverse=True)
        weights = np.array([plain_weight(self.unit, max(t, 1)) for t in sizes.tolist()], np.int64)
        return weights[where][held.owner]

    def list_sizes(self, number: Integers) -> tuple[Integers, Integers]:
        """The key, -1 - bin, and the weight, of the list sizes of users who hold something."""
        held = number[number > 0]
        return -1 - list_bin(held), np.full(len(held), list_weight(self.unit))


@dataclass(frozen=True, eq=False)
class ByRow:
    """floor(unit g / |g|_2), g being each gram's: `weights`, in the order of `grams`.

    A gram to which round 1 added nothing, its holders' lists being so long, is not among them, and
    gets nothing again.
    """

    unit: int
    grams: Released
    weights: Integers

    def __call__(self, held: Held) -> Integers:
        g = np.append(self.weights, 0)[self.grams.places(held.keys)]
        return shared_out(self.unit, g, held.owner, len(held.number))
