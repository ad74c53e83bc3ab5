"""The source of all randomness that affects privacy: the operating system.

`os.urandom` gives 40 to 48 million 64-bit words a second on the machine where this was written,
about what the rest of this folder can use. A generator in user space (AES-CTR) is several times
faster, but has a state that a fork copies, threads race for and a core dump discloses. So dphh has
none: every word comes from the kernel.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.errors import UsageError

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
_WORD_VALUES = 1 << 64


class Randomness(Protocol):
    """A source of uniform 64-bit words."""

    @property
    def is_test(self) -> bool:
        """Whether the words are predictable, so that nothing drawn from them is private."""

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        """`count` independent uniform words (the array may be read-only).

        `keys`, one for each word, name what the words are for. The system's generator ignores them.
        What a run draws once is a function of them (`RunRandomness`). A test's generator computes
        each word from its seed, `purpose` and the key alone, so that engines which order their
        rows differently agree.
        """


class SystemRandomness:
    """The operating system's generator. It keeps no state here, so forks and threads are safe."""

    is_test = False

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        check_keys(count, keys)
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


#: The purposes of two kinds of draws: each user's one sequence in `trie`, and the order in which
#: `ldp_trie` asks users.
ONE_SEQUENCE, SEATS = "one sequence a user", "ldp_trie/seats"
#: What a run draws once. A run that resumes after its process was killed must draw it again alike.
ONCE_A_RUN = (ONE_SEQUENCE, SEATS)


class RunRandomness:
    """The randomness of one run: that of `source`, except for what the run draws once.

    Those words are a keyed hash (BLAKE2b) of the purpose and the key they are drawn for. The hash's
    secret key comes from the system, and stays in the ledger until the run is settled. A test's
    words are functions of its seed already, so they stay as they are.
    """

    def __init__(self, source: Randomness) -> None:
        self.source = source
        self._key: bytes | None = None

    @property
    def is_test(self) -> bool:
        return self.source.is_test

    def draw_once_by(self, key: bytes) -> None:
        self._key = key

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        if self.is_test or not once_a_run(purpose):
            return self.source.words(count, purpose, keys)
        check_keys(count, keys)
        if self._key is None or keys is None:
            raise UsageError(
                f"words for {purpose!r} are drawn once a run: they need keys, and the run's secret "
                "key, which exists once the run has begun; draw them after that"
            )
        start = blake2b(f"{len(purpose)}:{purpose}:".encode(), key=self._key, digest_size=8)
        digests = bytearray()
        for key in keys.cast("binary").to_pylist():
            hashed = start.copy()
            hashed.update(b"" if key is None else b":" + key)
            digests += hashed.digest()
        return np.frombuffer(digests, dtype="<u8").astype(np.uint64, copy=False)


def once_a_run(purpose: str) -> bool:
    """Whether a run draws this once. `uniform_below` appends the number of an attempt."""
    return any(purpose == once or purpose.startswith(f"{once}/") for once in ONCE_A_RUN)


def wants_keys(randomness: Randomness, purpose: str) -> bool:
    """Whether words depend on their keys; the system's do not."""
    return randomness.is_test or once_a_run(purpose)


def keys_if_wanted(key: pa.Array, randomness: Randomness, purpose: str) -> pa.Array | None:
    """The keys, if the words depend on them; the system's do not."""
    return pa.array(key.to_pylist(), pa.string()) if wants_keys(randomness, purpose) else None


def check_keys(count: int, keys: pa.Array | None) -> None:
    """Check that there is one key for each word, or no keys at all."""
    if count < 0:
        raise UsageError(f"cannot draw {count} words")
    if keys is not None and len(keys) != count:
        raise UsageError(
            f"keys: found {len(keys)} for {count} draws; "
            "give one for each draw, to name what it is for"
        )


def uniform_below(
    randomness: Randomness, bound: int, count: int, purpose: str, keys: pa.Array | None = None
) -> Words:
    """`count` integers, each exactly uniform on 0, ..., bound - 1, for 1 <= bound <= 2^64.

    By rejection: a word is accepted if it is below the largest multiple of `bound` up to 2^64, so
    that all remainders have equally many words. At least half of all words are accepted.
    """
    if not 1 <= bound <= _WORD_VALUES:
        raise UsageError(f"a bound must be from 1 to 2^64, not {bound}")
    words = randomness.words(count, purpose, keys)
    surplus = _WORD_VALUES % bound
    if surplus == 0:  # a power of two: every word is accepted
        return words & np.uint64(bound - 1)
    largest = np.uint64(_WORD_VALUES - surplus - 1)
    values = words % np.uint64(bound)
    pending = np.flatnonzero(words > largest)
    attempt = 1
    while len(pending):
        attempt += 1
        again = randomness.words(
            len(pending), f"{purpose}/{attempt}", None if keys is None else keys.take(pending)
        )
        values[pending] = again % np.uint64(bound)
        pending = pending[again > largest]
    return values


def uniform_big(randomness: Randomness, bound: int, purpose: str) -> int:
    """One integer, exactly uniform on 0, ..., bound - 1, for a `bound` of any size.

    By rejection: as many bits as `bound - 1` has are drawn until they are below `bound`, at most
    twice on average.
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
    """Words as one integer, the first word most significant."""
    return int.from_bytes(words.astype(">u8").tobytes(), "big")


def numbered_keys(
    keys: pa.Array, rows: Sequence[int] | Integers, counts: Sequence[int] | Integers, first: int = 0
) -> pa.Array:
    """For a test's randomness: one key for each of the `counts` words that each row takes."""
    names = keys.take(pa.array(rows)).to_pylist()
    return pa.array(
        [
            f"{name}\x1f{number}"
            for name, count in zip(names, counts, strict=True)
            for number in range(first, first + count)
        ]
    )
