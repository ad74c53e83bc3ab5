"""The path accountant: what growing a trie from sampled votes costs, and which theta and p to take.

At each of up to L levels every user tosses a fresh coin of probability p; a user whose coin shows
heads votes for the next prefix of the one word it holds for the whole run, if the prefix before
that was kept; a prefix is kept with theta votes or more; all kept prefixes are released. Let one
user come or go, and let k_i other users share the i-th prefix of its word. That prefix is kept
with probability b(k_i) = P[Bin(k_i, p) >= theta] without the user, a(k_i) = b(k_i + 1) with it, and
nothing else depends on the user: the likelihood ratio only on how far the path of its word reaches.

    when it comes:  delta(epsilon) = max over k_1, ..., k_L of sum over J of [A_J - e^epsilon B_J]_+
    when it goes:   epsilon = ln(1 / (1 - p)) with delta = 0

A_J and B_J are the probabilities, with and without, that exactly J levels are passed. All this is
proved in docs/path-accountant.md. The maximum is e^epsilon G_0(e^-epsilon), where

    G_L(t) = [t - 1]_+,    G_{i-1}(t) = max over k of V(t; b(k), a(k)),
    V(t; b, a) = [t (1 - a) - (1 - b)]_+ + b G_i(t a / b).

How it is bounded from above, with no k left out:

- V is convex in (b, a), so its maximum over the points (b(k), a(k)) is at most that over the
  corners of any polygon around them. They lie on a concave curve, below the lines through each
  two neighbours, whose slopes (k + 1)(1 - p) / (k + 2 - theta) fall with k: the polygon is cut out
  by some of these lines, by a = p + (1 - p) b, and by the line b = 0.
- G_i is convex in t and linear from t = 1/(1 - p) on, so chords of a grid lie above it.
- The polygon is pushed out by more than the error of the binomial tails; the result is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, betaln

from dphh.errors import UsageError
from dphh.privacy.gaussian import FloatArray

RATE_BITS = 64  # sampling rates are multiples of 2^-RATE_BITS
_UNIT = 2**RATE_BITS
_LARGEST_THETA = 10**4
_LARGEST_EPSILON = 300.0

# What the tails may be off by, relatively, times 100 + theta: more than a hundred times what was
# measured against 50 digits. What is returned is raised by the second for each level's
# sums, and the weights of chords by the third.
_TAIL_ERROR = 5e-13
_SUM_ERROR = 1e-11
_WEIGHT_ERROR = 1e-11
_TINY = 1e-300
# ln of the probability of theta - 1 votes at which the curve's end is left to its last two lines.
_END = -25.0


@dataclass(frozen=True)
class _Resolution:
    """How finely the maximum is taken; any resolution gives an upper bound."""

    polygon: float  # the change of ln b and of ln(a - b) between two lines, times sqrt(levels)
    chord: float  # the change of ln G between two points of the grid, times sqrt(levels)
    least: int
    most: int
    levels: float = math.inf  # for more levels than this it is as fine as for this many

    def scale(self, levels: int) -> float:
        return math.sqrt(min(levels, self.levels))


_FINE = _Resolution(polygon=0.15, chord=0.12, least=400, most=4000)
# What only has to say where to look: at more levels it errs by more, much alike for every theta.
_COARSE = _Resolution(polygon=0.5, chord=0.4, least=150, most=1200, levels=16)


@dataclass(frozen=True)
class PathGuarantee:
    """(epsilon, delta)-differential privacy when one user comes or goes."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class PathParameters:
    """A threshold and a sampling rate, and what they find and cost."""

    theta: int
    p: float  # an exact multiple of 2^-64
    users_needed: int  # the smallest number of holders that an item is found with
    delta: float  # path_delta at the epsilon asked for

    @property
    def numerator(self) -> int:
        """p in units of 2^-64: what a 64-bit word is compared with."""
        return rate_numerator(self.p)


def rate_numerator(p: float | int) -> int:
    """A sampling rate in units of 2^-64: an integer is one already, a float has to be one exactly.

    What is priced is what is drawn: no rate is rounded on the way.
    """
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise UsageError(f"p must be a number, found {type(p).__name__}; 0.2 is a common choice.")
    if isinstance(p, float):
        if not 0 < p < 1:
            raise UsageError(f"p must lie between 0 and 1, found {p!r}; 0.2 is a common choice.")
        scaled = math.ldexp(p, RATE_BITS)
        if not scaled.is_integer():
            raise UsageError(
                f"p must be a multiple of 2^-{RATE_BITS}, found {p!r}; give its numerator "
                f"as an integer, such as {max(int(scaled), 1)}."
            )
        return int(scaled)
    if not 0 < p < _UNIT:
        raise UsageError(
            f"p as an integer counts units of 2^-{RATE_BITS} and must lie between 1 and "
            f"2^{RATE_BITS} - 1, found {p}; give a float for a plain probability."
        )
    return p


def path_delta(epsilon: float, p: float | int, theta: int, levels: int) -> float:
    """An upper bound on delta at this epsilon when one user is added, within 2% down to 1e-80.

    Under `removal_epsilon(p)` this is not the delta of both directions.
    """
    _check_epsilon(epsilon)
    rate = _rounded_up(p)
    _check_whole("theta", theta, _LARGEST_THETA, "20 is a common choice")
    _check_whole("levels", levels, 10**4, "give the longest length that sequences may have")
    return _delta(epsilon, rate, theta, levels, _FINE) if rate < 1 else 1.0


def removal_epsilon(p: float | int) -> float:
    """ln(1 / (1 - p)), rounded up: the epsilon when one user is taken away, with delta 0."""
    numerator = rate_numerator(p)
    return _removal(math.ldexp(numerator, -RATE_BITS), math.ldexp(_UNIT - numerator, -RATE_BITS))


def path_epsilon(delta: float, p: float | int, theta: int, levels: int) -> float:
    """An epsilon, close to the smallest one, that holds at this delta in both directions.

    Infinite where no epsilon will do: with theta - 1 others, a user's prefix is kept with
    probability p^theta, and never without the user.
    """
    if not 0 <= delta <= 1:
        raise UsageError(f"delta must lie between 0 and 1, found {delta!r}; give a probability.")
    low = removal_epsilon(p)
    if path_delta(low, p, theta, levels) <= delta:
        return low
    # Beyond the first, only outcomes that are impossible without the user are left; beyond the
    # second, floats end.
    largest = min(levels * math.log1p(theta) + 1, _LARGEST_EPSILON)
    if path_delta(largest, p, theta, levels) > delta:
        return math.inf

    def excess(epsilon: float) -> float:
        return math.log(path_delta(epsilon, p, theta, levels) / delta)

    high = max(2 * low, 0.25)
    while high < largest and excess(high) > 0:
        low, high = high, 2 * high
    high = min(high, largest)
    return _crossing(lambda x: -excess(x), low, high, 1e-6 * high)[1]


def path_guarantee(epsilon: float, p: float | int, theta: int, levels: int) -> PathGuarantee:
    """What holds in both directions at this epsilon, or at the smallest above that one can have."""
    _check_epsilon(epsilon)
    reached = max(epsilon, removal_epsilon(p))
    return PathGuarantee(reached, path_delta(reached, p, theta, levels))


def users_needed(p: float | int, theta: int, levels: int, probability: float = 0.9) -> int:
    """The smallest n such that an item that n users hold passes all levels so probably.

    The coins of different levels are independent, and at each level at least n users vote for the
    item's prefix where their coins say so: P[Bin(n, p) >= theta]^levels.
    """
    _check_whole("theta", theta, _LARGEST_THETA, "20 is a common choice")
    _check_whole("levels", levels, 10**4, "give the longest length that sequences may have")
    rate = _rounded_down(p)
    missed = _missed(levels, probability)
    low, high = theta - 1, theta
    while _fails(high, rate, theta) > missed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fails(middle, rate, theta) > missed else (low, middle)
    return high


def choose_path(
    epsilon: float, delta: float, levels: int, probability: float = 0.9
) -> PathParameters:
    """The theta and p that find the rarest item at (epsilon, delta), in both directions.

    For each theta the largest p will find most. Among thetas the fewest users win, and among
    equals the one that finds an item of so many users most often.
    """
    _check_epsilon(epsilon)
    if epsilon < 1e-9:
        raise UsageError(f"epsilon must be at least 1e-9, found {epsilon}; 1.0 is a common choice.")
    if not 1e-100 <= delta < 1:
        raise UsageError(
            f"delta must be at least 1e-100 and below 1, found {delta!r}; "
            "choose it well below one over the number of users."
        )
    _check_whole("levels", levels, 10**4, "give the longest length that sequences may have")
    missed = _missed(levels, probability)
    search = _Search(epsilon, delta, levels)

    def users(theta: int) -> float:
        return _real_users(search.rate(theta), theta, missed)

    def choice(theta: int) -> tuple[int, float, PathParameters]:
        p, cost = search.refined(theta)
        n = users_needed(p, theta, levels, probability)
        return n, _fails(n, p, theta), PathParameters(theta, p, n, cost)

    # The search was coarse: look around, and go on for as long as the best lies at the border.
    best = _smallest_integer(users, _LARGEST_THETA)
    choices = {best: choice(best)}
    reach = 2
    while True:
        for theta in range(max(best - reach, 1), min(best + reach, _LARGEST_THETA) + 1):
            if theta not in choices and users(theta) < 1.005 * users(best) + 1:
                choices[theta] = choice(theta)
        better = min(choices, key=lambda theta: choices[theta][:2])
        if better == best:
            return choices[best][2]
        best, reach = better, 1


class _Search:
    """The largest rate that each theta allows: coarsely first, to 10^-4 for those that matter."""

    def __init__(self, epsilon: float, delta: float, levels: int) -> None:
        self.epsilon, self.delta, self.levels = epsilon, delta, levels
        self._rates: dict[int, float] = {}
        cap = _multiple(min(-math.expm1(-epsilon), 1 - 2.0**-20))
        while _removal(cap, 1 - cap) > epsilon:
            cap = _multiple(cap * (1 - 2.0**-50))
        self.cap = cap

    def rate(self, theta: int) -> float:
        """Nearly the largest rate."""
        if theta not in self._rates:
            nearest = min(self._rates, key=lambda other: abs(other - theta), default=None)
            guess = self._rates.get(nearest or 0) or self.cap / 4
            self._rates[theta] = self._largest(theta, guess, _COARSE, 1.5, 1e-3)[0]
        return self._rates[theta]

    def refined(self, theta: int) -> tuple[float, float]:
        """The largest rate, and its delta."""
        return self._largest(theta, self.rate(theta), _FINE, 1.004, 1e-4)

    def _largest(
        self, theta: int, guess: float, resolution: _Resolution, stride: float, precision: float
    ) -> tuple[float, float]:
        costs: dict[float, float] = {}

        def slack(log_p: float) -> float:
            p = min(_multiple(math.exp(log_p)), self.cap)
            if p not in costs:
                costs[p] = _delta(self.epsilon, p, theta, self.levels, resolution)
            return math.log(self.delta / costs[p])

        ceiling, step = math.log(self.cap), math.log(stride)
        low = high = min(math.log(guess), ceiling)
        floor = -RATE_BITS * math.log(2)
        if slack(low) >= 0:
            while high < ceiling and slack(high) >= 0:
                low, high, step = high, min(high + step, ceiling), 2 * step
        else:
            while slack(low) < 0:
                if low <= floor:
                    return 0.0, 1.0  # no rate is low enough
                low, high, step = max(low - step, floor), low, 2 * step
        if slack(high) < 0:
            low, high = _crossing(slack, low, high, precision)
        else:
            low = high
        p = min(_multiple(math.exp(low)), self.cap)
        return p, costs[p]


def _delta(epsilon: float, p: float, theta: int, levels: int, resolution: _Resolution) -> float:
    polygon, steepness = _polygon(epsilon, p, theta, levels, resolution)
    beyond = _removal(p, 1 - p)
    reach = epsilon + beyond
    wanted = reach * steepness * resolution.scale(levels) / resolution.chord
    points = min(max(wanted, resolution.least), resolution.most)
    step = reach / points
    below = math.ceil(epsilon / step) + 1
    u = step * np.arange(-below, math.ceil(beyond / step) + 2, dtype=np.float64)
    grid = _Grid(u, step, below)

    curve = np.maximum(np.expm1(u), 0.0)
    for _ in range(levels - 1):
        curve = grid.level(polygon, curve)
    cost = math.exp(epsilon) * grid.last_level(polygon, curve, -epsilon)
    return min(cost * (1 + _SUM_ERROR * (levels + 1)) + _TINY * math.exp(epsilon), 1.0)


@dataclass(frozen=True)
class _Polygon:
    """Corners (b, a) = (x, x + gap) with x > 0, and one at (0, rise); (0, 0) and (1, 1) go without
    saying. Gaps are kept instead of a, so that small p keep their digits."""

    x: FloatArray
    gap: FloatArray
    rise: float


def _polygon(
    epsilon: float, p: float, theta: int, levels: int, resolution: _Resolution
) -> tuple[_Polygon, float]:
    """A polygon around all points (b(k), a(k)), and how steeply ln delta falls with epsilon."""
    if theta == 1:  # every point lies on the line a = p + (1 - p) b
        return _Polygon(np.array([1.0]), np.array([0.0]), p), 20.0
    # One level's own worst k is where the slope of the curve falls below e^epsilon.
    e = math.exp(epsilon)
    worst = max(math.ceil((1 - p + e * (theta - 2)) / (math.expm1(epsilon) + p)), theta - 1)
    passed, more = (float(x[0]) for x in _tails(np.array([worst], dtype=np.float64), p, theta))
    single = max(more - math.expm1(epsilon) * passed, p**theta, _TINY)
    steepness = 2 + e * passed / single

    first, last = _ends(p, theta, worst, max(1e-4 * single / levels, 1e-290))
    dense = np.concatenate(
        [
            first + np.arange(40.0),
            np.linspace(math.sqrt(first), math.sqrt(last), 800) ** 2,
            first + np.geomspace(1.0, float(last - first), 600),
        ]
    )
    k = np.unique(np.clip(np.rint(dense), first, last))
    b, gap = _tails(k, p, theta)
    with np.errstate(divide="ignore"):
        moved = np.maximum(abs(np.diff(np.log(b))), abs(np.diff(np.log(gap))))
    spacing = min(resolution.polygon / resolution.scale(levels), 0.2)
    steps = np.cumsum(np.minimum(moved, 1.0)) / spacing
    chosen = np.concatenate([[True, True], np.diff(np.floor(steps)) > 0])
    chosen[-1] = True
    k, b, gap = k[chosen], b[chosen], gap[chosen]
    rise = float(b[0] + gap[0])

    # Lines gap = gap(k) + slope(k) (x - b(k)), and at the end gap = p (1 - x), each two of them
    # meeting between their points. Where exactly x is taken does not matter for safety.
    slope = (theta - 1 - p * (k + 1)) / (k + 2 - theta)
    fall = (1 - p) * (theta - 1) / (k + 2 - theta)  # slope + p, which only falls
    bend = np.append(fall[:-1] * np.diff(k) / (k[1:] + 2 - theta), fall[-1])
    b, gap, slope = np.append(b, 1.0), np.append(gap, 0.0), np.append(slope, -p)
    x = b[:-1] + (np.diff(gap) - slope[1:] * np.diff(b)) / bend
    x = np.clip(x, b[:-1], b[1:])
    left = gap[:-1] + slope[:-1] * (x - b[:-1])
    right = gap[1:] + slope[1:] * (x - b[1:])
    error = _TAIL_ERROR * (theta + 100)
    allowance = gap[:-1] + gap[1:] + (abs(slope[:-1]) + abs(slope[1:])) * b[1:]
    gap = np.maximum(np.maximum(left, right), 0.0) + error * allowance
    kept = x > 0
    rise = max(rise, float(np.max(gap[~kept], initial=0.0)))
    return _Polygon(x[kept], gap[kept], rise * (1 + error) + _TINY), steepness


def _ends(p: float, theta: int, worst: int, cut: float) -> tuple[int, int]:
    """Where to begin: a k with a(k) of about `cut` or less, or theta - 1. Where to end: a k with
    a(k) - b(k) far below p. Any two would be safe."""

    def likely(k: int, votes: int) -> float:  # ln P[Bin(k, p) = votes]
        ways = -math.log(k + 1) - float(betaln(k + 1 - votes, votes + 1))
        return ways + votes * math.log(p) + (k - votes) * math.log1p(-p)

    first, high = theta - 1, max(worst, math.ceil(theta / p))
    while high - first > 1:
        middle = (first + high) // 2
        below = likely(middle + 1, theta) <= math.log(cut)
        first, high = (middle, high) if below else (first, middle)

    low = max(worst, math.ceil(theta / p)) + 1
    last = 2 * low
    while likely(last, theta - 1) > _END:
        last *= 2
    while last - low > 1:
        middle = (low + last) // 2
        low, last = (middle, last) if likely(middle, theta - 1) > _END else (low, middle)
    return first, last


def _tails(k: FloatArray, p: float, theta: int) -> tuple[FloatArray, FloatArray]:
    """b(k) = P[Bin(k, p) >= theta] and a(k) - b(k) = p P[Bin(k, p) = theta - 1]; k >= theta - 1.

    Sums of positive terms, each the one before times (k - j + 1) p / (j (1 - p)), so that the far
    tail keeps its digits.
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
    """Points u = ln t, evenly spaced, 0 among them and the last at ln(1 / (1 - p)) or past it."""

    u: FloatArray
    step: float
    zero: int

    def level(self, polygon: _Polygon, curve: FloatArray) -> FloatArray:
        """G_{i-1} on the grid from G_i: the largest V of all corners.

        Multiplying t by a/b moves by whole points and one weight, the same for the whole grid.
        """
        t, over = np.exp(self.u), np.expm1(self.u)
        best = np.maximum(curve, np.maximum(polygon.rise * t, over))
        by = np.log1p(polygon.gap / polygon.x) * (1 + 1e-14)
        shift = np.minimum(np.floor(by / self.step), len(t)).astype(np.int64)
        weight = np.expm1(by - shift * self.step) / math.expm1(self.step) + _WEIGHT_ERROR
        weight = np.clip(weight, 0.0, 1.0)
        more = np.expm1(self.u[-1] + self.step * np.arange(1, len(t) + 1))
        windows = np.lib.stride_tricks.sliding_window_view(np.append(curve, more), len(t))

        far = shift == len(t)
        for x, gap in _batches(polygon.x[far], polygon.gap[far]):
            np.maximum(best, (x * over + gap * t).max(axis=0), out=best)
        near, above = ~far, slice(self.zero + 1, None)
        for x, gap, w, moved in _batches(
            polygon.x[near], polygon.gap[near], weight[near], shift[near]
        ):
            values = windows[moved[:, 0]] * (x * (1 - w))
            values += windows[moved[:, 0] + 1] * (x * w)
            values[:, above] += np.maximum(over[above] * (1 - x) - t[above] * gap, 0.0)
            np.maximum(best, values.max(axis=0), out=best)
        return best

    def last_level(self, polygon: _Polygon, curve: FloatArray, u: float) -> float:
        """The same at a single u <= 0."""
        moved = u + np.log1p(polygon.gap / polygon.x)
        passed = polygon.x * self._chord(curve, moved)
        here = float(self._chord(curve, np.array([u]))[0])
        return max(float(passed.max()), here, polygon.rise * math.exp(u))

    def _chord(self, curve: FloatArray, u: FloatArray) -> FloatArray:
        """The curve between the grid's points, linear in t; past the last point it is t - 1."""
        position = (u - self.u[0]) / self.step
        index = np.clip(np.floor(position), 0, len(curve) - 2).astype(np.int64)
        weight = np.expm1(u - self.u[index]) / math.expm1(self.step) + _WEIGHT_ERROR
        weight = np.clip(weight, 0.0, 1.0)
        inside = curve[index] * (1 - weight) + curve[index + 1] * weight
        return np.where(u >= self.u[-1], np.expm1(np.maximum(u, 0.0)), inside)


def _batches(*columns: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """64 rows of each column at a time, as columns: what fits the cache is faster."""
    for start in range(0, len(columns[0]), 64):
        yield tuple(column[start : start + 64, np.newaxis] for column in columns)


def _crossing(
    slack: Callable[[float], float], low: float, high: float, precision: float
) -> tuple[float, float]:
    """Narrows an interval at whose ends `slack` is on either side of 0 (which counts as above)."""
    at_low, at_high = slack(low), slack(high)
    side = 0
    while high - low > precision:
        middle = low + (high - low) * at_low / (at_low - at_high)
        middle = min(max(middle, low + 0.4 * precision), high - 0.4 * precision)
        here = slack(middle)
        if (here >= 0) == (at_low >= 0):
            low, at_low = middle, here
            at_high, side = (at_high / 2 if side == 1 else at_high), 1
        else:
            high, at_high = middle, here
            at_low, side = (at_low / 2 if side == -1 else at_low), -1
    return low, high


def _smallest_integer(value: Callable[[int], float], largest: int) -> int:
    """Where a function of 1, 2, ..., largest that first falls and then rises is smallest."""
    low, middle = 0, 8
    while 2 * middle <= largest and value(2 * middle) < value(middle):
        low, middle = middle, 2 * middle
    high = min(2 * middle, largest + 1)
    while high - low > 2:  # golden section: into the wider side
        if high - middle > middle - low:
            other = middle + max(round(0.382 * (high - middle)), 1)
        else:
            other = middle - max(round(0.382 * (middle - low)), 1)
        left, right = min(middle, other), max(middle, other)
        if value(left) <= value(right):
            middle, high = left, right
        else:
            low, middle = left, right
    return middle


def _removal(p: float, q: float) -> float:
    """-ln q for q = 1 - p, past the roundings of either."""
    return (1 + 2.0**-50) * (-math.log1p(-p) if p < 0.5 else -math.log(q))


def _fails(n: float, p: float, theta: int) -> float:
    """P[Bin(n, p) < theta], for real n >= theta too."""
    return float(betaincc(theta, n - theta + 1, p))


def _real_users(p: float, theta: int, missed: float) -> float:
    """Where P[Bin(n, p) < theta] falls to `missed`, n taken as a real number."""
    if p == 0:
        return math.inf
    if _fails(theta, p, theta) <= missed:
        return float(theta)
    low, high = float(theta), 2.0 * theta
    while _fails(high, p, theta) > missed:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _fails(middle, p, theta) > missed else (low, middle)
    return high


def _missed(levels: int, probability: float) -> float:
    """How often an item may fail one level, to pass all of them with this probability."""
    if not 0 < probability < 1:
        raise UsageError(
            f"probability must lie between 0 and 1, found {probability!r}; 0.9 is the default."
        )
    return -math.expm1(math.log(probability) / levels)


def _multiple(p: float) -> float:
    """The multiple of 2^-64 at or below p that is a float too."""
    return math.ldexp(max(math.floor(math.ldexp(p, RATE_BITS)), 1), -RATE_BITS)


def _rounded_up(p: float | int) -> float:
    """The float at or above a rate, which may be 1: more sampling costs no less."""
    numerator = rate_numerator(p)
    rate = math.ldexp(numerator, -RATE_BITS)
    return rate if int(math.ldexp(rate, RATE_BITS)) >= numerator else math.nextafter(rate, 1.0)


def _rounded_down(p: float | int) -> float:
    """The float at or below a rate: less sampling finds no more."""
    numerator = rate_numerator(p)
    rate = math.ldexp(numerator, -RATE_BITS)
    return rate if int(math.ldexp(rate, RATE_BITS)) <= numerator else math.nextafter(rate, 0.0)


def _check_epsilon(epsilon: float) -> None:
    if not 0 <= epsilon <= _LARGEST_EPSILON:
        raise UsageError(
            f"epsilon must be at least 0 and at most {_LARGEST_EPSILON:g}, found {epsilon!r}; "
            "1.0 is a common choice."
        )


def _check_whole(name: str, value: int, largest: int, advice: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise UsageError(
            f"{name} must be a whole number from 1 to {largest}, found {value!r}; {advice}."
        )
