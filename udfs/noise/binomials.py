"""Exact binomial draws of any size, such as how many absent grams fall into each bin of noise.

Narrow binomials are drawn by `draw_binomial`, from a table. Wide ones are drawn by rejection.
Let f be the probabilities, m the mode, v = n p (1 - p). By Chebyshev's inequality two thirds of the
probability lie within sqrt(3 v) of the mean, on at most 2 sqrt(3 v) + 1 integers, so f(m) >= 1 / w
for every w >= 3 sqrt(3 v) + 3/2. f is log-concave; hence (Devroye 1987, "A simple generator for
discrete log-concave distributions") f(m + k) <= f(m) min(1, exp(1 - |k| / w)). Take w a power of 2.
Propose a side, a block i = 0, 1, ... of w integers with probability 2^-(i + 1), and an integer in
it; accept with probability f(m + k) / f(m) 2^(i - 1), which is at most 1. Blocks end at 32, some
160 standard deviations away, beyond which there is less than 2^-2000 (Bernstein, as v > 256).

No decision relies on a rounded float: if the float of the logarithm is within its error margin of
the uniform number's, 256 bits of the uniform number are compared with 80 digits, which are right to
10^-50. So a draw's distribution is within 2^-150 of the binomial.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import factorial, isqrt, log

import numpy as np

from dphh.errors import UsageError
from dphh.udfs.arrays import Integers
from dphh.udfs.noise.randomness import Randomness, RandomWords, to_int, uniform_int

#: The weight of the binomial's mode, its likeliest number, is 2^MODE_BITS.
MODE_BITS = 256
#: A binomial of at most this variance is drawn from a table, others by rejection.
_LARGEST_TABLED_VARIANCE = 256
_PROPOSALS_AT_ONCE = 64
_EXACT_FACTORIALS_BELOW = 256  # those of larger numbers are from Stirling's series
#: The Bernoulli numbers B_2, B_4, ..., B_28.
_BERNOULLI_NUMBERS = (
    (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510),
    (43867, 798), (-174611, 330), (854513, 138), (-236364091, 2730), (8553103, 6),
    (-23749461029, 870),
)  # fmt: skip
#: B_2j / (2j (2j - 1)) for j = 1, 2, ...: Stirling's series, whose error is below its next term.
_STIRLING_COEFFICIENTS = tuple(
    Fraction(*number) / (2 * j * (2 * j - 1)) for j, number in enumerate(_BERNOULLI_NUMBERS, 1)
)


def draw_binomial_of_any_size(randomness: Randomness, n: int, p: Fraction, purpose: str) -> int:
    """One draw of Binomial(n, p) for n up to 2^62, within 2^-150 of exact in total variation."""
    # In integers, as fractions would look for common divisors again and again.
    variance_in_squares = n * p.numerator * (p.denominator - p.numerator)
    if variance_in_squares <= _LARGEST_TABLED_VARIANCE * p.denominator**2:
        return draw_binomial(randomness, n, p, purpose)
    mode = (n + 1) * p.numerator // p.denominator
    variance = variance_in_squares // p.denominator**2 + 1
    bits = (3 * (isqrt(3 * variance) + 1) + 1).bit_length()
    attempt = 0
    while True:
        attempt += 1
        words = randomness.random_words(3 * _PROPOSALS_AT_ONCE, f"{purpose}/{attempt}").reshape(
            3, _PROPOSALS_AT_ONCE
        )
        block = _trailing_zeros(words[1])
        offset = (words[0] >> np.uint64(64 - bits)).astype(np.int64) + (block << bits)
        k = np.where(words[0] & np.uint64(1), offset, -1 - offset)
        there = np.flatnonzero((block < 32) & (k >= -mode) & (k <= n - mode))
        verdicts = _verdicts_by_floats(n, p, mode, k[there], block[there], words[2][there])
        for at, verdict in zip(there.tolist(), verdicts.tolist(), strict=True):
            accepted = verdict > 0
            if verdict == 0:
                more = randomness.random_words(3, f"{purpose}/{attempt}/{at}")
                uniform = (int(words[2][at]) << 192) | to_int(more)
                accepted = _accepts_by_digits(n, p, mode, int(k[at]), int(block[at]), uniform)
            if accepted:
                return mode + int(k[at])


def draw_binomial(randomness: Randomness, n: int, p: Fraction, purpose: str) -> int:
    """One draw of Binomial(n, p), for n of any size and a variance up to 2^30.

    Inversion over integer weights that approximate the probabilities: 2^256 at the mode, and from
    there outwards by the ratios of neighbours, rounded down, until a weight is 0.

    Error bound. Away from the mode the ratios are at most 1, so the weight j steps away is low by
    at most j; over the N weights of a side these errors sum to at most N^2. Where a side stops, the
    true weight is at most N, and each further one is smaller by a factor of at most the side's mean
    ratio, (N 2^-256)^(1/N) < exp(-160 / N): together they are at most N^2 / 160 + N.
    Lowering weights of total W by D moves the distribution by at most D / W, and W >= 2^256. So
    the distance in total variation is below 2 (N^2 + N^2 / 160 + N) 2^-256. The cap on the
    variance keeps N below 2^21 (by Bernstein's inequality: at 20 standard deviations and a few
    hundred steps, weights are below 1), and the distance below 2^-212.
    """
    if n < 0 or not 0 <= p.numerator <= p.denominator:
        raise UsageError("a binomial needs n >= 0 trials and a probability from 0 to 1")
    if n * p.numerator * (p.denominator - p.numerator) > p.denominator**2 << 30:
        raise UsageError("a binomial with a variance above 2^30 is too wide to tabulate")
    if p.denominator == 1:
        return n * p.numerator
    values: tuple[int, ...]
    values, weights = zip(*approximate_binomial_weights(n, p), strict=True)
    cumulative = [*accumulate(weights)]
    return values[bisect_right(cumulative, uniform_int(randomness, cumulative[-1], purpose))]


def approximate_binomial_weights(n: int, p: Fraction) -> Iterator[tuple[int, int]]:
    """Pairs (k, integer weight) for Binomial(n, p), 0 < p < 1: from the mode upwards, then from
    below the mode downwards.

    A weight is that of the k before it, times the ratio of their probabilities, rounded down. So j
    steps from the mode it is too low by at most j. Both tails are left out where it is 0.
    """
    success, failure = p.numerator, p.denominator - p.numerator
    mode = (n + 1) * success // p.denominator  # the mode is at most n, since p < 1
    k, weight = mode, 1 << MODE_BITS
    while weight:
        yield k, weight
        weight = weight * ((n - k) * success) // ((k + 1) * failure)
        k += 1
    k, weight = mode, 1 << MODE_BITS
    while True:
        weight = weight * (k * failure) // ((n - k + 1) * success)
        k -= 1
        if not weight:
            return
        yield k, weight


def draw_multinomial(
    randomness: Randomness, n: int, proportions: tuple[int, ...], purpose: str
) -> list[int]:
    """Draws how many of `n` fall into each bin, with probabilities in these `proportions`."""
    left, drawn = n, []
    for index, p in enumerate(_of_what_is_left(proportions)):
        drawn.append(
            draw_binomial_of_any_size(randomness, left, p, f"{purpose}/{index}") if left else 0
        )
        left -= drawn[-1]
    return drawn


@lru_cache(maxsize=256)
def _of_what_is_left(proportions: tuple[int, ...]) -> tuple[Fraction, ...]:
    """The probability of each bin for what has fallen into no earlier one."""
    totals = accumulate(reversed(proportions))
    pairs = zip(proportions, reversed([*totals]), strict=True)
    return tuple(Fraction(each, total) if each else Fraction(0) for each, total in pairs)


def _verdicts_by_floats(
    n: int, p: Fraction, mode: int, k: Integers, block: Integers, uniform_tops: RandomWords
) -> Integers:
    """For each proposal mode + k: 1 if it is surely accepted, -1 if it is surely rejected, 0 if
    floats cannot tell. `uniform_tops` are the first 64 bits of the uniform numbers."""
    up, down = (mode + k).astype(np.float64), (n - mode - k).astype(np.float64)
    m, rest, step = float(mode), float(n - mode), k.astype(np.float64)
    odds = log(p.numerator) - log(p.denominator - p.numerator)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = (
            step * (odds - np.log(up) + np.log(down))
            - (m + 0.5) * np.log1p(step / m)
            - (rest + 0.5) * np.log1p(-step / rest)
            - (1 / up - 1 / m + 1 / down - 1 / rest) / 12
            + (block - 1) * log(2)
        )
        uniform = np.log(uniform_tops.astype(np.float64)) - 64 * log(2)
        size = np.abs(step) * (abs(odds) + np.abs(np.log(up)) + np.abs(np.log(down)) + 4)
        margin = 1e-6 + 2.0**-45 * size
        clear = (np.minimum(up, down) >= 32) & (uniform_tops >> np.uint64(32) > 0)
        verdict = np.where(uniform < logarithm, 1, -1)
        return np.where(clear & (np.abs(uniform - logarithm) > margin), verdict, 0)


def _accepts_by_digits(n: int, p: Fraction, mode: int, k: int, block: int, uniform: int) -> bool:
    """Whether a proposal mode + k is accepted; `uniform` has 256 bits of the uniform number."""
    with localcontext(Context(prec=80)):
        logarithm = (
            _log_factorial(mode)
            + _log_factorial(n - mode)
            - _log_factorial(mode + k)
            - _log_factorial(n - mode - k)
            + k * (Decimal(p.numerator).ln() - Decimal(p.denominator - p.numerator).ln())
            + (block - 1) * Decimal(2).ln()
        )
        return (Decimal(2 * uniform + 1) / (1 << 257)).ln() < logarithm


def _log_factorial(x: int) -> Decimal:
    if x < _EXACT_FACTORIALS_BELOW:
        return Decimal(factorial(x)).ln()
    exact = Decimal(x)
    series = sum(
        Decimal(c.numerator) / c.denominator / exact ** (2 * j - 1)
        for j, c in enumerate(_STIRLING_COEFFICIENTS, start=1)
    )
    # ln sqrt(2 pi) cancels in `_accepts_by_digits`, unless a factorial there is exact.
    return (exact + Decimal("0.5")) * exact.ln() - exact + series + _HALF_LOG_TWO_PI


#: ln sqrt(2 pi) to 100 digits.
_HALF_LOG_TWO_PI = Decimal(
    "0.91893853320467274178032973640561763986139747363778341281715154048276569592726039769474329863595419762"
)


def _trailing_zeros(random_words: RandomWords) -> Integers:
    """The number of zero bits at the end of each random word; 64 for a word of 0."""
    lowest = random_words & (~random_words + np.uint64(1))
    return np.where(lowest == 0, 64, np.log2(np.maximum(lowest, 1).astype(np.float64))).astype(
        np.int64
    )
