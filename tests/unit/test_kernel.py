"""Keys of whole users, made distinct, cut, summed and looked up, against sets and dictionaries."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dphh.udfs.kernel.contributions import (
    are_kept,
    contributions,
    distinct_pairs,
    keys_of_counted_words,
)
from dphh.udfs.kernel.positions import KeyIndex, WordsOfBlock
from dphh.udfs.rules.weights import BoundedWeights, weight

BITS, CAP = 10, 4


def test_of_equal_places_none_is_kept_beyond_the_cap():
    positions = np.array([3, 1, 1, 1, 9, 5, 1, 2, 3, 4], dtype=np.uint64)
    owner = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    kept = are_kept(owner, positions, np.bincount(owner), 2)
    assert kept.tolist() == [False] * 5 + [False, True, True, False, False]


def test_the_cut_is_the_users_own_however_different_users_hashes_are():
    """One user's hashes are all below the others'."""
    rng = np.random.default_rng(1)
    number = np.array([3000, 900, 101, 40_000])
    owner = np.repeat(np.arange(len(number)), number)
    highest = np.array([1 << 8, 1 << 39, 1 << 20, 1 << 40])
    hashes = (rng.random(len(owner)) * highest.take(owner)).astype(np.uint64)
    kept = are_kept(owner, hashes, number, 100)
    for user in range(len(number)):
        of_user = hashes[owner == user]
        assert np.array_equal(kept[owner == user], of_user < np.sort(of_user)[100])


@pytest.mark.parametrize("lefts", [1, 700, 2**15, 2**20])
@pytest.mark.parametrize("rights", [1, 700, 2**15, 2**31])
@pytest.mark.parametrize("users", [1, 8, 300])
def test_a_pair_stands_once_however_wide_its_numbers_are(lefts, rights, users):
    rng = np.random.default_rng(lefts + rights + users)
    left, right, owner = (rng.integers(0, most, 900) for most in (lefts, rights, users))
    none = rng.random(900) < 0.1
    for numbers in (right, (left << 32) | right):
        keys = np.where(none, -1, numbers)
        held = {pair for pair in zip(keys.tolist(), owner.tolist(), strict=True) if pair[0] >= 0}
        found = distinct_pairs(keys, owner.astype(np.uint32))
        assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == sorted(held)
        if keys.max() < 2**31:
            narrow = distinct_pairs(keys.astype(np.int32), owner.astype(np.uint32))
            assert all(map(np.array_equal, found, narrow))


@pytest.mark.parametrize("held", [CAP - 1, CAP, CAP + 1, 9 * CAP])
def test_a_user_counts_for_all_words_of_a_list_and_for_no_more_others_than_the_cap(held):
    """Keys from 100 on are those of words that the list lacks."""
    words = WordsOfBlock(pa.array([f"w{number}" for number in range(held + 3)]))
    keys_by_id = np.append(np.r_[0:3, 100 : 100 + held], -1)
    ids = [*range(held + 3)]
    user_hashes, lengths = (pa.array([row], pa.list_(pa.int64())) for row in ([7], [len(ids)]))
    held_ids = pa.array([ids], pa.list_(pa.int32()))
    found = keys_of_counted_words(user_hashes, lengths, held_ids, words, keys_by_id, 100, CAP, 11)
    keys = set(found.to_pylist()[0]) - {-1}
    assert {0, 1, 2} <= keys
    assert len(keys) == 3 + min(held, CAP)


def test_keys_of_62_bits_are_summed_by_themselves():
    keys = np.array([2**62, 2**62, 5, -1, 2**62 + 1, 5, 2**62])
    found, sums = contributions(
        np.arange(3), np.array([2, 2, 3]), keys, BoundedWeights(CAP, BITS, 7)
    )
    added_to: Counter = Counter()
    for key, weighs in zip(found.tolist(), sums.tolist(), strict=True):
        added_to[key] += weighs
    one, three = weight(BITS, 1), weight(BITS, 3)
    assert added_to == {2**62: one + three, 5: one + three, 2**62 + 1: three}


@pytest.mark.parametrize("size", [0, 1, 2, 40_000])
def test_a_key_is_found_at_its_place_and_no_other_is(size):
    rng = np.random.default_rng(size)
    keys = np.unique(rng.integers(0, 2**62, size) >> rng.integers(0, 60, size))
    released = KeyIndex(keys)
    assert released.indices(keys).tolist() == list(range(len(keys)))
    others = np.setdiff1d(rng.integers(-1, 2**62, 3 * size + 5) >> 7, keys)
    assert set(released.indices(others)) <= {-1}
    assert set(released.indices(np.setdiff1d(keys + 1, keys))) <= {-1}


def test_keys_that_all_belong_at_one_place_are_found():
    """As many behind one another as there are keys: more than functions may call themselves."""

    class AtOnePlace(KeyIndex):
        def _first_slots(self, keys):
            return np.zeros(len(keys), dtype=np.int64)

    keys = np.arange(0, 6_000, 2)
    released = AtOnePlace(keys)
    assert released.indices(keys).tolist() == list(range(len(keys)))
    assert set(released.indices(keys + 1).tolist()) == {-1}
