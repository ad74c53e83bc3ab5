"""Votes by Bernoulli sampling: of k users who would vote alike, how many tossed heads.

TrieHH samples users at every level. Users who hold the same next prefix are alike to the level, so
their votes are Binomial(k, p), independent of all other prefixes' votes: the same law as a coin a
user, drawn after grouping instead of before. The coins are exact: p is a multiple of 2^-64, and a
coin is heads if a uniform 64-bit word lies below p 2^64.

Two short cuts, by k alone. Fewer than theta users cannot reach theta: no coins, 0 votes. And where
theta or more heads are so likely that P[Binomial(k, p) < theta] <= 2^-500, none are tossed either:
theta votes are written down. That is the distance, per prefix, from the exact law of "at least
theta", which is all that a level looks at. A user who comes or goes may carry a prefix over that
border, from failing with at most 2^-500 / (1 - p) <= 2^-436 to never: over 1,000 levels less than
10^-128, which vanishes in any delta from 10^-100.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.udfs.randomness import Randomness

Integers = NDArray[np.int64]
#: log of the probability that may be taken for none: 2^-500.
_NEVER = -500 * log(2.0)
#: Coins tossed at a time.
_BLOCK = 1 << 22


def surely_enough(numerator: int, theta: int) -> int:
    """The least k (or a little more) with P[Binomial(k, p) < theta] <= 2^-500, p = numerator/2^64.

    Chernoff: P[X <= a] <= exp(-mu + a + a log(mu / a)) for a < mu = k p, with a = theta - 1.
    """
    p = numerator / 2.0**64
    a = theta - 1

    def bound(k: int) -> float:
        mu = k * p
        if mu <= a:
            return 0.0
        return -mu + a + (a * log(mu / a) if a else 0.0)

    high = max(2 * theta, 2)
    while bound(high) > _NEVER - 1.0:  # a margin far above what floats lose
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= _NEVER - 1.0 else (middle, high)
    return high


def draw_votes(
    randomness: Randomness,
    users: Integers,
    numerator: int,
    theta: int,
    purpose: str,
    keys: pa.Array | None = None,
) -> Integers:
    """Votes of each group of `users`: exact where they may fall on either side of theta."""
    if not 0 < numerator < 1 << 64:
        raise UsageError("a sampling rate is a multiple of 2^-64 between 0 and 1")
    votes = np.zeros(len(users), dtype=np.int64)
    sure = users >= min(surely_enough(numerator, theta), 1 << 62)
    votes[sure] = theta
    open_ones = np.flatnonzero(~sure & (users >= theta))
    heads_below = np.uint64(numerator)
    large = users[open_ones] > _BLOCK
    for group in open_ones[large]:
        for first in range(0, int(users[group]), _BLOCK):
            count = min(_BLOCK, int(users[group]) - first)
            named = None if keys is None else _coin_keys(keys, [group], [count], first)
            coins = randomness.words(count, purpose, named) < heads_below
            votes[group] += np.count_nonzero(coins)
    open_ones = open_ones[~large]
    ends = np.cumsum(users[open_ones])
    start = 0
    while start < len(open_ones):
        # As many groups as fit a block.
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BLOCK, side="right"))
        groups = open_ones[start:stop]
        sizes = users[groups]
        named = None if keys is None else _coin_keys(keys, groups, sizes)
        coins = randomness.words(int(sizes.sum()), purpose, named) < heads_below
        firsts = np.cumsum(sizes) - sizes
        votes[groups] = np.add.reduceat(coins, firsts, dtype=np.int64)
        start = stop
    return votes


def _coin_keys(
    keys: pa.Array,
    groups: Sequence[int] | Integers,
    sizes: Sequence[int] | Integers,
    first: int = 0,
) -> pa.Array:
    """A name for every coin, for a test's randomness."""
    names = keys.take(pa.array(groups)).to_pylist()
    return pa.array(
        [
            f"{name}\x1f{coin}"
            for name, size in zip(names, sizes, strict=True)
            for coin in range(first, first + size)
        ]
    )


def register_votes(con: duckdb.DuckDBPyConnection, randomness: Randomness) -> None:
    """Teach a DuckDB connection `dphh_votes(key, users, numerator, theta, purpose)`.

    One draw a row; everything but key and users is constant. Write the result to a table before
    anything reads it. `dphh_word(key)` is a uniform 64-bit word a row.
    """

    def votes(
        key: pa.ChunkedArray,
        users: pa.ChunkedArray,
        numerator: pa.ChunkedArray,
        theta: pa.ChunkedArray,
        purpose: pa.ChunkedArray,
    ) -> pa.Array:
        if not len(users):
            return pa.array([], pa.int64())
        drawn = draw_votes(
            randomness,
            users.to_numpy(),
            numerator[0].as_py(),
            theta[0].as_py(),
            purpose[0].as_py(),
            _names(key, randomness),
        )
        return pa.array(drawn)

    def word(key: pa.ChunkedArray, purpose: pa.ChunkedArray) -> pa.Array:
        if not len(key):
            return pa.array([], pa.uint64())
        return pa.array(randomness.words(len(key), purpose[0].as_py(), _names(key, randomness)))

    signatures: list[tuple[str, Any, list[Any], str]] = [
        ("dphh_votes", votes, ["VARCHAR", "BIGINT", "UBIGINT", "BIGINT", "VARCHAR"], "BIGINT"),
        ("dphh_word", word, ["VARCHAR", "VARCHAR"], "UBIGINT"),
    ]
    for name, function, takes, gives in signatures:
        con.create_function(
            name,
            function,
            takes,
            gives,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,
        )


def _names(key: pa.ChunkedArray, randomness: Randomness) -> pa.Array | None:
    """Names for a test's randomness; the system's takes none."""
    return pa.array(key.to_pylist(), pa.string()) if randomness.is_test else None
