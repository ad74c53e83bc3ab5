"""Hashes that depend on a spelling or a number alone: the same in every engine, process and run.

Bounding chooses a user's keys by these hashes of users and words, never by numbers that would
change if another user were added or removed. They need not be secret or free of collisions: two
spellings with one hash are still two keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
#: How many bytes are hashed at a time.
_BYTES_A_STEP = 8


def mix_bits(hashes: Any, salt: int = 0) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): mixes all bits of each hash."""
    found: Hashes = hashes + np.uint64((salt + 0x9E3779B97F4A7C15) % 2**64)
    shifted = found >> np.uint64(30)
    found ^= shifted
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= np.right_shift(found, np.uint64(27), out=shifted)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= np.right_shift(found, np.uint64(31), out=shifted)
    return found


def unmixed_hashes(numbers: Any) -> Hashes:
    """The numbers themselves, as hashes whose bits are not mixed yet."""
    return np.ascontiguousarray(numbers, dtype=np.int64).view(np.uint64)


def hash_texts(texts: Any) -> Hashes:
    """A hash of each text's bytes. A step hashes the next eight bytes of all texts."""
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    starts, lengths = ends[:-1], np.diff(ends)
    hashes = mix_bits(unmixed_hashes(lengths))
    if not len(texts) or not lengths.any():
        return hashes
    first, last = int(ends[0]), int(ends[-1])
    text = np.zeros(last - first + _BYTES_A_STEP, dtype=np.uint8)
    text[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    eights = np.ndarray(len(text) - _BYTES_A_STEP + 1, "<u8", text, strides=(1,))
    rows = np.flatnonzero(lengths > 0)
    done = 0
    while len(rows):
        left = lengths[rows] - done
        word = eights[starts[rows] - first + done]
        short = left < _BYTES_A_STEP
        word[short] &= (np.uint64(1) << (left[short] * 8).astype(np.uint64)) - np.uint64(1)
        hashes[rows] = mix_bits(hashes[rows] ^ word)
        done += _BYTES_A_STEP
        rows = rows[left > _BYTES_A_STEP]
    return hashes
