"""The source of all randomness that affects privacy: the operating system.

A random word is a uniform 64-bit integer. `os.urandom` gives 40 to 48 million a second on the
machine where this was written, about what the rest of this folder can use. A generator in user
space (AES-CTR) is several times faster, but has a state that a fork copies, threads race for and a
core dump discloses. So dphh has none: every random word comes from the kernel.
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
from dphh.udfs.arrays import Integers

RandomWords = NDArray[np.uint64]
_RANDOM_WORD_VALUES = 1 << 64


class Randomness(Protocol):
    """A source of random words: uniform 64-bit integers."""

    @property
    def is_test(self) -> bool:
        """Whether random words are predictable, so that nothing drawn from them is private."""

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        """`count` independent random words (the array may be read-only).

        `keys`, one for each random word, name what it is for. The system's generator ignores them.
        What a run draws once is a function of them (`RunRandomness`). A test's generator computes
        each random word from its seed, `purpose` and the key alone, so that engines which order
        their rows differently agree.
        """


class SystemRandomness:
    """The operating system's generator. It keeps no state here, so forks and threads are safe."""

    is_test = False

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        check_keys(count, keys)
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


#: The purposes of two draws: which one of a user's sequences counts in `trie`, and in which order
#: `ldp_trie` asks users.
ONE_SEQUENCE, SEATS = "one sequence a user", "ldp_trie/seats"
#: The purposes for which a run always gets the same random words, also if it continues after its
#: process was killed.
PURPOSES_FIXED_IN_RUN = (ONE_SEQUENCE, SEATS)


class RunRandomness:
    """The random words of one run: those of `source`, except for PURPOSES_FIXED_IN_RUN.

    Those for these purposes are a keyed hash (BLAKE2b) of the purpose and the key they are drawn
    for. The hash's secret key comes from the system. The run sets it when it begins, and the ledger
    has it until the run is settled. A test's random words are functions of its seed already, so
    they stay as they are.
    """

    def __init__(self, source: Randomness) -> None:
        self.source = source
        self.secret_key: bytes | None = None

    @property
    def is_test(self) -> bool:
        return self.source.is_test

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        if self.is_test or not is_fixed_in_run(purpose):
            return self.source.random_words(count, purpose, keys)
        check_keys(count, keys)
        if self.secret_key is None or keys is None:
            raise UsageError(
                f"random words for {purpose!r} are drawn once a run: they need keys, and the run's "
                "secret key, which exists once the run has begun; draw them after that"
            )
        start = blake2b(f"{len(purpose)}:{purpose}:".encode(), key=self.secret_key, digest_size=8)
        digests = bytearray()
        for key in keys.cast("binary").to_pylist():
            hashed = start.copy()
            hashed.update(b"" if key is None else b":" + key)
            digests += hashed.digest()
        return np.frombuffer(digests, dtype="<u8").astype(np.uint64, copy=False)


def is_fixed_in_run(purpose: str) -> bool:
    """Whether a run always gets the same random words for this purpose, also when it goes on after
    its process ended. `uniform_below` appends the number of an attempt."""
    return any(purpose == once or purpose.startswith(f"{once}/") for once in PURPOSES_FIXED_IN_RUN)


def needs_keys(randomness: Randomness, purpose: str) -> bool:
    """Whether random words depend on their keys, as the system's do not."""
    return randomness.is_test or is_fixed_in_run(purpose)


def keys_if_needed(key: pa.Array, randomness: Randomness, purpose: str) -> pa.Array | None:
    """The keys as texts if random words depend on them (`needs_keys`), else None."""
    return pa.array(key.to_pylist(), pa.string()) if needs_keys(randomness, purpose) else None


def check_keys(count: int, keys: pa.Array | None) -> None:
    """Checks that there is one key for each of `count` random words, or no keys at all."""
    if count < 0:
        raise UsageError(f"cannot draw {count} random words")
    if keys is not None and len(keys) != count:
        raise UsageError(
            f"keys: found {len(keys)} for {count} draws; "
            "give one for each draw, to name what it is for"
        )


def uniform_below(
    randomness: Randomness, bound: int, count: int, purpose: str, keys: pa.Array | None = None
) -> RandomWords:
    """`count` integers, each exactly uniform on 0, ..., bound - 1, for 1 <= bound <= 2^64.

    By rejection: a random word is accepted if it is below the largest multiple of `bound` up to
    2^64, so that all remainders are equally likely. At least half of all random words are.
    """
    if not 1 <= bound <= _RANDOM_WORD_VALUES:
        raise UsageError(f"a bound must be from 1 to 2^64, not {bound}")
    words = randomness.random_words(count, purpose, keys)
    surplus = _RANDOM_WORD_VALUES % bound
    if surplus == 0:  # a power of two: every random word is accepted
        return words & np.uint64(bound - 1)
    largest = np.uint64(_RANDOM_WORD_VALUES - surplus - 1)
    values = words % np.uint64(bound)
    pending = np.flatnonzero(words > largest)
    attempt = 1
    while len(pending):
        attempt += 1
        again = randomness.random_words(
            len(pending), f"{purpose}/{attempt}", None if keys is None else keys.take(pending)
        )
        values[pending] = again % np.uint64(bound)
        pending = pending[again > largest]
    return values


def uniform_int(randomness: Randomness, bound: int, purpose: str) -> int:
    """One integer, exactly uniform on 0, ..., bound - 1, for a `bound` of any size.

    By rejection: as many bits as `bound - 1` has are drawn until they are below `bound`, at most
    twice on average.
    """
    if bound < 1:
        raise UsageError(f"a bound must be at least 1, not {bound}")
    bits = (bound - 1).bit_length()
    count = -(-bits // 64)
    while True:
        value = to_int(randomness.random_words(count, purpose)) >> (64 * count - bits)
        if value < bound:
            return value


def to_int(words: RandomWords) -> int:
    """One integer with the bits of these random words, the first word most significant."""
    return int.from_bytes(words.astype(">u8").tobytes(), "big")


def numbered_keys(
    keys: pa.Array,
    rows: Sequence[int] | Integers,
    words_per_row: Sequence[int] | Integers,
    first_number: int = 0,
) -> pa.Array:
    """A key for each random word of these rows: the row's key, and a number within the row."""
    names = keys.take(pa.array(rows)).to_pylist()
    return pa.array(
        [
            f"{name}\x1f{number}"
            for name, count in zip(names, words_per_row, strict=True)
            for number in range(first_number, first_number + count)
        ]
    )
