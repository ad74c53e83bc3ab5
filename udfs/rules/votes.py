"""Draws votes by Bernoulli sampling: how many of the k users who would cast the same vote do so.

TrieHH samples users at every level. The number of votes for a prefix that k users hold is
Binomial(k, p), independent of all other prefixes: the same distribution as one coin for each user,
drawn after grouping instead of before. The coins are exact: p is a multiple of 2^-64, and a coin is
heads if a random word, a uniform 64-bit integer, is below p 2^64.

Two shortcuts depend on k alone. If k < theta, the votes cannot reach theta: the result is 0,
without coins. If P[Binomial(k, p) < theta] <= 2^-500, the result is theta, without coins. For each
prefix, 2^-500 bounds the distance from the exact distribution of "at least theta", which is all
that a level uses. Adding or removing a user may take a prefix over that border, from a failure
probability of at most 2^-500 / (1 - p) <= 2^-436 to 0: over 1,000 levels less than 10^-128, which
vanishes in any delta from 10^-100.
"""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal
from math import log
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.errors import UsageError
from dphh.udfs.arrays import Integers
from dphh.udfs.noise.randomness import Randomness, keys_if_needed, numbered_keys

#: The Arrow type for random words and other numbers below 2^64: Spark has no such integers.
UINT64_AS_DECIMAL = pa.decimal128(20, 0)
#: ln(2^-500): a probability of 2^-500 or less is treated as 0.
_LOG_OF_NEGLIGIBLE = -500 * log(2.0)
_COINS_AT_ONCE = 1 << 22


def users_who_surely_reach_theta(numerator: int, theta: int) -> int:
    """The least k (or a little more) with P[Binomial(k, p) < theta] <= 2^-500, p = numerator/2^64.

    Chernoff: P[X <= a] <= exp(-mu + a + a log(mu / a)) for a < mu = k p, with a = theta - 1.
    """
    p = numerator / 2.0**64
    a = theta - 1

    def surely_reaches_theta(users: int) -> bool:
        mu = users * p
        if mu <= a:
            return False
        log_bound = -mu + a + (a * log(mu / a) if a else 0.0)
        return log_bound <= _LOG_OF_NEGLIGIBLE - 1.0  # a margin far above rounding errors

    # A group of 2^62 users needs no coins; there is none.
    return bisect_left(range(1 << 62), True, theta + 1, key=surely_reaches_theta)


def draw_votes(
    randomness: Randomness,
    group_sizes: Integers,
    numerator: int,
    theta: int,
    purpose: str,
    keys: pa.Array | None = None,
) -> Integers:
    """How many users of each group vote, as far as `theta` asks; without coins if theta votes are
    impossible or sure."""
    if not 0 < numerator < 1 << 64:
        raise UsageError("a sampling rate is a multiple of 2^-64 between 0 and 1")
    votes = np.zeros(len(group_sizes), dtype=np.int64)
    sure = group_sizes >= users_who_surely_reach_theta(numerator, theta)
    votes[sure] = theta
    open_ones = np.flatnonzero(~sure & (group_sizes >= theta))
    named = None if keys is None else keys.take(pa.array(open_ones))
    votes[open_ones] = count_heads(randomness, group_sizes[open_ones], numerator, purpose, named)
    return votes


def count_heads(
    randomness: Randomness,
    group_sizes: Integers,
    numerator: int,
    purpose: str,
    keys: pa.Array | None = None,
) -> Integers:
    """How many users of each group toss heads, with one coin for each user."""
    heads = np.zeros(len(group_sizes), dtype=np.int64)
    heads_below = np.uint64(numerator)
    large = group_sizes > _COINS_AT_ONCE
    for group in np.flatnonzero(large).tolist():
        for first in range(0, int(group_sizes[group]), _COINS_AT_ONCE):
            count = min(_COINS_AT_ONCE, int(group_sizes[group]) - first)
            named = None if keys is None else numbered_keys(keys, [group], [count], first)
            heads[group] += np.count_nonzero(
                randomness.random_words(count, purpose, named) < heads_below
            )
    small = np.flatnonzero(~large & (group_sizes > 0))
    ends = np.cumsum(group_sizes[small])
    start = 0
    while start < len(small):
        # One draw is for as many groups as have _COINS_AT_ONCE users together, at most.
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _COINS_AT_ONCE, side="right"))
        groups = small[start:stop]
        sizes = group_sizes[groups]
        named = None if keys is None else numbered_keys(keys, groups, sizes)
        coins = randomness.random_words(int(sizes.sum()), purpose, named) < heads_below
        firsts = np.cumsum(sizes) - sizes
        heads[groups] = np.add.reduceat(coins, firsts, dtype=np.int64)
        start = stop
    return heads


def votes_of_rows(
    randomness: Randomness, key: Any, users: Any, numerator: Decimal, theta: int, purpose: str
) -> pa.Array:
    """`dphh_votes(key, users, numerator, theta, purpose)`: the number of votes of each row."""
    names = keys_if_needed(key, randomness, purpose)
    held = users.to_numpy()
    return pa.array(draw_votes(randomness, held, int(numerator), theta, purpose, names))


def random_words_of_rows(randomness: Randomness, key: Any, purpose: str) -> pa.Array:
    """`dphh_word(key, purpose)`: a random word for each row."""
    names = keys_if_needed(key, randomness, purpose)
    return pa.array(randomness.random_words(len(key), purpose, names)).cast(UINT64_AS_DECIMAL)
