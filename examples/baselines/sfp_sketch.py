"""The count mean sketch of the sequence fragment puzzle: hashes, flipped entries, and sums."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, ldexp

import numpy as np
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.udfs.noise.binomials import approximate_binomial_weights
from dphh.udfs.noise.randomness import Randomness, to_int

Cells = NDArray[np.uint16]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_TAIL = 128  # bits of a binomial draw after the first 16
# More than exp and a quotient come to, so that q is never rounded down.
_ROUNDINGS = 2.0**-48


def flip_numerator(epsilon: float) -> int:
    """q 2^64, rounded up: entries flip with a probability of at least 1 / (1 + e^(epsilon / 2))."""
    q = 1 / (1 + exp(min(epsilon / 2, 700.0)))
    numerator = ceil(ldexp(q * (1 + _ROUNDINGS), 64))
    if not 0 < numerator < 1 << 63:
        raise UsageError(f"a message's epsilon must be above 1e-12, found {epsilon!r}")
    return numerator


@dataclass(frozen=True, eq=False)
class Hashes:
    """k hash functions onto m cells by simple tabulation; tables[c][j, symbol] for character c."""

    tables: tuple[Cells, ...]

    def of(self, functions: Integers | int, keys: Integers) -> Integers:
        """Each key (a row of symbols) under its function."""
        value = np.zeros(len(keys), dtype=np.uint16)
        for table, symbol in zip(self.tables, keys.T, strict=True):
            value ^= table[functions, symbol]
        return value.astype(np.int64)


def draw_hashes(
    randomness: Randomness, functions: int, cells: int, sizes: Sequence[int], purpose: str
) -> Hashes:
    """Uniform tables, for keys whose characters take `sizes` values; `cells` a power of two."""
    return Hashes(
        tuple(
            (shorts(randomness, functions * size, purpose) & np.uint16(cells - 1)).reshape(
                functions, size
            )
            for size in sizes
        )
    )


def draw_sketch(
    randomness: Randomness,
    function: Integers,
    cell: Integers,
    shape: tuple[int, int],
    flip: int,
) -> NDArray[np.int32]:
    """How many users sent +1, by function and cell; user i drew function[i] and holds cell[i]."""
    functions, cells = shape
    in_row = np.bincount(function, minlength=functions)
    sums = np.empty(shape, dtype=np.int32)
    for users in np.unique(in_row).tolist():
        rows = np.flatnonzero(in_row == users)
        coins = draw_binomials(randomness, users, flip, len(rows) * cells)
        sums[rows] = coins.reshape(len(rows), cells)
    # Cells that users hold are drawn again; their first draw is not used.
    at, holders = np.unique(function * cells + cell, return_counts=True)
    others = in_row[at // cells] - holders
    flat = sums.reshape(-1)
    flat[at] = (
        holders - _binomials_of(randomness, holders, flip) + _binomials_of(randomness, others, flip)
    )
    return sums


def sketch_sums(hashes: Hashes, sketch: NDArray[np.int32], keys: Integers) -> Integers:
    """B(d) for each key d: +1 entries over all functions at its cells."""
    sums = np.zeros(len(keys), dtype=np.int64)
    for j, row in enumerate(sketch):
        sums += row[hashes.of(j, keys)]
    return sums


def estimate(sums: Integers, users: int, cells: int, flip: int) -> Floats:
    """f(d) from B(d): unbiased over hash functions, coins and choices of j."""
    q = ldexp(flip, -64)
    in_cells = (sums - users * q) / (1 - 2 * q)
    return np.asarray(cells / (cells - 1) * (in_cells - users / cells), dtype=np.float64)


def estimate_variance(
    users: int, others: Sequence[int], own: int, functions: int, cells: int, flip: int
) -> float:
    """Var f(d) where `own` of the users hold d and `others` count the holders of each other word.

    (m / (m-1))^2 (n q (1-q) / (1-2q)^2 + (1/m) (1 - 1/m) (sum f' + (1/k) sum f' (f' - 1))): coins;
    whether another user's word falls into d's cell; and that users of one word who drew one j do so
    together. Users of two words do not, by three-wise independence. Users not in `own` or `others`
    count as each alone with a word.
    """
    q = ldexp(flip, -64)
    together = sum(f * (f - 1) for f in others) / functions
    collisions = (users - own + together) * (1 - 1 / cells) / cells
    return (cells / (cells - 1)) ** 2 * (users * q * (1 - q) / (1 - 2 * q) ** 2 + collisions)


# Sums of coins.


@dataclass(frozen=True, eq=False)
class _Binomial:
    """Inversion. The first 16 bits of a uniform number decide, but where an entry lies among them.

    `entries` are P[X <= lowest + i] in units of 2^-144, rounded down.
    """

    lowest: int
    entries: tuple[int, ...]
    guide: NDArray[np.int32]


@lru_cache(maxsize=4096)
def _binomial(coins: int, flip: int) -> _Binomial:
    weights = sorted(approximate_binomial_weights(coins, Fraction(flip, 1 << 64)))
    total, running, entries = sum(weight for _, weight in weights), 0, []
    for _, weight in weights:
        running += weight
        entries.append((running << (16 + _TAIL)) // total)
    tops = np.array([entry >> _TAIL for entry in entries[:-1]], dtype=np.int64)
    guide = weights[0][0] + np.searchsorted(tops, np.arange(1 << 16), side="right")
    guide[tops] = -1
    return _Binomial(weights[0][0], tuple(entries), guide.astype(np.int32))


def draw_binomials(randomness: Randomness, coins: int, flip: int, count: int) -> NDArray[np.int32]:
    """`count` sums of `coins` coins that are 1 with probability flip / 2^64."""
    if not coins:
        return np.zeros(count, dtype=np.int32)
    table = _binomial(coins, flip)
    heads = shorts(randomness, count, "sfp coins")
    drawn = table.guide[heads]
    open_ones = np.flatnonzero(drawn < 0)
    tails = randomness.random_words(2 * len(open_ones), "sfp coins, further bits").reshape(-1, 2)
    for i, tail in zip(open_ones.tolist(), tails, strict=True):
        uniform = int(heads[i]) << _TAIL | to_int(tail)
        drawn[i] = table.lowest + bisect_right(table.entries, uniform)
    return drawn


def _binomials_of(randomness: Randomness, coins: Integers, flip: int) -> Integers:
    """One sum for each number of coins."""
    drawn = np.empty(len(coins), dtype=np.int64)
    for number in np.unique(coins).tolist():
        rows = np.flatnonzero(coins == number)
        drawn[rows] = draw_binomials(randomness, number, flip, len(rows))
    return drawn


def shorts(randomness: Randomness, count: int, purpose: str) -> Cells:
    """Uniform 16-bit numbers, four a word."""
    return randomness.random_words(-(-count // 4), purpose).view(np.uint16)[:count]
