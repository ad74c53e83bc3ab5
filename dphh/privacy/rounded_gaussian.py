"""The distribution of round(N(0, sigma^2)) on the integers, as a table of exact integers.

Why rounded: for an integer x, x + round(N) = round(x + N), so every guarantee of the continuous
Gaussian mechanism holds for this noise by post-processing.

What the table says. For an integer sigma >= 1 and k = 1, ..., K = 19 sigma, `tails[k]` is
P(noise >= k) = P(N >= k - 1/2) in units of 2^-256.

How it is built. Write g(c) for the normal density at the integer c. The mass of the cell
[c - 1/2, c + 1/2] is

    m(c) = integral of g(c + t) over |t| <= 1/2  =  g(c) h(c),
    h(c) = integral of exp(-t^2 / 2 sigma^2) cosh(c t / sigma^2)  =  sum over j >= 0 of b_j c^(2j),
    b_j  = M_j / (sigma^(4j) (2j)!),   M_j = integral of t^(2j) exp(-t^2 / 2 sigma^2)
         = 4^-j  sum over i >= 0 of (-1)^i / (i! (8 sigma^2)^i (2j + 2i + 1)),

and the density steps by g(c+1) = g(c) r(c), r(c+1) = r(c) q, with r(0) = exp(-1 / 2 sigma^2) and
q = exp(-1 / sigma^2). All of it runs on Python integers in units of 2^-320. No float takes part.

How far it can be wrong. Every constant is rounded down, every product is rounded down, and every
term of h is positive, so leaving out its last terms, or its last bits where g has no more to be
multiplied with, lowers it. Hence each computed mass is at most the true one. True masses sum to 1.
So

    missing = 1 - (m(0) + 2 (m(1) + ... + m(K)))        (computed masses)

is never negative, and is at least the sum of all errors, of what lies beyond the table included.
It is not estimated: it is computed with the table, exactly, and a table that misses 2^-256 or more
is never handed out. (Rounding misses 2^-283 or less, as measured, and what lies beyond K, which
is 2 P(N > 19 sigma + 1/2), comes to less than 2^-264.) With each tail rounded to 2^-256, it proves

    0 <= P(noise >= k) - tails[k] 2^-256 < 2 * 2^-256         for every k >= 1,

and for noise drawn with exactly the tabulated probabilities, a distance in total variation from
round(N) of half the sum of |error(k) - error(k+1)| over both signs and 0, at most
(2K + 3) 2^-256 <= 41 sigma 2^-256 < sigma 2^-250. That is `distance`: 2^-232 at the largest sigma.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, count
from math import factorial, floor, isqrt, ldexp
from operator import neg

from dphh.errors import DphhError, UsageError

BITS = 256  # the table's unit is 2^-BITS
ONE = 1 << BITS
REACH = 19  # the table ends at REACH sigma, past which less than 2^-264 lies
LARGEST_SIGMA = 2**18
_WORK = BITS + 64  # the unit of the computation is 2^-_WORK
_CELLS = 1024  # at a time, of the same series
_GUARD = 16  # bits of h past the last one of g
_SLACK = 2  # a tail is at least its entry and less than its entry + _SLACK


@dataclass(frozen=True, eq=False)
class RoundedGaussian:
    """round(N(0, sigma^2)): tails of proven precision, and thresholds from them.

    `tails[k]`, for 0 <= k <= 19 sigma, is P(noise >= k) in units of 2^-256, rounded down for
    k >= 1 (and `tails[0]` is one minus `tails[1]`, by symmetry). They never increase. `distance`
    bounds, per draw, the total variation distance from the exact distribution of noise that is
    drawn with exactly these probabilities.
    """

    sigma: int
    tails: tuple[int, ...] = field(repr=False)
    distance: float

    @property
    def reach(self) -> int:
        """The largest magnitude of the table."""
        return len(self.tails) - 1

    def survival(self, k: int) -> int:
        """P(noise >= k) of the tabulated distribution, in units of 2^-256, for every integer k."""
        if k < 1:
            return ONE - self.survival(1 - k)
        return self.tails[k] if k <= self.reach else 0

    def largest_with_survival_above(self, level: int) -> int:
        """The largest k with survival(k) > level, for 0 <= level < 2^256: inversion."""
        if level < self.tails[1]:
            return bisect_left(self.tails, -level, lo=1, key=neg) - 1
        # survival(k) = 2^256 - tails[1 - k] here: look for the first j = 1 - k that is low enough.
        return 1 - bisect_left(self.tails, level - ONE + 1, lo=1, key=neg)

    def tail(self, k: int) -> Fraction:
        """An upper bound on P(noise >= k), for every integer k."""
        if k < 1:
            return 1 - self.tail_lower(1 - k)
        return Fraction(self.survival(k) + _SLACK, ONE)

    def tail_lower(self, k: int) -> Fraction:
        """A lower bound on P(noise >= k), for every integer k."""
        if k < 1:
            return 1 - self.tail(1 - k)
        return Fraction(self.survival(k), ONE)

    def smallest_with_tail_at_most(self, q: Fraction) -> int:
        """The smallest k that surely has P(noise >= k) <= q: a threshold that noise passes so."""
        if not self.tail(self.reach + 1) <= q < 1:
            raise UsageError(
                f"a tail probability must be at least 2^-{BITS - 1} and below 1, not {float(q)!r}"
            )
        units = floor(q * ONE)  # as good as q: `tail` is a whole number of them

        def low_enough(k: int) -> bool:  # tail(k) <= q
            if k < 1:
                return ONE - self.survival(1 - k) <= units
            return self.survival(k) + _SLACK <= units

        ks = range(-self.reach, self.reach + 2)
        return ks[bisect_left(ks, True, key=low_enough)]

    def largest_with_tail_at_least(self, q: Fraction) -> int:
        """The largest k that surely has P(noise >= k) >= q: what noise reaches so often."""
        if not 0 < q <= self.tail_lower(-self.reach):
            raise UsageError(
                f"a tail probability must be above 0 and below 1 - 2^-{BITS - 1}, not {float(q)!r}"
            )
        ks = range(-self.reach, self.reach + 2)
        return ks[bisect_left(ks, True, key=lambda k: self.tail_lower(k) < q) - 1]


@lru_cache(maxsize=8, typed=True)  # typed: 5.0 and True must not find the table of 5 and 1
def rounded_gaussian(sigma: int) -> RoundedGaussian:
    """The table for an integer sigma from 1 to 2^18 grid units; built once per process.

    It takes about 2 microseconds and 60 bytes for each of its 19 sigma entries.
    """
    if isinstance(sigma, bool) or not isinstance(sigma, int):
        raise UsageError(f"sigma must be an integer number of grid units, not {sigma!r}")
    if sigma < 1:
        raise UsageError(f"sigma must be at least 1 grid unit, not {sigma}; use a finer grid")
    if sigma > LARGEST_SIGMA:
        raise UsageError(f"sigma {sigma}: table too large; use a grid with sigma <= 2^18 units")

    centre, *right = _masses(sigma)
    missing = (1 << _WORK) - centre - 2 * sum(right)
    if not 0 <= missing < 1 << (_WORK - BITS):
        raise DphhError("the noise table failed its own check; nothing was drawn from it")
    tails = [total >> (_WORK - BITS) for total in accumulate(reversed(right))]
    tails.append(ONE - tails[-1])
    return RoundedGaussian(sigma, tuple(reversed(tails)), ldexp(sigma, -250))


def _masses(sigma: int) -> Iterator[int]:
    """Lower bounds on the masses of the cells 0, 1, ..., 19 sigma, in units of 2^-_WORK."""
    last = REACH * sigma
    scale = (last * last).bit_length()  # h is summed as a polynomial in c^2 / 2^scale < 1
    series = _cosh_series(sigma, scale)
    density = isqrt((1 << 3 * _WORK) // (2 * _pi_above() * sigma * sigma))
    ratio = _exp_minus(Fraction(1, 2 * sigma * sigma))
    shrink = _exp_minus(Fraction(1, sigma * sigma))
    for start in range(0, last + 1, _CELLS):
        stop = min(start + _CELLS, last + 1)
        left_out = max(0, _WORK - density.bit_length() - _GUARD)
        near = _that_matter(series, stop * stop, scale, left_out)
        for c in range(start, stop):
            square = c * c
            h = 0
            for coefficient in near:
                h = (h * square >> scale) + coefficient
            yield density * h >> _WORK - left_out
            density = density * ratio >> _WORK
            ratio = ratio * shrink >> _WORK


def _that_matter(series: list[int], square: int, scale: int, left_out: int) -> list[int]:
    """The series without its last bits, and without the terms that come to nothing there."""
    near = [coefficient >> left_out for coefficient in series]
    for j in range(len(near) - 1, 0, -1):
        if near[0] * square**j >> scale * j:
            break
        del near[0]
    return near


def _cosh_series(sigma: int, scale: int) -> list[int]:
    """b_j 2^(scale j), rounded down, from the last j that matters to j = 0."""
    step = Fraction(1 << scale, 4 * sigma**4)

    def moment(j: int) -> int:  # 4^j M_j
        return _alternating(
            lambda i: Fraction(1, factorial(i) * (8 * sigma * sigma) ** i * (2 * j + 2 * i + 1))
        )

    series: list[int] = []
    for j in count():
        series.append(int(step**j / factorial(2 * j) * moment(j)))
        if series[-1] == 0:
            return series[::-1]
    raise AssertionError  # for type checkers: count() does not end


def _exp_minus(x: Fraction) -> int:
    """exp(-x) for 0 < x <= 1, rounded down."""
    return _alternating(lambda i: x**i / factorial(i))


@lru_cache(maxsize=1)
def _pi_above() -> int:
    """pi, rounded up, by Machin: 16 arctan(1/5) - 4 arctan(1/239)."""
    fifth = _alternating(lambda i: Fraction(1, (2 * i + 1) * 5 ** (2 * i + 1)))
    other = _alternating(lambda i: Fraction(1, (2 * i + 1) * 239 ** (2 * i + 1)))
    return 16 * (fifth + 2) - 4 * other


def _alternating(term: Callable[[int], Fraction]) -> int:
    """term(0) - term(1) + term(2) - ... in units of 2^-_WORK, low by less than 2, never high.

    The terms decrease to 0, so a sum that stops after a subtraction is low, by less than the
    first term that is left out.
    """
    total = Fraction(0)
    for i in count(0, 2):
        total += term(i) - term(i + 1)
        if term(i + 2) < Fraction(1, 1 << (_WORK + 32)):
            break
    return int(total * (1 << _WORK))
