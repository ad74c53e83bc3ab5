"""What tests use in place of the operating system's randomness. Nothing drawn from it is private.

A seeded run needs this object, made on purpose and handed over by hand; its manifest says so.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from hashlib import blake2b
from importlib.util import find_spec

import numpy as np
import pyarrow as pa

from dphh.errors import UsageError
from dphh.udfs.noise.randomness import RandomWords, check_keys


class SeededRandomness:
    """Random words that a seed determines.

    With keys: each random word is a hash of (seed, purpose, key) alone, whatever the order, the
    batch or the integer width of the keys, so equal keys get equal random words. Without: each
    purpose has its own stream (AES in counter mode under a hash of seed and purpose), read on from
    where the last call ended, however the calls cut it.
    """

    is_test = True

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise UsageError(f"a seed must be an integer, not {seed!r}")
        if find_spec("cryptography") is None:  # asked here, since a run would have paid first
            raise UsageError(
                "randomness: cryptography is not installed; pip install 'dphh[testing]'"
            )
        self.seed = seed
        self._positions: defaultdict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[SeededRandomness], tuple[int]]:
        """A copy, such as for Spark's executors, has the seed alone: its words by key are the same,
        and its streams begin anew."""
        return SeededRandomness, (self.seed,)

    def __repr__(self) -> str:
        return f"SeededRandomness({self.seed})"

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        check_keys(count, keys)
        if keys is None:
            return self._next_words(count, purpose)
        start = blake2b(f"{self.seed}:{len(purpose)}:{purpose}:".encode(), digest_size=8)
        digests = bytearray()
        for key in keys.to_pylist():
            hashed = start.copy()
            hashed.update(_key_bytes(key))
            digests += hashed.digest()
        return np.frombuffer(digests, dtype="<u8").astype(np.uint64, copy=False)

    def _next_words(self, count: int, purpose: str) -> RandomWords:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        with self._lock:
            position = self._positions[purpose]
            self._positions[purpose] += count
        key = blake2b(f"{self.seed}:{purpose}".encode(), digest_size=32, person=b"stream").digest()
        block, skipped = divmod(position, 2)  # a block of AES has two random words
        blocks = (skipped + count + 1) // 2
        cipher = Cipher(algorithms.AES(key), modes.CTR(block.to_bytes(16, "big")))
        stream = cipher.encryptor().update(bytes(16 * blocks))
        words = np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False)
        return words[skipped : skipped + count]


def _key_bytes(key: object) -> bytes:
    """A key as bytes, with its type, so that different keys have different bytes."""
    if key is None:
        return b"null"
    if isinstance(key, bytes):
        return b"bytes:" + key
    if isinstance(key, str):
        return b"text:" + key.encode()
    if isinstance(key, int):
        return b"integer:%d" % key
    raise UsageError(f"a key must be text, bytes or an integer, not {type(key).__name__}")
