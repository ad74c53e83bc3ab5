"""The weighting rules of the forecast ladder's two rounds, for `contributions`.

Round 1: equal weights, and a count of users by bins of how many grams they hold. Round 2: weights
by table row, scaled so that each user's L2 norm is what was priced. Both rules look at one user at
a time. And at level 1 with a public list, the words for which a user counts: all listed words, and
at most `max_items` others. A listed word's key is its number in the list; other words' keys follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.forecast_rounds import (
    list_size_bin,
    list_size_weight,
    round_1_weight,
    round_2_weights,
)
from dphh.udfs.kernel.contributions import (
    HeldKeys,
    below_cut,
    distinct,
    first_of_each,
    priorities_of,
)
from dphh.udfs.kernel.positions import ReleasedKeys, of_words
from dphh.udfs.text.hashes import Hashes, Integers

#: Planned weights g of round 2 are below 3,500.
MOST_WEIGHT = 1 << 12


@dataclass(frozen=True)
class PlainWeights:
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
        users = np.bincount(held.number)
        sizes = np.flatnonzero(users)
        weights = np.zeros_like(users)
        weights[sizes] = [round_1_weight(self.unit, max(t, 1)) for t in sizes.tolist()]
        return weights.take(held.number).take(held.owner)

    def list_sizes(self, number: Integers) -> tuple[Integers, Integers]:
        """The keys, -1 - bin, and the weights, for the list sizes of users who hold a gram."""
        users = np.bincount(number)
        sizes = np.flatnonzero(users)
        sizes = sizes[sizes > 0]  # a user without a valid gram is in no bin, as an absent user
        return -1 - list_size_bin(sizes), users[sizes] * list_size_weight(self.unit)


@dataclass(frozen=True, eq=False)
class WeightsByGram:
    """Round 2's weights: floor(unit g / |g|_2) for each gram, where g are `weights`.

    `grams`, in their order, are all grams that any user holds, as round 1 noised them, so that
    given round 1's output g does not depend on who else holds a gram. Grams of weight 0 may be
    dropped here, because round 2 adds noise to all of `grams`.
    """

    unit: int
    grams: ReleasedKeys
    weights: Integers

    def __post_init__(self) -> None:
        # Squares of larger weights would overflow, with a million grams from 2^23 on.
        if self.weights.max(initial=0) >= MOST_WEIGHT:
            raise ValueError(f"round 2 takes weights below {MOST_WEIGHT:,}; plans make none")

    def __call__(self, held: HeldKeys) -> Integers:
        first = first_of_each(held.keys)  # a gram's users stand side by side
        positions = self.grams.indices(held.keys.take(first))
        if positions.min(initial=0) < 0:
            raise RuntimeError("dphh: a gram that round 2 reads was not there in round 1")
        g = np.repeat(self.weights.take(positions), np.diff(first, append=len(held.keys)))
        return round_2_weights(self.unit, g, held.owner, len(held.number))


def keys_of_listed_words(
    user_hashes: Integers,
    lengths: Integers,
    ids: Any,
    hashes: Hashes,
    keys_by_id: Integers,
    listed: int,
    max_items: int,
    salt: int,
) -> NDArray[np.int64]:
    """The key of the word at each position, or -1 if the user does not count for it. `hashes` and
    `keys_by_id`: the hash of the spelling, and the key, of each word id.

    Over-full users keep `max_items` other words, those whose place, a hash of word, user and salt,
    lies below the (max_items + 1)st smallest. What the list has takes none of these places.
    """
    keys = of_words(keys_by_id, ids)
    other = np.flatnonzero(keys >= listed)
    users = np.repeat(np.arange(len(user_hashes)), lengths).take(other)
    many = np.bincount(users, minlength=len(user_hashes)) > max_items
    if not many.any():
        return keys
    some = np.flatnonzero(many.take(users))  # who has fewer positions of others is not over-full
    other, users = other.take(some), users.take(some)
    words = ids.take(other).astype(np.int64)
    held_words, owner = distinct(words, users)
    number = np.bincount(owner, minlength=len(user_hashes))
    over = np.flatnonzero((number > max_items).take(owner))
    if not len(over):
        return keys
    held = HeldKeys(held_words, owner, number, user_hashes)
    places = priorities_of(held, over, salt, hashes.take)
    kept = below_cut(owner.take(over), places, number * (number > max_items), max_items)
    dropped = over[~kept]
    pairs = (owner.take(dropped) << 32) | held_words.take(dropped)
    keys[other[np.isin((users << 32) | words, pairs)]] = -1
    return keys
