"""How users weigh in the two rounds of the forecast ladder: rules for `contributions`.

Round 1: plain weights, and the bin of how many grams a user holds. Round 2: weights by row, shared
out so that each user's norm is what was priced. Both look at one user at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dphh.privacy.forecast_rounds import list_bin, list_weight, plain_weight, shared_out
from dphh.udfs.kernel.contributions import Held
from dphh.udfs.kernel.places import Released
from dphh.udfs.text.hashes import Integers


@dataclass(frozen=True)
class Plainly:
    """isqrt(98 unit^2 / (100 t)) to each of t grams: 0 where t is more than 98 unit^2 / 100.

    A gram that users give 0 to is named all the same. Round 2 gives every valid gram the weight of
    its row, and which row that is follows from its noised weight: so every gram that somebody holds
    must get its noise here, whatever it weighs. Were a gram without weight left out, a newcomer
    who gives it some would change what all its other holders give in round 2.
    """

    unit: int
    keeps_zeros: ClassVar[bool] = True

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
        sizes = sizes[sizes > 0]  # who holds no valid gram stands in no bin, as who is not there
        return -1 - list_bin(sizes), users[sizes] * list_weight(self.unit)


@dataclass(frozen=True, eq=False)
class ByRow:
    """floor(unit g / |g|_2), g being each gram's: `weights`, in the order of `grams`.

    `grams` are all that anybody holds, as round 1 named them, so that g is never a matter of who
    else holds a gram. What a user gives 0 to may go: round 2 adds its noise to all of `grams`.
    """

    unit: int
    grams: Released
    weights: Integers

    def __call__(self, held: Held) -> Integers:
        places = self.grams.places(held.keys)
        if places.min(initial=0) < 0:
            raise RuntimeError("dphh: a gram that round 2 reads was not there in round 1")
        return shared_out(self.unit, self.weights.take(places), held.owner, len(held.number))
