"""Makes a prior from public items and their counts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.priors.prior import Integers, Prior, PublicGrams

#: Above this no sum of counts is near what 64 bits hold.
MOST_COUNT = 2**52
_DIGEST_FORMAT = b"dphh prior 1"


def prior_of(vocabulary: Any, grams: Sequence[PublicGrams], total: int) -> Prior:
    """Make a prior, with the digest that identifies it."""
    told = hashlib.sha256(_DIGEST_FORMAT)
    lengths = pc.binary_length(vocabulary).to_numpy(zero_copy_only=False).astype("<i8")
    arrays = [np.array([total]), lengths, *(part for each in grams for part in _arrays_of(each))]
    for array in arrays:
        told.update(np.array(array.shape, "<i8").tobytes())
        told.update(np.ascontiguousarray(array, "<i8").data)
    for piece in range(0, len(vocabulary), 1 << 16):
        told.update("".join(vocabulary[piece : piece + (1 << 16)].to_pylist()).encode())
    return Prior(vocabulary, tuple(grams), total, told.hexdigest())


def _arrays_of(grams: PublicGrams) -> tuple[Integers, Integers]:
    return grams.words, grams.counts


def prior_of_items(tokens: Any, counts: Any, max_n: int) -> Prior:
    """Make a prior from distinct items (an Arrow array of lists of tokens) with positive counts.
    Items of more than `max_n` tokens are left out, and items whose shorter parts are missing."""
    counts = np.clip(np.rint(np.asarray(counts, np.float64)), 1, MOST_COUNT).astype(np.int64)
    lengths = pc.list_value_length(tokens).to_numpy(zero_copy_only=False)
    words = tokens.filter(pa.array(lengths == 1)).flatten().cast(pa.string())
    order = pc.sort_indices(words.cast(pa.binary())).to_numpy()
    vocabulary, of_words = words.take(order), counts[lengths == 1][order]
    numbers = np.arange(len(vocabulary), dtype=np.int64)[:, None]
    grams = [PublicGrams(numbers, of_words)]
    for length in range(2, max_n + 1):
        some = lengths == length
        flat = tokens.filter(pa.array(some)).flatten().cast(pa.string())
        found = pc.index_in(flat, value_set=vocabulary).fill_null(-1).to_numpy()
        rows, of_rows = found.reshape(-1, length).astype(np.int64), counts[some]
        whole = _rows_with_parts(rows, grams[-1].words)
        rows, of_rows = rows[whole], of_rows[whole]
        in_order = np.lexsort(rows.T[::-1])
        grams.append(PublicGrams(rows[in_order], of_rows[in_order]))
    return prior_of(vocabulary, grams, int(of_words.sum()))


def _rows_with_parts(rows: Integers, parts: Integers) -> Any:
    """Which rows (n-grams) have both their first n - 1 words and their last n - 1 words among the
    parts."""
    known = _rows_as_keys(parts)
    return np.isin(_rows_as_keys(rows[:, :-1]), known) & np.isin(_rows_as_keys(rows[:, 1:]), known)


def _rows_as_keys(rows: Integers) -> Any:
    """Each row as one comparable value."""
    rows = np.ascontiguousarray(rows)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
