"""The distribution of round(N(0, sigma^2)) on the integers, in exact integers.

Why rounded: for an integer x, x + round(N) = round(x + N), so every guarantee of the continuous
Gaussian mechanism holds for this noise by post-processing.

The table. For an integer sigma >= 1 and k = 1, ..., K = 19 sigma, `survival(k)` is
P(noise >= k) = P(N >= k - 1/2) in units of 2^-256.

Construction. The line is divided into stretches of 2^w integers, where s = sigma / 2^w is at least
32 and below 64: about a thousand of them for any sigma. From here on a stretch has length 1, N has
the standard deviation s, and g is its density. The probability of the stretch [c - 1/2, c + 1/2] is

    m(c) = integral of g(c + t) over |t| <= 1/2  =  g(c) h(c),
    h(c) = integral of exp(-t^2 / 2 s^2) cosh(c t / s^2)  =  sum over j >= 0 of b_j c^(2j),
    b_j  = M_j / (s^(4j) (2j)!),   M_j = integral of t^(2j) exp(-t^2 / 2 s^2)
         = 4^-j  sum over i >= 0 of (-1)^i / (i! (8 s^2)^i (2j + 2i + 1)),

and the density steps by g(c+1) = g(c) r(c), r(c+1) = r(c) q, with r(0) = exp(-1 / 2 s^2) and
q = exp(-1 / s^2). Within a stretch, at c + v/2 with |v| <= 1, an entry is

    P(N >= c + v/2) = m(c+1) + m(c+2) + ... + G(1) - G(v),
    G(v) = integral of g(c + t) from 0 to v/2  =  sum over n >= 0 of a_n v^(n+1) / (2 (n+1)),
    a_0  = g(c),   a_(n+1) = -(2 c a_n + a_(n-1)) / (4 s^2 (n+1)),

which is Taylor's series, by g'(x) = -x g(x) / s^2. Entries are computed on demand, on Python
integers in units of 2^-320, without floats.

Error bound. First the m(c). Every constant and every product is rounded down, and every term of h
is positive, so dropping its last terms, or the last bits that a small g does not need, lowers it.
Hence each computed m(c) is at most the true one. The true ones sum to 1. So

    missing = 1 - (m(0) + 2 (m(1) + m(2) + ...))        (computed)

is never negative, and is at least the sum of all errors, including the probability beyond the last
stretch. It is computed exactly together with the table, and a table that misses 2^-256 or more is
refused. (The probability beyond, 2 P(N > 19 sigma), is less than 2^-264, and rounding misses far
less.) So the sums m(c+1) + ... are low by less than 2^-257.

Then the series, in units of 2^-320. r is low by less than 3c + 2 at c (2 at r(0) and q, 1 for
rounding), so g by less than 2 + 3 (1 + 2 + ... + c) < 2^22, since c <= 19 * 64 + 1. In the step
from a_n to a_(n+1) the factors 2c / 4s^2 <= 0.3 and 1 / 4s^2 <= 2^-12 reduce errors and rounding
adds 1, and an error of a_n counts 1 / (2 (n+1)) in G. g is more than 2^50 everywhere, so the a_n
have relative errors of 2^-28, plus 2. The series ends when two consecutive computed terms are at
most 1; the true ones are then at most 3.1, and all further ones sum to less than 2. So the error of
G is less than 0.6 * 2^22 + 200 < 2^22, and that of G(1) - G(v) less than 2^23, in either direction.
An entry is lowered by 2^23 before it is rounded down to 2^-256. Together

    0 <= P(noise >= k) - survival(k) 2^-256 < 2 * 2^-256         for every k >= 1,

and entries never increase, because true neighbours are more than 2^-281 apart and the errors of
their difference are below 2^-294. For noise with exactly the tabulated probabilities this bounds
the distance in total variation from round(N), which is half the sum of |error(k) - error(k+1)| over
both signs and 0, by (2K + 3) 2^-256 <= 41 sigma 2^-256 < sigma 2^-250. That is `distance`: 2^-232
at the largest sigma.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import accumulate, count, islice, pairwise, takewhile, zip_longest
from math import ceil, factorial, floor, inf, isqrt, ldexp

import numpy as np
from numpy.typing import NDArray

from dphh.errors import DphhError, UsageError
from dphh.udfs.arrays import Floats, Integers

TABLE_BITS = 256  # the table's probabilities are in units of 2^-TABLE_BITS
TABLE_ONE = 1 << TABLE_BITS  # the probability 1 in the table's units
REACH_IN_SIGMAS = 19  # the table ends at 19 sigma; the probability beyond is less than 2^-264
LARGEST_TABLE_SIGMA = 2**18  # the largest sigma of a table, in grid units
_WORKING_BITS = TABLE_BITS + 64  # entries are computed in units of 2^-_WORKING_BITS
# Above pi, by a few units of 2^-_WORKING_BITS.
_PI_ROUNDED_UP = 0x3243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89452821E638D01398
_LOG2_STRETCHES_OF_SIGMA = 6  # sigma is from 2^5 to 2^6 stretches long, 2^6 excluded
_GUARD_BITS = 16  # the series h has so many more bits than the density g
_SERIES_ERROR = 1 << 23  # a bound on the error of an entry's series, in units of the computation
_TAIL_SLACK = 2  # a tail is at least its entry and less than its entry + _TAIL_SLACK
_ENTRIES_AT_ONCE = 1 << 14  # the first 64 bits of so many entries fit the processor's cache
_LEADING_TERMS = 14  # the first 64 bits of an entry need so many terms of the series
_LEADING_GUARD_BITS = 4  # the terms for the first 64 bits have so many bits more
#: The lower end of each bin of round 1's noised weights, in sigmas of that round.
BIN_STARTS_IN_SIGMAS = np.r_[-inf, np.arange(-1, 6.01, 0.5), 7, 8, 10, 12 * 1.5 ** np.arange(8)]


@dataclass(frozen=True, eq=False)
class RoundedGaussian:
    """The noise round(N(0, sigma^2)): its tails with proven bounds, and thresholds from them.

    `distance` bounds the total variation distance, per draw, between noise with exactly the
    probabilities of `survival` and the exact distribution.
    """

    sigma: int
    #: For each stretch: the density at its centre, and the probability beyond it, both in units of
    #: 2^-_WORKING_BITS.
    densities: tuple[int, ...] = field(repr=False)
    beyond: tuple[int, ...] = field(repr=False)
    distance: float
    #: For each stretch that was needed so far: P(N >= c) for its centre c, and the terms of the
    #: series G, the last one first.
    _series: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict, repr=False)

    @property
    def reach(self) -> int:
        """The largest magnitude of noise in the table."""
        return REACH_IN_SIGMAS * self.sigma

    def survival(self, k: int) -> int:
        """P(noise >= k) of the tabulated distribution, in units of 2^-256, for every integer k.

        Rounded down for k >= 1; the others follow by symmetry. It never increases with k.
        """
        if k < 1:
            return TABLE_ONE - self.survival(1 - k)
        if k > self.reach:
            return 0
        width = _log2_stretch_length(self.sigma)
        if width < 0:
            stretch, place, width = (2 * k - 1) << (-width - 1), 0, 0
        else:
            stretch = (2 * k - 1 + (1 << width)) >> (width + 1)
            place = 2 * k - 1 - (stretch << (width + 1))  # v 2^w, with v of the module's docstring
        if stretch not in self._series:
            terms = tuple(_integral_terms(self.sigma, stretch, self.densities[stretch]))
            self._series[stretch] = self.beyond[stretch] + sum(terms), terms[::-1]
        from_centre, reversed_terms = self._series[stretch]
        integral = 0
        for term in reversed_terms:
            integral = (integral + term) * place >> width
        return max(from_centre - integral - _SERIES_ERROR, 0) >> (_WORKING_BITS - TABLE_BITS)

    @cached_property
    def leading_bits(self) -> tuple[NDArray[np.uint64], int]:
        """Lower bounds on the first 64 bits of the entries k = n, ..., 2, 1, ascending, and a bound
        on their error. The first 64 bits of entry n, and of all beyond it, are 0."""
        width = _log2_stretch_length(self.sigma)
        if width < 1:
            first = takewhile(bool, (self.survival(k) >> (TABLE_BITS - 64) for k in count(1)))
            return np.array([*first, 0], dtype=np.uint64)[::-1], 0
        # The series in units of 2^-68: 14 terms omit less than 8 of G(1) and of G(v), and each term
        # is low by less than 1; the steps `(integral >> w) * place` have errors below 2^w. So an
        # entry's error is below (14 (2^w + 1) + 16) / 16 + 1 < 2^w + 4 units of 2^-64. No step
        # reaches 2^62.
        wrong = (1 << width) + 4
        there = [at for at, beyond in enumerate(self.beyond) if beyond >> (_WORKING_BITS - 64)]
        stretches = range(len(there) + 1)
        places = np.arange(1 - (1 << width), 1 << width, 2)
        parts = []
        many = max(_ENTRIES_AT_ONCE >> width, 1)
        for start in stretches[::many]:
            centres, block = [], []
            for stretch in stretches[start : start + many]:
                terms = _integral_terms(self.sigma, stretch, self.densities[stretch])
                needed = [*islice(terms, _LEADING_TERMS)]
                centres.append((self.beyond[stretch] + sum(needed) >> (_WORKING_BITS - 64)) - wrong)
                block.append(
                    [term >> (_WORKING_BITS - 64 - _LEADING_GUARD_BITS) for term in needed]
                )
            integral = np.zeros((len(block), len(places)), dtype=np.int64)
            for column in reversed([*zip_longest(*block, fillvalue=0)]):
                integral += np.array(column, dtype=np.int64)[:, np.newaxis]
                integral >>= width
                integral *= places
            integral >>= _LEADING_GUARD_BITS
            parts.append((np.array(centres, dtype=np.int64)[:, np.newaxis] - integral).ravel())
        surely = np.concatenate(parts)[1 << (width - 1) :]  # entries from k = 1 on
        surely = np.minimum.accumulate(np.maximum(surely, 0))
        return np.ascontiguousarray(surely[::-1]).view(np.uint64), 2 * wrong + 2

    def largest_with_survival_above(self, units: int) -> int:
        """The largest k with survival(k) > units, for 0 <= units < 2^256. For a uniformly random
        `units` it is one draw of the noise (inversion)."""
        if units < self.survival(1):
            return self._least_with_survival_at_most(units) - 1
        # Here k < 1, and survival(k) = 2^256 - survival(1 - k).
        return 1 - self._least_with_survival_at_most(TABLE_ONE - 1 - units)

    def _least_with_survival_at_most(self, units: int) -> int:
        """The least k >= 1 with survival(k) <= units, by the entries' first 64 bits and a few full
        entries."""
        surely, more = self.leading_bits
        top = units >> (TABLE_BITS - 64)
        above = len(surely) - int(np.searchsorted(surely, np.uint64(top), side="right"))
        below = len(surely) - int(np.searchsorted(surely, np.uint64(max(top - more, 0)), "left"))
        ks = range(above + 1, below + 1 if top > more else self.reach + 1)
        return above + 1 + bisect_left(ks, True, key=lambda k: self.survival(k) <= units)

    def tail_upper_bound(self, k: int) -> Fraction:
        """An upper bound on P(noise >= k), for every integer k."""
        return Fraction(self.tail_upper_bound_in_units(k), TABLE_ONE)

    def tail_upper_bound_in_units(self, k: int) -> int:
        """`tail_upper_bound(k)` in units of 2^-256."""
        if k < 1:
            return TABLE_ONE - self.survival(1 - k)
        return self.survival(k) + _TAIL_SLACK

    def tail_lower_bound(self, k: int) -> Fraction:
        """A lower bound on P(noise >= k), for every integer k."""
        if k < 1:
            return 1 - self.tail_upper_bound(1 - k)
        return Fraction(self.survival(k), TABLE_ONE)

    def smallest_with_tail_at_most(self, q: Fraction) -> int:
        """The smallest k with a proven P(noise >= k) <= q."""
        if not self.tail_upper_bound(self.reach + 1) <= q < 1:
            raise UsageError(
                f"a tail probability must be at least 2^-{TABLE_BITS - 1} and below 1, "
                f"not {float(q)!r}"
            )
        units = floor(q * TABLE_ONE)  # rounding changes nothing: tails are whole numbers of units
        ks = range(-self.reach, self.reach + 2)
        return ks[bisect_left(ks, True, key=lambda k: self.tail_upper_bound_in_units(k) <= units)]

    def largest_with_tail_at_least(self, q: Fraction) -> int:
        """The largest k with a proven P(noise >= k) >= q."""
        if not 0 < q <= self.tail_lower_bound(-self.reach):
            raise UsageError(
                f"a tail probability must be above 0 and below 1 - 2^-{TABLE_BITS - 1}, "
                f"not {float(q)!r}"
            )
        ks = range(-self.reach, self.reach + 2)
        return ks[bisect_left(ks, True, key=lambda k: self.tail_lower_bound(k) < q) - 1]


@lru_cache(maxsize=32, typed=True)  # typed: 5.0 and True must not find the table of 5 and 1
def rounded_gaussian(sigma: int) -> RoundedGaussian:
    """The noise's table for an integer sigma from 1 to 2^18 grid units; built once per process.

    Building takes about 5 ms; an entry takes 10 to 40 microseconds on demand.
    """
    if isinstance(sigma, bool) or not isinstance(sigma, int):
        raise UsageError(f"sigma must be an integer number of grid units, not {sigma!r}")
    if sigma < 1:
        raise UsageError(f"sigma must be at least 1 grid unit, not {sigma}; use a finer grid")
    if sigma > LARGEST_TABLE_SIGMA:
        raise UsageError(f"sigma must be at most 2^18 grid units, not {sigma}; use a coarser grid")

    stretches = _probabilities_and_densities_of_stretches(sigma)
    probabilities, densities = zip(*stretches, strict=True)
    missing = (1 << _WORKING_BITS) - probabilities[0] - 2 * sum(probabilities[1:])
    if not 0 <= missing < 1 << (_WORKING_BITS - TABLE_BITS):
        raise DphhError(
            "the noise table failed its own check, and nothing was drawn from it; please report "
            "this defect"
        )
    beyond = accumulate(reversed(probabilities[1:]), initial=0)
    return RoundedGaussian(sigma, densities, tuple(beyond)[::-1], ldexp(sigma, -250))


def _log2_stretch_length(sigma: int) -> int:
    """w: a stretch is 2^w integers long, which is less than one if w is negative."""
    return sigma.bit_length() - _LOG2_STRETCHES_OF_SIGMA


def _sigma_in_stretches(sigma: int) -> Fraction:
    """s of the module: the standard deviation, with a stretch as the unit of length."""
    return sigma / Fraction(2) ** _log2_stretch_length(sigma)


def _probabilities_and_densities_of_stretches(sigma: int) -> Iterator[tuple[int, int]]:
    """For the stretches 0, 1, ..., up to the first beyond 19 sigma: the stretch's probability and
    the density at its centre, both rounded down."""
    s = _sigma_in_stretches(sigma)
    last = floor(REACH_IN_SIGMAS * s) + 1
    scale = (last * last).bit_length()  # h is a polynomial in c^2 / 2^scale, which is below 1
    series = _cosh_series(s, scale)
    density = isqrt(
        (1 << 3 * _WORKING_BITS) * s.denominator**2 // (2 * _PI_ROUNDED_UP * s.numerator**2)
    )
    ratio = _exp_of_minus(1 / (2 * s * s))
    shrink = _exp_of_minus(1 / (s * s))
    for c in range(last + 1):
        square = c * c
        left_out = max(0, _WORKING_BITS - density.bit_length() - _GUARD_BITS)
        h = 0
        for coefficient in _significant_coefficients(series, square, scale, left_out):
            h = (h * square >> scale) + coefficient
        yield density * h >> _WORKING_BITS - left_out, density
        density = density * ratio >> _WORKING_BITS
        ratio = ratio * shrink >> _WORKING_BITS


def _integral_terms(sigma: int, stretch: int, density: int) -> Iterator[int]:
    """The terms a_n / (2 (n+1)) of the series G, an integral of the density within a stretch, from
    n = 0 to the last significant one."""
    fourfold = 4 * _sigma_in_stretches(sigma) ** 2
    times, over = fourfold.denominator, fourfold.numerator
    before, term = 0, density
    for n in count(1):
        yield term // (2 * n)
        before, term = term, -(2 * stretch * term + before) * times // (over * n)
        if abs(before) <= 1 >= abs(term):
            return


def _significant_coefficients(
    series: list[int], square: int, scale: int, bits_left_out: int
) -> list[int]:
    """The coefficients of h without their last bits; those whose terms are then 0 are left out."""
    near = [coefficient >> bits_left_out for coefficient in series]
    for j in range(len(near) - 1, 0, -1):
        if near[0] * square**j >> scale * j:
            break
        del near[0]
    return near


def _cosh_series(s: Fraction, scale: int) -> list[int]:
    """The coefficients of the series h: b_j 2^(scale j), rounded down, from the last significant j
    to j = 0."""
    step = (1 << scale) / (4 * s**4)

    @cache
    def moment_coefficient(i: int) -> Fraction:
        return 1 / (factorial(i) * (8 * s * s) ** i)

    def moment(j: int) -> int:  # 4^j M_j, with M_j of the module's docstring
        return _alternating_sum(lambda i: moment_coefficient(i) / (2 * j + 2 * i + 1))

    series: list[int] = []
    for j in count():
        series.append(int(step**j / factorial(2 * j) * moment(j)))
        if series[-1] == 0:
            return series[::-1]
    raise AssertionError  # for type checkers: count() does not end


def _exp_of_minus(x: Fraction) -> int:
    """exp(-x) for 0 < x <= 1, rounded down."""
    return _alternating_sum(lambda i: x**i / factorial(i))


def _alternating_sum(term: Callable[[int], Fraction]) -> int:
    """term(0) - term(1) + term(2) - ... in units of 2^-_WORKING_BITS, too low by less than 2.

    The terms decrease to 0, so a sum that stops after a subtraction is low by less than the first
    omitted term.
    """
    total = Fraction(0)
    for i in count(0, 2):
        total += term(i) - term(i + 1)
        if term(i + 2) < Fraction(1, 1 << (_WORKING_BITS + 32)):
            break
    return int(total * (1 << _WORKING_BITS))


@dataclass(frozen=True)
class Bins:
    """Bins of round 1's noised weights, and the probability that noise alone falls into each."""

    sigma_grid: int

    @property
    def noise(self) -> RoundedGaussian:
        return rounded_gaussian(self.sigma_grid)

    @cached_property
    def starts(self) -> Integers:
        """The least integer of each bin; for the first bin, the end of the noise's table."""
        inner = [ceil(start * self.sigma_grid) for start in BIN_STARTS_IN_SIGMAS[1:]]
        return np.array([-self.noise.reach, *inner], dtype=np.int64)

    @cached_property
    def noise_probability_units(self) -> tuple[int, ...]:
        """The probability that noise alone falls into each bin, in units of 2^-256: exactly as the
        table has it."""
        from_start_on = [self.noise.survival(int(start)) for start in self.starts] + [0]
        return tuple(this - following for this, following in pairwise(from_start_on))

    @cached_property
    def noise_probabilities(self) -> Floats:
        return np.array([units / TABLE_ONE for units in self.noise_probability_units])

    def range_of_bin(self, number: int) -> tuple[int, int]:
        """The least integer of a bin that the table has, and that of the next bin."""
        return self._ends[number], self._ends[number + 1]

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return (*self.starts.tolist(), self.noise.reach + 1)

    @cached_property
    def _tails(self) -> tuple[int, ...]:
        return tuple(map(self.noise.survival, self._ends))

    def units_within(self, least: int, most: int) -> tuple[int, ...]:
        """The probability that noise alone falls into each bin and is from `least` to `most`, in
        units of 2^-256."""
        at_least, above = self.noise.survival(least), self.noise.survival(most + 1)
        # Survival never increases, so each bin's end is cut where its tail is.
        cut = [max(min(tail, at_least), above) for tail in self._tails]
        return tuple(max(this - following, 0) for this, following in pairwise(cut))

    def bin_of(self, noised: Integers) -> Integers:
        return np.maximum(np.searchsorted(self.starts, noised, side="right") - 1, 0)
