"""The weight rules of the forecast ladder's two rounds, for `contributions`.

Round 1: equal weights, and a count of users by bins of how many grams they hold. Round 2: weights
by table row, scaled so that each user's L2 norm is what was priced. Both rules look at one user at
a time. And at level 1 with a public list, the words for which a user counts: all listed words, and
at most `max_items` others. A listed word's key is its number in the list, another's is higher.
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
    distinct_pairs,
    first_occurrences,
    priorities_of,
)
from dphh.udfs.kernel.positions import KeyIndex, look_up_ids
from dphh.udfs.text.hashes import Hashes, Integers

#: Weights g of round 2 must be below this. Those of plans are below 3,500.
MOST_PLANNED_WEIGHT = 1 << 12


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

    def list_sizes(self, key_counts: Integers) -> tuple[Integers, Integers]:
        """The keys, -1 - bin, and the weights by which users are counted by their list sizes."""
        users = np.bincount(key_counts)
        sizes = np.flatnonzero(users)
        sizes = sizes[sizes > 0]  # a user without a valid gram is in no bin
        return -1 - list_size_bin(sizes), users[sizes] * list_size_weight(self.unit)


@dataclass(frozen=True, eq=False)
class Round2Weights:
    """Round 2's weights: floor(unit g / |g|_2) for each gram; `weights` has the g of all `grams`.

    `grams`, in their order, are all grams that any user holds, as round 1 noised them, so that
    given round 1's output g does not depend on who else holds a gram. Grams of weight 0 may be
    dropped here, because round 2 adds noise to all of `grams`.
    """

    unit: int
    grams: KeyIndex
    weights: Integers

    def __post_init__(self) -> None:
        # Squares of larger weights would overflow, with a million grams from 2^23 on.
        if self.weights.max(initial=0) >= MOST_PLANNED_WEIGHT:
            raise ValueError(f"no plan has weights of {MOST_PLANNED_WEIGHT:,} or more in round 2")

    def __call__(self, held: HeldKeys) -> Integers:
        first = first_occurrences(held.keys)  # the pairs of a gram stand side by side
        positions = self.grams.indices(held.keys.take(first))
        if positions.min(initial=0) < 0:
            raise RuntimeError("dphh: a user holds a gram in round 2 that no user held in round 1")
        g = np.repeat(self.weights.take(positions), np.diff(first, append=len(held.keys)))
        return round_2_weights(self.unit, g, held.owner, len(held.key_counts))


def keys_of_kept_words(
    user_hashes: Integers,
    lengths: Integers,
    ids: Any,
    hashes: Hashes,
    keys_by_id: Integers,
    others: int,
    max_items: int,
    salt: int,
) -> NDArray[np.int64]:
    """The key of the word at each position, or -1 if the user does not count for that word. By word
    id, `keys_by_id` has the key and `hashes` the hash of the spelling.

    A word outside the public list has a key of at least `others`. Of these words an over-full user
    keeps `max_items`: by hashes of word, user and salt below the (max_items + 1)st smallest.
    """
    keys = look_up_ids(keys_by_id, ids)
    other = np.flatnonzero(keys >= others)
    users = np.repeat(np.arange(len(user_hashes)), lengths).take(other)
    many = np.bincount(users, minlength=len(user_hashes)) > max_items
    if not many.any():
        return keys
    some = np.flatnonzero(many.take(users))  # with fewer positions no user is over-full
    other, users = other.take(some), users.take(some)
    words = ids.take(other).astype(np.int64)
    held_words, owner = distinct_pairs(words, users)
    key_counts = np.bincount(owner, minlength=len(user_hashes))
    over = np.flatnonzero((key_counts > max_items).take(owner))
    if not len(over):
        return keys
    held = HeldKeys(held_words, owner, key_counts, user_hashes)
    priorities = priorities_of(held, over, salt, hashes.take)
    kept = below_cut(owner.take(over), priorities, key_counts * (key_counts > max_items), max_items)
    dropped = over[~kept]
    pairs = (owner.take(dropped) << 32) | held_words.take(dropped)
    keys[other[np.isin((users << 32) | words, pairs)]] = -1
    return keys
