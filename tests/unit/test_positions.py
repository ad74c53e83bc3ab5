"""The positions of released grams in users' texts, climbed level by level beside plain windows."""

from __future__ import annotations

import numpy as np
import pytest

from dphh.udfs.kernel import positions
from dphh.udfs.kernel.positions import (
    Released,
    candidates,
    candidates_that_matter,
    of_words,
    positions_of_texts,
)

Gram = tuple[str, ...]


def random_texts(rng: np.random.Generator) -> list[list[list[str]]]:
    """The texts of each of some users; words are few, so that grams meet again."""
    words = np.array(list("abcd"))
    return [
        [list(rng.choice(words, rng.integers(1, 7))) for _ in range(rng.integers(0, 4))]
        for _ in range(12)
    ]


def placed(users: list[list[list[str]]]) -> tuple[np.ndarray, np.ndarray]:
    """How many positions each user has, and the number of the word at each; -1 ends a text."""
    words = ["abcd".index(word) for texts in users for text in texts for word in text]
    of_texts = np.array([len(text) for texts in users for text in texts], np.int64)
    of_texts, positions = positions_of_texts(of_texts, np.array(words, np.int32), True)
    owner = np.repeat(np.arange(len(users)), [len(texts) for texts in users])
    lengths = np.bincount(owner, of_texts, minlength=len(users)).astype(np.int64)
    return lengths, positions


def grams_of(texts: list[list[str]], length: int) -> set[Gram]:
    return {tuple(text[i : i + length]) for text in texts for i in range(len(text) - length + 1)}


def pieces_released(gram: Gram, below: set[Gram], words: set[Gram], pruning: str) -> bool:
    last = gram[1:] in below if pruning == "both" else gram[-1:] in words
    return gram[:-1] in below and last


@pytest.mark.parametrize("pruning", ["both", "single"])
@pytest.mark.parametrize("seed", range(12))
def test_candidates_are_the_grams_whose_pieces_were_released(seed, pruning):
    rng = np.random.default_rng(seed)
    users = random_texts(rng)
    lengths, grams = placed(users)
    released = [("a",), ("b",), ("c",)]
    words_released = set(released)
    grams = words = np.array([0, 1, 2, -1, -1])[grams]
    for level in range(2, 6):
        both = pruning == "both"
        if both:
            lengths, keys = candidates_that_matter(lengths, grams)
        else:
            keys = candidates(grams, words, level - 1)
        owner = np.repeat(np.arange(len(users)), lengths)

        def spelled(key: int, below: list[Gram] = released) -> Gram:
            left, right = below[key >> 32], key & (2**32 - 1)
            return (*left, below[right][-1] if pruning == "both" else "abc"[right])

        for user, texts in enumerate(users):
            found = {spelled(int(key)) for key in keys[(owner == user) & (keys >= 0)]}
            assert found == {
                gram
                for gram in grams_of(texts, level)
                if pieces_released(gram, set(released), words_released, pruning)
            }

        some = np.unique(keys[keys >= 0])
        some = some[rng.random(len(some)) < 0.7]
        if not len(some):
            break
        released = [spelled(int(key)) for key in some]
        grams = Released(some).positions(keys)


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
