"""Public sets of words as arrays by word id, in which the queries of a level look words up. The
last element is for id -1, where no word stands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.errors import EngineOutOfMemory
from dphh.udfs.text.vocabulary import Vocabulary

#: Whether an earlier round released the word; None before the first one.
ReleasedWords = NDArray[np.bool_] | None


def numbers_of_released(vocabulary: Vocabulary, words: Any) -> NDArray[np.int32]:
    """The number of each released word, its index in `words`; -1 of all others."""
    ids = vocabulary.ids(words)
    numbers = np.full(len(vocabulary) + 1, -1, dtype=np.int32)
    numbers[ids] = np.arange(len(words))
    return numbers


def keys_by_list(vocabulary: Vocabulary, words: Any) -> NDArray[np.int32]:
    """The key of each word by a public list: its position there; for a word that the list lacks,
    its own number after these."""
    ids = vocabulary.ids(words)
    if len(words) + len(vocabulary) >= 2**31:
        raise EngineOutOfMemory("the list and the texts have more words than four bytes number")
    keys = np.arange(len(vocabulary) + 1, dtype=np.int32) + np.int32(len(words))
    keys[ids] = np.arange(len(words))
    keys[-1] = -1
    return keys


def with_released(before: ReleasedWords, vocabulary: Vocabulary, words: Any) -> NDArray[np.bool_]:
    """What was released before, and these words too."""
    ids = vocabulary.ids(words)
    released = np.zeros(len(vocabulary) + 1, dtype=np.bool_)
    if before is not None:
        released[: len(before) - 1] = before[:-1]
    released[ids] = True
    return released
