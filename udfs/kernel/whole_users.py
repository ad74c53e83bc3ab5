"""Functions over whole users in rows of lists: the steps that need all of a user at once, over
Arrow columns. A batch of rows is a block of whole users.

A row has users, one after the other: for each a hash of the user's id (`user_hashes`) and the
number of positions (`lengths`), and what stands at all of their positions (`ids`, `keys`). Such
functions bound and weigh users, or climb the n-gram ladder. None draws random numbers: what a row
becomes depends on that row and on what the query hands over, such as the released set of the level
below and the level's salt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.privacy.counts import Weighing
from dphh.privacy.reweighing import weights_from_sum
from dphh.udfs.kernel.contributions import (
    RelativeWeights,
    WeightRule,
    contributions,
    equal_weights,
)
from dphh.udfs.kernel.given_grams import counted
from dphh.udfs.kernel.lists import in_first_row, lengths_of, lists_of, one_array, sums_of, values_of
from dphh.udfs.kernel.positions import ReleasedKeys, candidates, longer_candidates, of_words
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram, keys_of_listed_words
from dphh.udfs.kernel.words import WordIds
from dphh.udfs.text.hashes import Integers, of_numbers


def contributions_of_words(
    user_hashes: Any,
    lengths: Any,
    ids: Any,
    words: WordIds,
    max_items: int,
    grid_bits: int,
    salt: int,
) -> pa.Array:
    """`dphh_contributions_of_words(user_hashes, lengths, ids, words, max_items, grid_bits, salt)`:
    what the users of all these rows add to a histogram of words; the first row has the result."""
    rule = equal_weights(max_items, grid_bits, salt, words.hashes().take)
    return weighed(user_hashes, lengths, ids, rule)


def given_to_words(
    user_hashes: Any,
    lengths: Any,
    ids: Any,
    words: WordIds,
    max_items: int,
    grid_bits: int,
    salt: int,
    w: Integers | None,
) -> pa.Array:
    """`dphh_given_to_words(user_hashes, lengths, ids, words, max_items, grid_bits, salt, w)`: the
    same with weights by the w of each word (equal weights without `w`), and with every word that
    any user holds, even if all its weights are 0."""
    return weighed(user_hashes, lengths, ids, given(words, max_items, grid_bits, salt, w))


def given(
    words: WordIds, max_items: int, grid_bits: int, salt: int, w: Integers | None
) -> WeightRule:
    hashed = words.hashes().take
    if w is None:
        return equal_weights(max_items, grid_bits, salt, hashed, keeps_zeros=True)
    return RelativeWeights(2**grid_bits, max_items, salt, w, hashed)


def contributions_of_grams(
    user_hashes: Any, lengths: Any, keys: Any, max_items: int, grid_bits: int, salt: int
) -> pa.Array:
    """`dphh_contributions_of_grams(user_hashes, lengths, keys, max_items, grid_bits, salt)`: as
    `contributions_of_words`, for pairs of released grams, whose numbers are public."""
    return weighed(
        user_hashes, lengths, keys, equal_weights(max_items, grid_bits, salt, of_numbers)
    )


def plain_contributions(user_hashes: Any, lengths: Any, keys: Any, norm: int) -> pa.Array:
    """`dphh_plain_contributions(user_hashes, lengths, keys, norm)`: the same for round 1 of the
    forecast ladder."""
    return weighed(user_hashes, lengths, keys, PlainWeights(norm))


def shared_contributions(
    user_hashes: Any, lengths: Any, keys: Any, g: tuple[ReleasedKeys, Integers], norm: int
) -> pa.Array:
    """`dphh_shared_contributions(user_hashes, lengths, keys, g, norm)`: the same for round 2, with
    the weight g of each gram."""
    return weighed(user_hashes, lengths, keys, WeightsByGram(norm, *g))


def counted_keys(lengths: Any, ids: Any, weighing: Weighing) -> pa.Array:
    """`dphh_counted(lengths, ids, weighing)`: what the users of all these rows add to counts of
    given items and to what bounding takes from them."""
    rows = one_array(ids)
    key, weight = counted(weighing, values_of(one_array(lengths)), values_of(rows))
    return in_first_row(len(rows), key, weight)


def keys_of_words(
    user_hashes: Any,
    lengths: Any,
    ids: Any,
    words: WordIds,
    listed: NDArray[np.int64],
    others: int,
    max_items: int,
    salt: int,
) -> pa.Array:
    """`dphh_keys_of_words(user_hashes, lengths, ids, words, listed, others, max_items, salt)`: at
    each position the key of the word there: its number in a public list, or `others` and more;
    -1 where the user does not count for it."""
    lists = one_array(ids)
    keys = keys_of_listed_words(
        values_of(one_array(user_hashes)),
        values_of(one_array(lengths)),
        values_of(lists),
        words.hashes(),
        listed,
        others,
        max_items,
        salt,
    )
    return lists_of(lengths_of(lists), keys)


def unreleased(ids: Any, words: WordIds, released: NDArray[np.int32] | None) -> pa.Array:
    """`dphh_unreleased(ids, words, released)`: the same word ids, with -1 for each word that an
    earlier round released."""
    lists = one_array(ids)
    if released is None:  # before the first round
        return lists
    held = values_of(lists)
    left = np.where(released.take(held) >= 0, np.int32(-1), held)
    return lists_of(lengths_of(lists), left)


def numbers_of_words(ids: Any, words: WordIds, released: NDArray[np.int32]) -> pa.Array:
    """`dphh_numbers_of_words(ids, words, released)`: the released word's number at each position,
    or -1."""
    lists = one_array(ids)
    return lists_of(lengths_of(lists), of_words(released, values_of(lists)))


def numbers_of_grams(keys: Any, released: ReleasedKeys) -> pa.Array:
    """`dphh_numbers_of_grams(keys, released)`: the released gram's number at each position, or
    -1."""
    lists = one_array(keys)
    return lists_of(lengths_of(lists), released.indices(values_of(lists)))


def pairs(lengths: Any, grams: Any, ends: Any, ahead: int) -> pa.Array:
    """`dphh_pairs(lengths, grams, ends, ahead)`: the key of the pair that begins at each position,
    and how many positions each user has.

    Where `ends` is NULL, a pair is the gram at the position and the gram at the next one; positions
    that belong to no pair are removed. Else it is the gram and the word that `ends` has `ahead`
    positions later; all positions stay.
    """
    users, lists = one_array(lengths), one_array(grams)
    positions, words = values_of(lists), values_of(one_array(ends))
    if len(words):
        found = users, lists_of(lengths_of(lists), candidates(positions, words, ahead))
    else:
        left, keys = longer_candidates(values_of(users), positions)
        found = lists_of(lengths_of(users), left), lists_of(sums_of(users, left), keys)
    return pa.StructArray.from_arrays(found, ["lengths", "keys"])


def weight_of(noisy_sum: Any, total_precision: int, deviation: int, threshold: int) -> pa.Array:
    """`dphh_weight`: the w of an item; `noisy_sum` is the weighted sum of its earlier weights."""
    return pa.array(
        weights_from_sum(one_array(noisy_sum).to_numpy(), total_precision, deviation, threshold)
    )


def weighed(user_hashes: Any, lengths: Any, keys: Any, weigh: WeightRule) -> pa.Array:
    """The keys and weights that the users of all these rows add; the first row has all of them."""
    rows = one_array(keys)
    key, weight = contributions(
        values_of(one_array(user_hashes)), values_of(one_array(lengths)), values_of(rows), weigh
    )
    return in_first_row(len(rows), key, weight)
