"""Corpora made to hurt a forecast: (users, words) arrays, one text a user."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Made = tuple[Integers, Integers]


def _texts(rows: Integers) -> Made:
    """One text a row."""
    return np.repeat(np.arange(len(rows)), rows.shape[1]), rows.ravel()


def rare_pairs(rng: np.random.Generator, users: int = 20_000, pairs: int = 3_000) -> Made:
    """Rare words that always stand together, all alike."""
    chosen = rng.integers(0, pairs, (users, 5))
    return _texts(np.stack([2 * chosen, 2 * chosen + 1], axis=2).reshape(users, 10))


def boilerplate(rng: np.random.Generator, users: int = 20_000, sentences: int = 300) -> Made:
    """Sentences of ten words that occur nowhere else; everybody holds a few, at random."""
    chosen = rng.integers(0, sentences, (users, 2))
    return _texts((10 * chosen[:, :, None] + np.arange(10)).reshape(users, 20))


def flat_words(rng: np.random.Generator, users: int = 20_000, words: int = 2_000) -> Made:
    """Any word follows any word."""
    return _texts(rng.integers(0, words, (users, 20)))


def one_word(rng: np.random.Generator, users: int = 60) -> Made:
    return _texts(np.zeros((users, 8), dtype=np.int64))


def three_words(rng: np.random.Generator, users: int = 200) -> Made:
    return _texts(rng.integers(0, 3, (users, 6)))


def long_lists(rng: np.random.Generator, users: int = 100, length: int = 100_000) -> Made:
    """Few users who hold very much, of few words: all hold the short grams, few a long one."""
    return _texts((20 * rng.random((users, length)) ** 3).astype(np.int64))


HURT: dict[str, Callable[[np.random.Generator], Made]] = {
    "rare pairs": rare_pairs,
    "boilerplate": boilerplate,
    "flat words": flat_words,
    "one word": one_word,
    "three words": three_words,
    "long lists": long_lists,
}
