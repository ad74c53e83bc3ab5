"""N-grams as texts, without pruning: for exact counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Separates the words of a key; inside a word it is escaped.
SEPARATOR = "\x1f"


def whole_grams(texts: Any, lengths: Iterable[int]) -> pa.Array:
    """All n-grams of these lengths of each text, one list a text; empty tokens are left out.

    The types are large: a text of 2^24 characters has 2 GiB of n-grams of up to 16 tokens.
    """
    numbers = pc.list_value_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
    words = texts.flatten().cast(pa.large_string())
    there = pc.not_equal(words, "").fill_null(False)
    of_word = np.repeat(np.arange(len(numbers)), numbers)[there.to_numpy(zero_copy_only=False)]
    words = _joined_words(words.filter(there))
    between = pa.scalar(SEPARATOR, words.type)
    grams, of_gram = [], []
    for length in lengths:
        last = len(of_word) - length + 1
        if last < 1:
            continue
        starts = np.flatnonzero(of_word[:last] == of_word[length - 1 :])
        parts = [words.take(pa.array(starts + position)) for position in range(length)]
        grams.append(pc.binary_join_element_wise(*parts, between) if length > 1 else parts[0])
        of_gram.append(of_word[starts])
    if not grams:
        return pa.array([[]] * len(numbers), pa.large_list(pa.large_string()))
    owner = np.concatenate(of_gram)
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=len(numbers)))
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.concat_arrays(grams).take(order))


def _joined_words(words: Any) -> Any:
    escaped = pc.replace_substring(words, "\\", "\\\\")
    return pc.replace_substring(escaped, SEPARATOR, "\\s")
