"""Where randomness that matters comes from: the operating system, word by word.

`os.urandom` gives 40 to 48 million 64-bit words a second on the machine where this was written,
about what everything else in this folder can use. A user-space generator (AES-CTR) is several
times faster but has a state, which a fork copies, threads race for and a core dump shows. So
there is none: every word is the kernel's.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.errors import UsageError

Words = NDArray[np.uint64]
_WORD_VALUES = 1 << 64


class Randomness(Protocol):
    """A source of uniform 64-bit words."""

    @property
    def is_test(self) -> bool:
        """Whether the words can be foretold, so that nothing drawn from them is private."""

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        """`count` independent uniform words (the array may be read-only).

        `keys`, one for each word, name what the words are for. The system's generator ignores
        them. A test's generator makes each word from its seed, `purpose` and the key alone, so
        that engines which order their rows differently agree.
        """


class SystemRandomness:
    """The operating system's generator. It has no state here: forks and threads are safe."""

    is_test = False

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        check_keys(count, keys)
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def check_keys(count: int, keys: pa.Array | None) -> None:
    """There must be one key for each word, or none at all."""
    if count < 0:
        raise UsageError(f"cannot draw {count} words")
    if keys is not None and len(keys) != count:
        raise UsageError(f"{len(keys)} keys were given for {count} words; give one for each")


def uniform_below(
    randomness: Randomness, bound: int, count: int, purpose: str, keys: pa.Array | None = None
) -> Words:
    """`count` integers, each exactly uniform on 0, ..., bound - 1, for 1 <= bound <= 2^64.

    By rejection: a word is accepted below the largest multiple of `bound` that words can reach,
    and every remainder has equally many words there. At least half of all words are accepted.
    """
    if not 1 <= bound <= _WORD_VALUES:
        raise UsageError(f"a bound must be from 1 to 2^64, not {bound}")
    words = randomness.words(count, purpose, keys)
    surplus = _WORD_VALUES % bound
    if surplus == 0:  # a power of two: every word counts
        return words & np.uint64(bound - 1)
    largest = np.uint64(_WORD_VALUES - surplus - 1)
    values = words % np.uint64(bound)
    pending = np.flatnonzero(words > largest)
    attempt = 1
    while len(pending):
        attempt += 1
        again = randomness.words(
            len(pending),
            f"{purpose}/{attempt}",
            None if keys is None else keys.take(pa.array(pending)),
        )
        values[pending] = again % np.uint64(bound)
        pending = pending[again > largest]
    return values


def uniform_big(randomness: Randomness, bound: int, purpose: str) -> int:
    """One integer, exactly uniform on 0, ..., bound - 1, for a `bound` of any size.

    By rejection: as many bits as `bound - 1` has are drawn until they fall below `bound`, twice
    at most on average.
    """
    if bound < 1:
        raise UsageError(f"a bound must be at least 1, not {bound}")
    bits = (bound - 1).bit_length()
    count = -(-bits // 64)
    while True:
        value = join(randomness.words(count, purpose)) >> (64 * count - bits)
        if value < bound:
            return value


def join(words: Words) -> int:
    """Words side by side, the first on top, as one integer."""
    return int.from_bytes(words.astype(">u8").tobytes(), "big")
