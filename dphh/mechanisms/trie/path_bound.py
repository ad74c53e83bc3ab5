"""An upper bound on the path accountant's maximum over all k (docs/trie.md).

At each of L levels a user votes with probability p, and a prefix stays that has theta votes. One
that k other users hold stays with probability b(k) = P[Bin(k, p) >= theta] without the one user,
and a(k) = b(k + 1) with that user. Over all sequences of numbers k_i of users who share the
prefixes of one user's word, delta(epsilon) is at most e^epsilon G_0(e^-epsilon), where

    G_L(t) = [t - 1]_+,    G_{i-1}(t) = max over k of V_i(t; b(k), a(k)),
    V_i(t; b, a) = [t (1 - a) - (1 - b)]_+ + b G_i(t a / b), whose last term is t a for b = 0.

- V_i is convex in (b, a), so its maximum over the points (b(k), a(k)) is at most that over the
  corners of any polygon around them. The points are on a concave curve, below the lines through any
  two neighbours, whose slopes (k + 1)(1 - p) / (k + 2 - theta) decrease with k: the polygon is
  bounded by some of these lines, by a = p + (1 - p) b, and by the line b = 0.
- G_i is convex in t and linear from t = 1/(1 - p) on, so chords on a grid are above it.
- The polygon is enlarged by more than the error of the binomial tails; the result is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.search import betaln
from dphh.udfs.arrays import Floats

TAIL_ERROR = 5e-13  # times 100 + theta: over a hundred times the tails' measured relative error
_SUM_ERROR = 1e-11  # for each level's sums the result is raised by this, relatively
_WEIGHT_ERROR = 1e-11  # the weights of chords are raised by this
_TINY = 1e-300  # more than floats lose when a number is rounded to 0
# The polygon's last k is where ln P[Bin(k, p) = theta - 1] falls to this. Beyond it, the polygon's
# last two lines bound the curve.
_LOG_CHANCE_AT_LAST_K = -25.0
# How many numbers of a matrix are processed at a time: they fit the processor's cache.
_POINTS_IN_CACHE = 2**14


@dataclass(frozen=True)
class Resolution:
    """How finely the maximum is computed; any resolution gives an upper bound."""

    #: How far apart the polygon's lines are: the change of ln b and of ln(a - b) from one to the
    #: next, times sqrt(levels).
    polygon: float
    #: How far apart the grid's points are: the change of ln G from one to the next,
    #: also times sqrt(levels).
    chord: float
    least_points: int
    most_points: int
    levels: float = math.inf  # more levels than this do not make the resolution finer

    def density_factor(self, levels: int) -> float:
        return math.sqrt(min(levels, self.levels))


FINE = Resolution(polygon=0.15, chord=0.12, least_points=400, most_points=4000)
# For searches. Its error grows with the levels, but is about the same for every theta.
COARSE = Resolution(polygon=0.5, chord=0.4, least_points=150, most_points=1200, levels=16)


def delta_bound(epsilon: float, p: float, theta: int, levels: int, resolution: Resolution) -> float:
    polygon, steepness = _polygon_around_points(epsilon, p, theta, levels, resolution)
    beyond = removal_epsilon(p)
    reach = epsilon + beyond
    wanted = reach * steepness * resolution.density_factor(levels) / resolution.chord
    points = min(max(wanted, resolution.least_points), resolution.most_points)
    step = reach / points
    below = math.ceil(epsilon / step) + 1
    u = step * np.arange(-below, math.ceil(beyond / step) + 2, dtype=np.float64)
    grid = _Grid(u, step, below)

    curve = np.maximum(np.expm1(u), 0.0)
    curve_before = grid.curve_before_function(polygon)
    for _ in range(levels - 1):
        curve = curve_before(curve)
    # G_0 at u = -epsilon: the largest V of all corners there.
    passed = polygon.x * grid.interpolate(curve, np.log1p(polygon.gap / polygon.x) - epsilon)
    here = float(grid.interpolate(curve, np.array([-epsilon]))[0])
    g_0 = max(float(passed.max()), here, polygon.rise * math.exp(-epsilon))
    cost = math.exp(epsilon) * g_0
    return min(cost * (1 + _SUM_ERROR * (levels + 1)) + _TINY * math.exp(epsilon), 1.0)


def removal_epsilon(p: float) -> float:
    """ln(1 / (1 - p)), rounded up: the epsilon when one user is removed, with delta 0."""
    return (1 + 2.0**-50) * (-math.log1p(-p) if p < 0.5 else -math.log(1 - p))


@dataclass(frozen=True)
class _Polygon:
    """A polygon's corners (b, a): (x, x + gap) with x > 0, and (0, rise). (0, 0) and (1, 1) always
    are corners too. Gaps are stored instead of a, so that small p keep their precision."""

    x: Floats
    gap: Floats
    rise: float


def _polygon_around_points(
    epsilon: float, p: float, theta: int, levels: int, resolution: Resolution
) -> tuple[_Polygon, float]:
    """A polygon around all points (b(k), a(k)), and how steeply ln delta falls with epsilon."""
    if theta == 1:  # every point is on the line a = p + (1 - p) b
        return _Polygon(np.array([1.0]), np.array([0.0]), p), 20.0
    # With one level only, the worst k is where the slope of the curve falls below e^epsilon.
    e = math.exp(epsilon)
    worst = max(math.ceil((1 - p + e * (theta - 2)) / (math.expm1(epsilon) + p)), theta - 1)
    tail, gap = tails_and_gaps(np.array([worst], dtype=np.float64), p, theta)
    passed, more = float(tail[0]), float(gap[0])
    single = max(more - math.expm1(epsilon) * passed, p**theta, _TINY)
    steepness = 2 + e * passed / single

    first, last = _first_and_last_k(p, theta, worst, max(1e-4 * single / levels, 1e-290))
    dense = np.concatenate(
        [
            first + np.arange(40.0),
            np.linspace(math.sqrt(first), math.sqrt(last), 800) ** 2,
            first + np.geomspace(1.0, float(last - first), 600),
        ]
    )
    k = np.unique(np.clip(np.rint(dense), first, last))
    b, gap = tails_and_gaps(k, p, theta)
    with np.errstate(divide="ignore"):
        moved = np.maximum(abs(np.diff(np.log(b))), abs(np.diff(np.log(gap))))
    spacing = min(resolution.polygon / resolution.density_factor(levels), 0.2)
    steps = np.cumsum(np.minimum(moved, 1.0)) / spacing
    chosen = np.concatenate([[True, True], np.diff(np.floor(steps)) > 0])
    chosen[-1] = True
    k, b, gap = k[chosen], b[chosen], gap[chosen]
    rise = float(b[0] + gap[0])

    # The polygon's lines are gap = gap(k) + slope(k) (x - b(k)), and at the end gap = p (1 - x).
    # `x` is where two neighbours meet, between their points; any other x there would be safe too.
    slope = (theta - 1 - p * (k + 1)) / (k + 2 - theta)
    fall = (1 - p) * (theta - 1) / (k + 2 - theta)  # slope + p, which decreases with k
    bend = np.append(fall[:-1] * np.diff(k) / (k[1:] + 2 - theta), fall[-1])
    b, gap, slope = np.append(b, 1.0), np.append(gap, 0.0), np.append(slope, -p)
    x = b[:-1] + (np.diff(gap) - slope[1:] * np.diff(b)) / bend
    x = np.clip(x, b[:-1], b[1:])
    left = gap[:-1] + slope[:-1] * (x - b[:-1])
    right = gap[1:] + slope[1:] * (x - b[1:])
    error = TAIL_ERROR * (theta + 100)
    allowance = gap[:-1] + gap[1:] + (abs(slope[:-1]) + abs(slope[1:])) * b[1:]
    gap = np.maximum(np.maximum(left, right), 0.0) + error * allowance
    kept = x > 0
    rise = max(rise, float(np.max(gap[~kept], initial=0.0)))
    return _Polygon(x[kept], gap[kept], rise * (1 + error) + _TINY), steepness


def _first_and_last_k(p: float, theta: int, worst_k: int, least_a: float) -> tuple[int, int]:
    """The first and the last k of the polygon; any two give an upper bound. At the first, a(k) is
    about `least_a` or less, or k is theta - 1. At the last, a(k) - b(k) is far below p."""

    def log_chance(k: int, votes: int) -> float:  # ln P[Bin(k, p) = votes]
        ways = -math.log(k + 1) - float(betaln(k + 1 - votes, votes + 1))
        return ways + votes * math.log(p) + (k - votes) * math.log1p(-p)

    first, high = theta - 1, max(worst_k, math.ceil(theta / p))
    while high - first > 1:
        middle = (first + high) // 2
        below = log_chance(middle + 1, theta) <= math.log(least_a)
        first, high = (middle, high) if below else (first, middle)

    low = max(worst_k, math.ceil(theta / p)) + 1
    last = 2 * low
    while log_chance(last, theta - 1) > _LOG_CHANCE_AT_LAST_K:
        last *= 2
    while last - low > 1:
        middle = (low + last) // 2
        likely = log_chance(middle, theta - 1) > _LOG_CHANCE_AT_LAST_K
        low, last = (middle, last) if likely else (low, middle)
    return first, last


def tails_and_gaps(k: Floats, p: float, theta: int) -> tuple[Floats, Floats]:
    """b(k) = P[Bin(k, p) >= theta] and a(k) - b(k) = p P[Bin(k, p) = theta - 1]; k >= theta - 1.

    Sums of positive terms, each the previous one times (k - j + 1) p / (j (1 - p)), so that the far
    tail keeps its precision.
    """
    logarithm = (k + 1 - theta) * math.log1p(-p)
    for i in range(theta - 1):
        logarithm += np.log((k - i) * (p / (i + 1)))
    first = np.exp(logarithm)
    odds = p / (1 - p)
    total = np.zeros_like(k)
    term = np.ones_like(k)
    largest, j = float(k[-1]), theta
    while True:
        term *= np.maximum(k - (j - 1), 0.0) * (odds / j)
        total += term
        if (largest - j) * odds < 0.5 * (j + 1) and np.all(term <= 1e-17 * total):
            return np.minimum(first * total, 1.0), p * first
        j += 1


@dataclass(frozen=True)
class _Grid:
    """Equally spaced points u = ln t, which include 0; the last is at least ln(1 / (1 - p))."""

    u: Floats
    step: float
    zero: int

    def curve_before_function(self, polygon: _Polygon) -> Callable[[Floats], Floats]:
        """A function that makes G_{i-1} from G_i, both on the grid: the largest V of all corners.

        Multiplying t by a/b is a shift by whole points and one weight, the same for the whole grid.
        All levels are alike, so what does not depend on G_i is computed once.
        """
        t, over = np.exp(self.u), np.expm1(self.u)
        by = np.log1p(polygon.gap / polygon.x) * (1 + 1e-14)
        shift = np.minimum(np.floor(by / self.step), len(t)).astype(np.int64)
        weight = np.expm1(by - shift * self.step) / math.expm1(self.step) + _WEIGHT_ERROR
        weight = np.clip(weight, 0.0, 1.0)
        more = np.expm1(self.u[-1] + self.step * np.arange(1, len(t) + 1))

        always = np.maximum(polygon.rise * t, over)
        far = shift == len(t)
        for x, gap in _rows_in_slices(len(t), polygon.x[far], polygon.gap[far]):
            np.maximum(always, (x * over + gap * t).max(axis=0), out=always)
        near, above = ~far, slice(self.zero + 1, None)
        corners = []
        for x, gap, w, moved in _rows_in_slices(
            len(t), polygon.x[near], polygon.gap[near], weight[near], shift[near]
        ):
            failed = np.maximum(over[above] * (1 - x) - t[above] * gap, 0.0)
            corners.append((moved[:, 0], x * (1 - w), x * w, failed))

        def curve_before(curve: Floats) -> Floats:
            best = np.maximum(curve, always)
            windows = np.lib.stride_tricks.sliding_window_view(np.append(curve, more), len(t))
            for moved, before, after, failed in corners:
                values, next_values = windows[moved], windows[moved + 1]  # copies, by indexing
                values *= before
                next_values *= after
                values += next_values
                values[:, above] += failed
                np.maximum(best, values.max(axis=0), out=best)
            return best

        return curve_before

    def interpolate(self, curve: Floats, u: Floats) -> Floats:
        """The curve between the grid's points, linear in t; past the last point it is t - 1."""
        position = (u - self.u[0]) / self.step
        index = np.clip(np.floor(position), 0, len(curve) - 2).astype(np.int64)
        weight = np.expm1(u - self.u[index]) / math.expm1(self.step) + _WEIGHT_ERROR
        weight = np.clip(weight, 0.0, 1.0)
        inside = curve[index] * (1 - weight) + curve[index + 1] * weight
        return np.where(u >= self.u[-1], np.expm1(np.maximum(u, 0.0)), inside)


def _rows_in_slices(points: int, *columns: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Each column in slices of shape (rows, 1), so short that rows x points numbers fit the
    processor's cache."""
    rows = max(_POINTS_IN_CACHE // points, 1)
    for start in range(0, len(columns[0]), rows):
        yield tuple(column[start : start + rows, np.newaxis] for column in columns)
