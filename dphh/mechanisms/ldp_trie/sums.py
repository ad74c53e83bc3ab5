"""What the sums of a level's reports tell of a whole user: Theorems A and B of docs/ldp_trie.md.

N users send B reports each, all of a user's for different values, and only how many reports hold
each value is seen. Then a user's reports hide beside one another: each moves counts of its own.

- `coins`: every report holds each value by a coin of its own (Theorem A). One count with one of the
  user's coins at p or at q, all others at q, B times in either direction.
- `subsets`: subset selection (Theorem B). Of each report all is told but which of three values it
  holds, among as many other reports of which the same is not known.

Neither says anything to who sees single messages. Both are upper bounds: losses on a grid that
dominates (`losses.py`), cuts paid for, and what many cases have in common taken at the worst of
them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dphh.mechanisms.ldp_trie.losses import LONGEST, FloatArray, Losses, dominates, on_grid, spread
from dphh.privacy.subset_selection import SubsetSelection

#: The part of delta that may be cut off, and is then paid.
_CUT = 1e-5
# More than a hundred times what SciPy's binomials were off by, relatively, against 40 digits.
_SLACK = 1e-9
#: Steps of the grid to the losses' standard deviation: adds 1 part in 4 * 25^2 to their variance.
_FINE = 25
#: How many of a value's holders may be left out, by what their coins of p would hide of the rest.
_HOLDERS = (1.25, 1.6, 2.0, 3.0, 5.0, 9.0)
_LESS = 1 - 1e-12
#: Blocks of counts that are taken at their worst, in standard deviations; and for searches.
NARROW, WIDE = 0.15, 0.6


@dataclass(frozen=True)
class Level:
    """Who sends reports whose sums are seen."""

    users: int
    contributions: int

    @property
    def reports(self) -> int:
        return self.users * self.contributions


@lru_cache(maxsize=256)
def epsilon_of_coins(
    mechanism: SubsetSelection, level: Level, replaced: int, delta: float
) -> float:
    """Of `replaced` reports of one user, for different values, replaced by as many (Theorem A).

    Infinite where the theorem says nothing at this delta.
    """
    cut = _CUT * delta / (2 * replaced)
    there, back = _count_of_coins(mechanism, level, cut)
    deeper = cut / (2 * replaced)
    return (
        there.times(replaced, deeper)
        .followed_by(back.times(replaced, deeper), deeper)
        .epsilon(delta)
    )


@lru_cache(maxsize=256)
def epsilon_of_subsets(
    mechanism: SubsetSelection, level: Level, replaced: int, delta: float, narrow: float = NARROW
) -> float:
    """The same for subset selection (Theorem B). With `WIDE` blocks it is made in a tenth of the
    time, and half a percent higher."""
    cut = _CUT * delta / (8 * replaced)
    one = _triple(mechanism, level, replaced, cut, narrow)
    if one is None:
        return math.inf
    # That more reports than expected threw into earlier triples: once for all of them.
    return one.times(replaced, cut / replaced).with_more(cut).epsilon(delta)


# --- Theorem A ------------------------------------------------------------------------------------


def _count_of_coins(mechanism: SubsetSelection, level: Level, cut: float) -> tuple[Losses, Losses]:
    """One value's count with the user's coin at p against at q, and the other way round, whoever
    else holds the value.

    Up to `holders` others do: their coins are left out, and so many coins of q that n - 1 - holders
    of them remain. Or more do: `holders` coins of p remain. The first pair dominates the second:
    that is looked at, both ways. Nobody reports a value twice, so users - 1 hold it at most.
    """
    n, most, p, q = level.reports, level.users - 1, mechanism.p, mechanism.q
    own, other = mechanism.own_chance, mechanism.other_chance  # 1 - p may be 0 as a float
    spread_of_others = float(n * other * (1 - other) / (own * (1 - own)))
    for share in _HOLDERS:
        holders = math.ceil(share * spread_of_others)
        if holders >= most:
            break
        few = _one_coin(mechanism, n - 1 - holders, q, cut, None)
        many = _one_coin(mechanism, holders, p, cut, few[0].step)
        if all(dominates(one, other, cut) for one, other in zip(few, many, strict=True)):
            return few[0].with_more(cut), few[1].with_more(cut)
    return _one_coin(mechanism, n - 1 - most, q, cut, None)


def _one_coin(
    mechanism: SubsetSelection, others: int, chance: float, cut: float, step: float | None
) -> tuple[Losses, Losses]:
    """A coin of p against one of q, beside so many others of this chance: both directions."""
    p, q = mechanism.p, mechanism.q
    # Not 1 - p: a float of p near 1 has lost most of what is left.
    no_p, no_q = float(1 - mechanism.own_chance), float(1 - mechanism.other_chance)
    low, high = _range(others, chance, cut)
    beside = np.asarray(binom.pmf(np.arange(low - 1, high + 2), others, chance), dtype=np.float64)
    here, below = beside[1:], beside[:-1]
    x = np.arange(low, high + 2, dtype=np.float64)
    room = (others - x + 1) * chance
    with np.errstate(divide="ignore", invalid="ignore"):
        # ln of ((1-p) here + p below) / ((1-q) here + q below), from below / here.
        ratio = x * (1 - chance) / room
        losses = np.where(
            room > 0, np.log(no_p + p * ratio) - np.log(no_q + q * ratio), math.log(p / q)
        )
    with_p, with_q = no_p * here + p * below, no_q * here + q * below
    outside = _outside(others, chance, low, high)
    step = step or _step(with_p, losses)
    return (
        on_grid(with_p, losses, outside, step, _SLACK),
        on_grid(with_q, -losses, outside, step, _SLACK),
    )


# --- Theorem B ------------------------------------------------------------------------------------


def _triple(
    mechanism: SubsetSelection, level: Level, replaced: int, cut: float, narrow: float
) -> Losses | None:
    """One replaced report: it throws into one of the three values of a triple, among T others."""
    s, d, special = mechanism.domain, mechanism.size, 3 * replaced
    if s - special - d < 1:
        return None
    less = math.exp(-mechanism.epsilon) * _LESS
    idle_to_own = less * (s - special - d + 1) / d
    own = 1 / (1 + less + idle_to_own)
    idle = own * idle_to_own
    # A uniform report, or the own value and a uniform set of d - 1 others: how likely what is
    # drawn holds one of all triples' values alone, and that in this triple.
    uniform = Fraction(d, s)
    marked = float((mechanism.own_chance - uniform) / (1 - uniform))
    plain = _alone(s, d, special)
    beside = _alone(s - 1, d - 1, special) if d > 1 else 0.0
    held = _alone(s - 1, d - 1, special - 1) if d > 1 else 0.0  # the own value is one of them
    throws_if_held = (1 - marked) * plain * 3 * _LESS
    throws = throws_if_held + marked * beside * 3 * _LESS
    others = level.reports - replaced
    holders = min(3 * level.users, others)
    taken = 0
    if replaced > 1:
        earlier = min(special * max(plain, beside, held) / _LESS, 1.0)
        taken = _range(others, earlier, cut)[1]
    free = max(others - taken - holders, 0)
    held_by = max(min(others - taken, holders), 0)
    totals, shares = _thrown(free, throws, held_by, throws_if_held, cut, narrow)
    found: list[tuple[FloatArray, FloatArray]] = []
    # Of both parts of T, of the third value's count and of the first's: half of `cut` each, the
    # last two at three times and twice the binomial's chances at most.
    outside = 4 * cut
    for total, share in zip(totals, shares, strict=True):
        rest, wrong, chances = _idle_counts(int(total), own, idle, less, cut, narrow)
        chances *= share
        rare = chances < cut * _CUT
        outside += float(np.sum(chances[rare]))
        found.append(_leaning(rest[~rare], wrong[~rare], chances[~rare], cut))
    law = np.concatenate([law for law, _ in found])
    losses = np.concatenate([loss for _, loss in found])
    return on_grid(law, losses, outside, _step(law, losses), 3 * _SLACK)


def _leaning(
    rest: NDArray[np.int64], wrong: FloatArray, chances: FloatArray, cut: float
) -> tuple[FloatArray, FloatArray]:
    """Of `rest` throws among two values, the user's is of the wrong one with this chance, or of the
    other with as much.

    P and Q are f(x) 2/rest times the user's chance of each of the x of one and rest - x of the
    other, f the binomial: rows of chances, of losses. (By `wrong` and not by what is left of 1/2,
    which has no digits where it is near.)
    """
    reach = np.array([_range(int(most), 0.5, cut) for most in rest], dtype=np.float64).reshape(
        -1, 2
    )
    width = np.arange(float(np.max(reach[:, 1] - reach[:, 0], initial=0)) + 1)
    x, of = reach[:, :1] + width, rest[:, None].astype(np.float64)
    some = x <= of
    amiss = wrong[:, None]
    there, back = (
        (2 * ((1 - amiss) * one + amiss * other) / of)[some]
        for one, other in ((x, of - x), (of - x, x))
    )
    law = (chances[:, None] * np.asarray(binom.pmf(x, of, 0.5)))[some]
    return law * there, np.log(there) - np.log(back)


def _alone(domain: int, size: int, special: int) -> float:
    """How likely a uniform set of so many values holds a given one of `special` and no other.

    C(domain - special, size - 1) / C(domain, size).
    """
    if size < 1 or domain - special < size - 1:
        return 0.0
    i = np.arange(special, dtype=np.float64)
    missed = float(np.sum(np.log1p(-(size - 1) / (domain - i))))
    return math.exp(missed) * size / (domain - size + 1)


def _thrown(
    free: int, throws: float, held: int, throws_if_held: float, cut: float, narrow: float
) -> tuple[NDArray[np.int64], FloatArray]:
    """T, at the least of each of some blocks, and their chances."""
    one, of_one = _blocks(free, throws, cut, narrow)
    two, of_two = _blocks(held, throws_if_held, cut, narrow)
    totals, shares = np.add.outer(one, two).ravel(), np.outer(of_one, of_two).ravel()
    order = np.argsort(totals)
    totals, shares = totals[order], shares[order]
    mean = float(np.sum(totals * shares))
    sd = math.sqrt(max(float(np.sum(shares * (totals - mean) ** 2)), 0.0))
    edges = np.unique(np.searchsorted(totals, mean + sd * _widths(mean, sd, narrow)))
    edges = np.unique(np.concatenate([[0], edges[edges < len(totals)]]))
    return totals[edges], np.add.reduceat(shares, edges)


def _widths(mean: float, sd: float, narrow: float) -> FloatArray:
    """Where blocks begin, in standard deviations: no narrower than matters to a thousandth."""
    narrow = max(narrow, narrow / NARROW * mean / (400 * sd)) if sd else 1.0
    return np.concatenate([np.arange(-12.0, -4), np.arange(-4, 4, narrow), np.arange(4.0, 13, 2)])


def _blocks(n: int, p: float, cut: float, narrow: float) -> tuple[NDArray[np.int64], FloatArray]:
    """Binomial(n, p) at the least of each of some blocks."""
    low, high = _range(n, p, cut)
    mean, sd = n * p, math.sqrt(n * p * (1 - p))
    inner = np.floor(mean + sd * _widths(mean, sd, narrow)).astype(np.int64)
    starts = np.unique(np.clip(np.concatenate([[low], inner]), low, high))
    below = binom.cdf(np.append(starts[1:] - 1, n), n, p)
    first = binom.cdf(low - 1, n, p)
    return starts, np.diff(np.concatenate([[first], below]))


def _idle_counts(
    total: int, own: float, idle: float, less: float, cut: float, narrow: float
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """For blocks of how many of `total` throws and one are of the third value: how many are left to
    the first two (at least), with which chance the user's is of the wrong one (at least), and the
    block's chance. `less` is how much less likely the wrong one is than the own.

    Given that count, it is the user's own throw with the same chance in both cases; else the
    user's is among those left.
    """
    throws, other = total + 1, own * less
    low, high = _range(throws, 1 / 3, cut)
    y = np.arange(low, high + 1, dtype=np.float64)
    left = throws - y
    weight = (own + other) * left / 2 + idle * y
    law = np.asarray(binom.pmf(y, throws, 1 / 3)) * 3 / throws * weight
    mean, sd = throws / 3, math.sqrt(throws * 2 / 9)
    edges = np.floor(mean + sd * _widths(mean, sd, narrow)).astype(np.int64) - low
    edges = np.unique(np.concatenate([[0], edges[(edges > 0) & (edges < len(y))]]))
    shares = np.add.reduceat(law, edges)
    ends = np.append(edges[1:], len(y)) - 1
    return (
        np.maximum(left[ends], 1).astype(np.int64),
        _wrong(less, idle * y[edges] / weight[edges]),
        shares,
    )


def _wrong(less: float, idle: FloatArray) -> FloatArray:
    """The chance of the wrong one of two, where the user's throw is fair with chance `idle`."""
    by_itself = less / (1 + less)
    return np.asarray(by_itself + idle * (0.5 - by_itself))


# --- shared ---------------------------------------------------------------------------------------


def _range(n: int, p: float, cut: float) -> tuple[int, int]:
    """Binomial(n, p) is outside with a chance of about `cut`, or less (Bernstein)."""
    digits = math.log(4 / cut)
    reach = digits / 3 + math.sqrt(digits**2 / 9 + 2 * n * p * (1 - p) * digits)
    return max(math.floor(n * p - reach), 0), min(math.ceil(n * p + reach), n)


def _outside(n: int, p: float, low: int, high: int) -> float:
    return float(binom.cdf(low - 1, n, p) + binom.sf(high, n, p)) * (1 + _SLACK)


def _step(chances: FloatArray, losses: FloatArray) -> float:
    # Losses may lie far apart that hardly spread: no more points than can be summed.
    points = float(np.max(losses) - np.min(losses)) / LONGEST
    return max(min(max(spread(chances, losses) / _FINE, 1e-7), 0.02), points)
