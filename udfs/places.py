"""The ladder's places, many users at a time: which released gram starts where in their texts.

Neighbours in an array of places (`blocks.py`) are neighbours in a text: -1 stands where nothing
released starts, and after each text, so that no pair crosses from one into the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.levels import Pruning

Integers = NDArray[np.int64]
_PAIR = np.int64(32)


def candidates(grams: Integers, words: Integers, level: int, pruning: Pruning) -> Integers:
    """The keys of the grams of this level whose pieces were released; left * 2^32 + right.

    DPNE, pruning "both": a gram's first and last k - 1 tokens were released: two released grams
    side by side. "single": its first k - 1 tokens as a gram, and its last one as a word.
    """
    keys = np.full(len(grams), -1, dtype=np.int64)
    right = grams[1:] if pruning == "both" else words[level - 1 :]
    left = grams[: len(right)]
    valid = (left >= 0) & (right >= 0)
    keys[: len(right)][valid] = (left[valid] << _PAIR) | right[valid]
    return keys


def places_of_words(codes: Integers, words: Any, released: Any) -> Integers:
    """The place in `released` of the word that each code stands for, or -1."""
    at = pc.index_in(words.cast(pa.string()), value_set=released).fill_null(-1).to_numpy()
    return np.append(at, -1)[codes].astype(np.int64)


def places_of_grams(keys: Integers, released: Integers) -> Integers:
    """The place of each key in `released`, which is ascending, or -1."""
    at = np.minimum(np.searchsorted(released, keys), len(released) - 1)
    return np.where(released[at] == keys, at, -1)


def beside_another(grams: Integers) -> NDArray[np.bool_]:
    """The places of grams that stand beside another, and of one -1 after each run of them.

    No other can be half of a longer one.
    """
    there = grams >= 0
    there &= np.append(there[1:], False) | _one_on(there)
    return there | _one_on(there)


def _one_on(there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.concatenate([[False], there[:-1]])
