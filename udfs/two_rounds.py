"""How users weigh in the two rounds of the forecast ladder: rules for `contributions`.

Round 1: plain weights, and the bin of how many grams a user holds. Round 2: weights by row, shared
out so that each user's norm is what was priced. Both look at one user at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
        users = np.bincount(held.number)
        sizes = np.flatnonzero(users)
        weights = np.zeros_like(users)
        weights[sizes] = [plain_weight(self.unit, max(t, 1)) for t in sizes.tolist()]
        return weights.take(held.number).take(held.owner)

    def list_sizes(self, number: Integers) -> tuple[Integers, Integers]:
        """The keys, -1 - bin, and the weights, of the list sizes of users who hold something."""
        users = np.bincount(number)
        sizes = np.flatnonzero(users)
        sizes = sizes[sizes > 0]
        return -1 - list_bin(sizes), users[sizes] * list_weight(self.unit)


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
        places = self.grams.places(held.keys)
        g = self._with_nothing.take(places, mode="wrap")
        return shared_out(self.unit, g, held.owner, len(held.number))

    @cached_property
    def _with_nothing(self) -> Integers:
        """The weights, and 0 for number -1."""
        return np.append(self.weights, 0)
