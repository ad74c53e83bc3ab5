"""The positions of released grams in users' texts: their pieces, and how keys are looked up."""

from __future__ import annotations

import numpy as np
import pytest

from dphh.udfs.kernel import positions
from dphh.udfs.kernel.positions import (
    Released,
    candidates,
    candidates_that_matter,
    of_words,
)


@pytest.mark.parametrize("piece", [1, 3, 8, 1 << 16])
@pytest.mark.parametrize("seed", range(2))
def test_the_same_places_matter_wherever_a_piece_ends(seed, piece, monkeypatch):
    monkeypatch.setattr(positions, "PIECE", piece)
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, 12) * (seed > 0)  # also of nobody
    grams = rng.integers(-1, 3, lengths.sum()).astype(np.int32)
    numbers = np.array([7, -1, 5, 9], dtype=np.int32)
    assert of_words(numbers, grams).tolist() == [numbers[gram] for gram in grams]

    keys = candidates(grams, grams, 1)
    matter = (keys >= 0) | np.append(False, keys[:-1] >= 0)
    owner = np.repeat(np.arange(12), lengths)
    left, found = candidates_that_matter(lengths, grams)
    assert left.tolist() == [int(matter[owner == user].sum()) for user in range(12)]
    assert found.tolist() == keys[matter].tolist()


@pytest.mark.parametrize("size", [0, 1, 2, 40_000])
def test_a_key_is_found_at_its_place_and_no_other_is(size):
    rng = np.random.default_rng(size)
    keys = np.unique(rng.integers(0, 2**62, size) >> rng.integers(0, 60, size))
    released = Released(keys)
    assert released.positions(keys).tolist() == list(range(len(keys)))
    others = np.setdiff1d(rng.integers(-1, 2**62, 3 * size + 5) >> 7, keys)
    assert set(released.positions(others)) <= {-1}
    assert set(released.positions(np.setdiff1d(keys + 1, keys))) <= {-1}


def test_keys_that_all_belong_at_one_place_are_found():
    """As many behind one another as there are keys: more than functions may call themselves."""

    class AtOnePlace(Released):
        def _first_slot(self, keys):
            return np.zeros(len(keys), dtype=np.int64)

    keys = np.arange(0, 6_000, 2)
    released = AtOnePlace(keys)
    assert released.positions(keys).tolist() == list(range(len(keys)))
    assert set(released.positions(keys + 1).tolist()) == {-1}
