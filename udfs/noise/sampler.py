"""Draws noise from the rounded Gaussian's table: exactly, without floats or NumPy's generator.

Inversion. Let t(k) be the table's P(noise >= k) in units of 2^-256. One bit of a random word is the
sign. Its other 63 bits, continued by three more words, are a uniform integer U < 2^255, and the
magnitude is the number of k >= 1 with U < t(k): it is at least k with probability t(k) / 2^255,
twice the one-sided tail. So noise = k has probability (t(k) - t(k+1)) / 2^256 for either sign,
and 0 has the rest, 1 - 2 t(1) / 2^256: the table's own probabilities.

The three further random words matter only if the 63 bits are too close to the leading bits of some
t(k) to decide (`RoundedGaussian.leading_bits`). They are drawn only then, which gives the same
distribution as if they were always drawn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.errors import UsageError
from dphh.udfs.arrays import Integers
from dphh.udfs.noise.randomness import Randomness, RandomWords, check_keys, to_int, uniform_int
from dphh.udfs.noise.table import TABLE_BITS, Bins, RoundedGaussian, rounded_gaussian

_DRAWS_AT_ONCE = 1 << 16  # so few that intermediate arrays stay in the processor's cache


class _Sampler:
    """Draws noise of one sigma for many random words at a time, by the entries' first 64 bits."""

    def __init__(self, table: RoundedGaussian) -> None:
        self.table = table
        self.ascending, error = table.leading_bits
        self.error = np.uint64(error)

    def noise_from(
        self, random_words: RandomWords, randomness: Randomness, purpose: str, keys: pa.Array | None
    ) -> Integers:
        """The noise that each random word gives. Draws further ones if 63 bits do not decide."""
        uniform = random_words >> np.uint64(1)
        below = np.searchsorted(self.ascending, uniform, side="right")
        magnitude = len(self.ascending) - below
        # The first entry is 0, so `below` is at least 1.
        near = np.flatnonzero(uniform - self.ascending[below - 1] <= self.error)
        if len(near):
            named = None if keys is None else keys.take(pa.array(near))
            magnitude[near] = self._settle_undecided(uniform[near], randomness, purpose, named)
        sign = (random_words & np.uint64(1)).astype(np.int64)
        noise: Integers = (magnitude ^ -sign) + sign  # negated where the sign bit is 1
        return noise

    def _settle_undecided(
        self, first_bits: RandomWords, randomness: Randomness, purpose: str, keys: pa.Array | None
    ) -> list[int]:
        """The magnitudes that the first 63 bits do not decide: compares all 255 with full entries.
        The others are drawn here."""
        count = len(first_bits)
        more = [randomness.random_words(count, f"{purpose}/word {i}", keys) for i in (2, 3, 4)]
        settled = []
        for i, first in enumerate(first_bits):
            others = to_int(np.array([words[i] for words in more]))
            uniform = int(first) << (TABLE_BITS - 64) | others
            # The magnitude is never below 0, as uniform < 2^255 < 2^256 - t(1) = survival(0).
            settled.append(self.table.largest_with_survival_above(uniform))
        return settled


@lru_cache(maxsize=8, typed=True)  # typed: 5.0 must not find the sampler of 5
def _sampler(sigma: int) -> _Sampler:
    return _Sampler(rounded_gaussian(sigma))


def draw_rounded_gaussian(
    randomness: Randomness, sigma: int, count: int, purpose: str, keys: pa.Array | None = None
) -> Integers:
    """`count` independent draws of round(N(0, sigma^2)), for an integer sigma.

    Each has exactly the table's distribution, so it is within `rounded_gaussian(sigma).distance`
    (less than 2^-231) of the rounded Gaussian in total variation.
    """
    sampler = _sampler(sigma)
    check_keys(count, keys)
    noise = np.empty(count, dtype=np.int64)
    for start in range(0, count, _DRAWS_AT_ONCE):
        stop = min(start + _DRAWS_AT_ONCE, count)
        named = None if keys is None else keys[start:stop]
        words = randomness.random_words(stop - start, purpose, named)
        noise[start:stop] = sampler.noise_from(words, randomness, purpose, named)
    return noise


def draw_noise_at_least(
    randomness: Randomness,
    sigma: int,
    least: int,
    count: int,
    purpose: str,
    below: int | None = None,
) -> Integers:
    """`count` independent draws of round(N(0, sigma^2)), given that it is at least `least`, and
    below `below` if that is given.

    Exact inversion within the table: a uniform integer between survival(below) and survival(least).
    Conditioning divides the table's distance by the probability of the condition; a result above
    2^-80 is refused.
    """
    table = rounded_gaussian(sigma)
    beyond = 0 if below is None else table.survival(below)
    whole = table.survival(least) - beyond
    if whole <= 0 or table.distance * (1 << TABLE_BITS) / whole > 2.0**-80:
        raise UsageError(
            f"noise of sigma {sigma} is in the given range with a probability too small for exact "
            "draws (below about 2^-150); use a larger sigma or a wider range"
        )
    draws = (
        table.largest_with_survival_above(beyond + uniform_int(randomness, whole, purpose))
        for _ in range(count)
    )
    return np.fromiter(draws, np.int64, count)


def noise_of_rows(
    randomness: Randomness, key: pa.ChunkedArray, sigma: pa.ChunkedArray, purpose: pa.ChunkedArray
) -> pa.Array:
    """`dphh_noise(key, sigma, purpose)`: one draw of noise for each row.

    `key` names the row and is for tests alone; a NULL key is a key like any other, lest the row
    lose its noise. `sigma`, in grid units, and `purpose` must be constant.
    """
    if not len(key):
        return pa.array([], pa.int64())
    one_sigma = _value_in_all_rows(sigma, "sigma")
    one_purpose = _value_in_all_rows(purpose, "purpose")
    return pa.array(draw_rounded_gaussian(randomness, one_sigma, len(key), one_purpose, key))


def bin_of(noisy: Any, sigma: int) -> pa.Array:
    """`dphh_bin(noisy, sigma)`: the bin of each noised weight of the forecast ladder's round 1."""
    return pa.array(Bins(sigma).bin_of(noisy.to_numpy()))


def _value_in_all_rows(column: pa.ChunkedArray, name: str) -> Any:
    """The value that all rows of a column have. With a second one, noise could differ from what was
    priced."""
    value = column[0].as_py()
    if value is None or not column.slice(1).equals(column.slice(0, len(column) - 1)):
        raise UsageError(f"the {name} of noise must be one constant and not NULL")
    return value
