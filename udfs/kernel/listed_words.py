"""Chooses the words for which a user counts at level 1 with a public list: all listed words, and at
most `max_items` others. A listed word's key is its number in the list; keys of other words follow.
"""

from __future__ import annotations

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
    hashes: Words,
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
    held = Held(held_words, owner, number, user_hashes)
    places = places_of(held, over, salt, hashes.take)
    kept = below_cut(owner.take(over), places, number * (number > max_items), max_items)
    dropped = over[~kept]
    pairs = (owner.take(dropped) << 32) | held_words.take(dropped)
    keys[other[np.isin((users << 32) | words, pairs)]] = -1
    return keys
