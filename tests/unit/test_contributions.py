"""What a block of whole users adds to a level's sums, against sets and dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dphh.privacy.set_union import weight
from dphh.udfs.kernel.contributions import below_cut, contributions, distinct, equal_weights
from dphh.udfs.text.hashes import of_numbers, of_spellings

BITS, CAP = 10, 4
Held = dict[int, list]


def added(held: Held, salt: int = 7) -> Counter:
    """The block's sums, each key once; a user's user_hash is their name squared, so that it
    depends on nobody else."""
    keys = [key for of_user in held.values() for key in of_user]
    words = bool(keys) and isinstance(keys[0], str)
    kinds = pa.array(keys, pa.string() if words else pa.int64()).dictionary_encode()
    numbers = kinds.indices.to_numpy() if words else np.array(keys, dtype=np.int64)
    hashed = of_spellings(kinds.dictionary).__getitem__ if words else of_numbers
    user_hashes = np.array([name * name for name in held], dtype=np.int64)
    lengths = np.array([len(keys) for keys in held.values()], dtype=np.int64)
    rule = equal_weights(CAP, BITS, salt, hashed)
    found, sums = contributions(user_hashes, lengths, numbers, rule)
    names = kinds.dictionary.take(pa.array(found)).to_pylist() if words else found.tolist()
    assert len(set(names)) == len(names)
    added_up: Counter = Counter()
    for name, weighs in zip(names, sums.tolist(), strict=True):
        added_up[name] += weighs
    return added_up


def random_users(seed: int, words: bool) -> Held:
    rng = np.random.default_rng(seed)
    users = {int(name): rng.integers(0, 30, rng.integers(0, CAP)) for name in range(1, 40)}
    spelled = (lambda key: f"w{key}é") if words else int
    return {name: [spelled(key) for key in keys] for name, keys in users.items()}


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_users_below_the_cap_add_their_weight_to_every_key_once(seed, words):
    held = random_users(seed, words)
    wanted: Counter = Counter()
    for keys in held.values():
        wanted.update(dict.fromkeys(set(keys), weight(BITS, max(1, len(set(keys))))))
    assert added(held) == wanted


@pytest.mark.parametrize("words", [True, False])
def test_an_over_full_user_adds_to_as_many_keys_as_the_cap_and_to_any_of_them(words):
    keys = [f"w{k}" if words else k for k in range(12)]
    chosen: Counter = Counter()
    for salt in range(3000):
        kept = added({5: keys * 2}, salt)
        assert list(kept.values()) == [weight(BITS, CAP)] * CAP
        chosen.update(kept.keys())
    # Each is kept a third of the time: by 3,000 fixed salts, as six standard deviations allow.
    expected = 3000 * CAP / len(keys)
    assert set(chosen) == set(keys)
    assert all(abs(count - expected) < 6 * (expected * 2 / 3) ** 0.5 for count in chosen.values())


def test_users_choose_apart_from_one_another():
    kept = added({name: list(range(30)) for name in range(1, 400)})
    assert len(kept) == 30  # were they to choose alike, there would be four


def test_of_equal_places_none_is_kept_beyond_the_cap():
    positions = np.array([3, 1, 1, 1, 9, 5, 1, 2, 3, 4], dtype=np.uint64)
    owner = np.array([0, 0, 0, 0, 0, 2, 2, 2, 2, 2])
    below = below_cut(owner, positions, np.bincount(owner), 2)
    assert below.tolist() == [False] * 5 + [False, True, True, False, False]


def test_the_cut_is_the_users_own_however_different_users_hashes_are():
    """One user's hashes are all below the others', so no guess from all of them fits anybody."""
    rng = np.random.default_rng(1)
    number = np.array([3000, 0, 900, 101, 40_000])
    owner = np.repeat(np.arange(len(number)), number)
    highest = np.array([1 << 8, 1, 1 << 39, 1 << 20, 1 << 40])
    hashes = (rng.random(len(owner)) * highest.take(owner)).astype(np.uint64)
    below = below_cut(owner, hashes, number, 100)
    for user in np.flatnonzero(number):
        of_user = hashes[owner == user]
        assert np.array_equal(below[owner == user], of_user < np.sort(of_user)[100])


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
        found = distinct(keys, owner.astype(np.uint32))
        assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == sorted(held)
        if keys.max() < 2**31:
            narrow = distinct(keys.astype(np.int32), owner.astype(np.uint32))
            assert all(map(np.array_equal, found, narrow))


def test_users_are_divided_where_their_numbers_and_keys_do_not_fit_together():
    keys = np.array([2**62, 2**62, 5, -1, 2**62 + 1, 5, 2**62])
    found, sums = contributions(
        np.arange(3), np.array([2, 2, 3]), keys, equal_weights(CAP, BITS, 7)
    )
    added_to: Counter = Counter()
    for key, weighs in zip(found.tolist(), sums.tolist(), strict=True):
        added_to[key] += weighs
    one, three = weight(BITS, 1), weight(BITS, 3)
    assert added_to == {2**62: one + three, 5: one + three, 2**62 + 1: three}
