"""Chooses the words for which a user counts at level 1 with a public list: all listed words, and at
most `max_items` others. A listed word's key is its number in the list; keys of other words follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.udfs.kernel.contributions import Held, below_cut, distinct, places_of
from dphh.udfs.kernel.positions import of_words
from dphh.udfs.text.hashes import Integers, Words


def listed_places(
    user_hashes: Integers,
    lengths: Integers,
    ids: Any,
    numbers: NDArray[np.int32],
    listed: int,
    max_items: int,
    salt: int,
    hashed: Callable[[Integers], Words],
) -> NDArray[np.int32]:
    """The key of the word at each position, or -1 if the user does not count for it. `numbers`: the
    key of each word id. `hashed`: hashes keys by their words' spelling.

    Over-full users keep `max_items` other words, those whose position, a hash of word, user and
    salt, lies below the (max_items + 1)st smallest. What the list has takes none of these
    positions.
    """
    keys = of_words(numbers, ids)
    other = np.flatnonzero(keys >= listed)
    users = np.repeat(np.arange(len(user_hashes)), lengths).take(other)
    many = np.bincount(users, minlength=len(user_hashes)) > max_items
    if not many.any():
        return keys
    some = np.flatnonzero(many.take(users))  # who has fewer positions of others is not over-full
    other, users = other.take(some), users.take(some)
    held_keys, owner = distinct(keys.take(other), users)
    number = np.bincount(owner, minlength=len(user_hashes))
    over = np.flatnonzero((number > max_items).take(owner))
    if not len(over):
        return keys
    held = Held(held_keys, owner, number, user_hashes)
    positions = places_of(held, over, salt, hashed)
    kept = below_cut(owner.take(over), positions, number * (number > max_items), max_items)
    dropped = over[~kept]
    pairs = (owner.take(dropped) << 32) | held_keys.take(dropped)
    keys[other[np.isin((users << 32) | keys.take(other), pairs)]] = -1
    return keys
