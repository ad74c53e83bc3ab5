"""Functions of queries that need all of a user at once: over Arrow columns whose rows are lists of
whole users.

A row has users, one after the other: for each a hash of the user's id (`user_hashes`) and the
number of positions (`lengths`), and what stands at all of their positions (`ids`, `keys`). Such
functions bound and weigh users, or climb the n-gram ladder. None draws random numbers: what a row
becomes depends on that row and on what the query hands over, such as the released set of the level
below and the level's salt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.contributions import (
    HeldKeys,
    WeightRule,
    contributions,
    distinct_pairs,
    dropped_pairs,
)
from dphh.udfs.kernel.given_grams import GivenGramsByWordId
from dphh.udfs.kernel.lists import (
    all_in_first_row,
    lengths_of,
    lists_of,
    one_array,
    sums_of_runs,
    values_of,
)
from dphh.udfs.kernel.positions import (
    KeyIndex,
    WordsWithIds,
    pairs_of_neighbours,
    values_of_ids,
)
from dphh.udfs.rules.weights import EqualWeights, RelativeWeights, ReweighingNumbers


def contributions_by(make_rule: Callable[..., WeightRule]) -> Callable[..., pa.Array]:
    """Makes a function of the Arrow columns (user_hashes, lengths, keys, *parameters). It returns
    the keys and weights that the users of all these rows add, all in the first row, by the rule
    `make_rule(*parameters)`.
    """

    def contributions_of_rows(
        user_hashes: Any, lengths: Any, keys: Any, *parameters: Any
    ) -> pa.Array:
        hashes, counts, rows = map(one_array, (user_hashes, lengths, keys))
        rule = make_rule(*parameters)
        added = contributions(values_of(hashes), values_of(counts), values_of(rows), rule)
        return all_in_first_row(len(rows), *added)

    return contributions_of_rows


def weights_of_words(
    words: WordsWithIds, max_items: int, grid_bits: int, salt: int, w: Integers | None
) -> WeightRule:
    """The rule of `dphh_contributions_of_words`: weights by the w of each word; equal ones if `w`
    is None. Words are chosen by their spelling, and stay in the result even if all their weights
    are 0."""
    hash_keys = words.hashes().take
    if w is None:
        return EqualWeights(max_items, grid_bits, salt, hash_keys, keeps_zeros=True)
    return RelativeWeights(2**grid_bits, max_items, salt, w, hash_keys)


def keys_of_counted_words(
    user_hashes: Any,
    lengths: Any,
    ids: Any,
    words: WordsWithIds,
    keys_by_id: NDArray[np.int64],
    first_unlisted_key: int,
    max_items: int,
    salt: int,
) -> pa.Array:
    """`dphh_keys_of_words`: the key of the word at each position, or -1 if the user does not count
    for the word.

    A user counts for all words of the public list, whose keys are their numbers in the list, and
    for at most `max_items` others (`dropped_pairs`), whose keys are `first_unlisted_key` or above.
    """
    lists = one_array(ids)
    hashes, held_ids = values_of(one_array(user_hashes)), values_of(lists)
    keys = values_of_ids(keys_by_id, held_ids)
    unlisted = np.flatnonzero(keys >= first_unlisted_key)
    users = np.repeat(np.arange(len(hashes)), values_of(one_array(lengths))).take(unlisted)
    # A user with few positions of unlisted words is not over-full.
    many = np.bincount(users, minlength=len(hashes)) > max_items
    some = np.flatnonzero(many.take(users))
    if len(some):
        unlisted, users = unlisted.take(some), users.take(some)
        unlisted_ids = held_ids.take(unlisted).astype(np.int64)
        distinct_ids, owner = distinct_pairs(unlisted_ids, users)
        held = HeldKeys(distinct_ids, owner, np.bincount(owner, minlength=len(hashes)), hashes)
        dropped = dropped_pairs(held, max_items, salt, words.hashes().take)
        pairs = (owner.take(dropped) << 32) | distinct_ids.take(dropped)
        keys[unlisted[np.isin((users << 32) | unlisted_ids, pairs)]] = -1
    return lists_of(lengths_of(lists), keys)


def unreleased_words(ids: Any, words: WordsWithIds, released: NDArray[np.int32] | None) -> pa.Array:
    """`dphh_unreleased(ids, words, released)`: these word ids, with -1 in place of each word that
    an earlier round released. The engine makes `released` by word id, from `words`."""
    lists = one_array(ids)
    if released is None:  # before the first round
        return lists
    held = values_of(lists)
    left = np.where(released.take(held, mode="clip") >= 0, np.int32(-1), held)  # ends stay negative
    return lists_of(lengths_of(lists), left)


def numbers_of_released_words(
    ids: Any, words: WordsWithIds, released: NDArray[np.int32]
) -> pa.Array:
    """`dphh_numbers_of_words(ids, words, released)`: for each word id of `ids`, its `released[id]`,
    a word's number among the released words or -1. The engine makes it by word id, from `words`."""
    lists = one_array(ids)
    return lists_of(lengths_of(lists), values_of_ids(released, values_of(lists)))


def numbers_of_released_grams(keys: Any, released: KeyIndex) -> pa.Array:
    """`dphh_numbers_of_grams(keys, released)`: at each position the number of the gram among the
    released ones, or -1."""
    lists = one_array(keys)
    return lists_of(lengths_of(lists), released.indices(values_of(lists)))


def keys_of_given_items(
    lengths: Any, ids: Any, words: WordsWithIds, given: GivenGramsByWordId
) -> pa.Array:
    """`dphh_keys_of_items(lengths, ids, words, given)`: how many keys each user has, and the keys:
    one for each given item that the user holds, and each group of texts in which the user does. The
    engine makes `given` by word id, from `words`."""
    users, held = one_array(lengths), one_array(ids)
    counts, keys = given.keys_of_users(values_of(users), values_of(held))
    rows = lengths_of(users)
    found = lists_of(rows, counts.astype(np.int32)), lists_of(sums_of_runs(rows, counts), keys)
    return pa.StructArray.from_arrays(found, ["lengths", "ids"])


def pairs_of_rows(lengths: Any, grams: Any) -> pa.Array:
    """`dphh_pairs(lengths, grams)`: how many positions each user has, and the key of the pair that
    begins at each position: the gram there and the gram at the next one. Positions that belong to
    no pair are removed."""
    users = one_array(lengths)
    kept, keys = pairs_of_neighbours(values_of(users), values_of(one_array(grams)))
    counts = lengths_of(users)
    found = lists_of(counts, kept), lists_of(sums_of_runs(counts, kept), keys)
    return pa.StructArray.from_arrays(found, ["lengths", "keys"])


def relative_weights_of_rows(
    noised_weights: Any, total_precision: int, deviation: int, threshold: int
) -> pa.Array:
    """`dphh_weight(noisy_sum, total_precision, deviation, threshold)`: the relative weight w of
    each item, by its earlier noised weights (`dphh.udfs.rules.weights`)."""
    public = ReweighingNumbers(total_precision, deviation, threshold)
    return pa.array(public.relative_weights(one_array(noised_weights).to_numpy()))
