"""The epsilon of a level's sums for a whole user: Theorem B of docs/ldp_trie.md.

N users send B reports each, a user's all for different values, and an observer sees only how many
reports contain each value. Then each of a user's reports changes different counts. The proof
reveals everything of each report but which of three values it contains, among other reports for
which this is unknown too.

It does not hold for an observer of single messages. It is an upper bound: dominating losses on a
grid (`losses.py`), with cuts charged to delta, and groups of cases treated as their worst one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dphh.mechanisms.ldp_trie.amplification import likely_range
from dphh.privacy.losses import (
    MOST_GRID_POINTS,
    FloatArray,
    Losses,
    losses_on_grid,
    standard_deviation,
)
from dphh.privacy.subset_selection import LevelReports, SubsetSelection

#: The part of delta for terms that sums leave out; it is added to their result.
_LEFT_OUT_PART = 1e-5
# More than a hundred times the relative error of SciPy's binomials, measured against 40 digits.
_BINOMIAL_ERROR = 1e-9
#: How many grid steps make the losses' standard deviation. Rounding losses to the grid adds 1 part
#: in 4 * 25^2 to their variance.
_STEPS_PER_DEVIATION = 25
_ROUNDING_FACTOR = 1 - 1e-12
#: The width of blocks of counts, in standard deviations: narrow for results, wide for searches.
#: Each block is treated as its worst count.
NARROW_BLOCKS, WIDE_BLOCKS = 0.15, 0.6


@lru_cache(maxsize=256)
def epsilon_of_subsets(
    mechanism: SubsetSelection,
    sent: LevelReports,
    replaced: int,
    block_width: float = NARROW_BLOCKS,
) -> float:
    """The epsilon if `replaced` reports of one user, for different values, change. `WIDE_BLOCKS`
    take a tenth of the time, and give a result half a percent higher. Infinite if the theorem gives
    nothing at this delta."""
    left_out = _LEFT_OUT_PART * sent.delta / (8 * replaced)
    one = _losses_of_triple(mechanism, sent, replaced, left_out, block_width)
    if one is None:
        return math.inf
    # The infinite loss: more reports than expected fell into earlier triples.
    return one.times(replaced, left_out / replaced).with_infinite_loss(left_out).epsilon(sent.delta)


def _losses_of_triple(
    mechanism: SubsetSelection,
    sent: LevelReports,
    replaced: int,
    left_out: float,
    block_width: float,
) -> Losses | None:
    """The losses of one replaced report. It falls on a triple of values, as T other reports do."""
    s, d, special = mechanism.domain, mechanism.size, 3 * replaced
    if s - special - d < 1:
        return None
    wrong_to_own = math.exp(-mechanism.epsilon) * _ROUNDING_FACTOR
    idle_to_own = wrong_to_own * (s - special - d + 1) / d
    own = 1 / (1 + wrong_to_own + idle_to_own)
    idle = own * idle_to_own
    # A report is uniform, or has the own value and a uniform set of d - 1 others. These are the
    # probabilities that it has exactly one of all triples' values, and that one in this triple.
    uniform = Fraction(d, s)
    marked = float((mechanism.own_chance - uniform) / (1 - uniform))
    plain = _probability_of_one_special(s, d, special)
    beside = _probability_of_one_special(s - 1, d - 1, special) if d > 1 else 0.0
    held = (
        _probability_of_one_special(s - 1, d - 1, special - 1) if d > 1 else 0.0
    )  # the own value is one of them
    throw_chance_if_held = (1 - marked) * plain * 3 * _ROUNDING_FACTOR
    throw_chance = throw_chance_if_held + marked * beside * 3 * _ROUNDING_FACTOR
    others = sent.number - replaced
    holders = min(3 * sent.users, others)
    taken = 0
    if replaced > 1:
        earlier = min(special * max(plain, beside, held) / _ROUNDING_FACTOR, 1.0)
        taken = likely_range(others, earlier, left_out / 2)[1]
    free = max(others - taken - holders, 0)
    held_by = max(min(others - taken, holders), 0)
    totals, shares = _thrown_in_blocks(
        free, throw_chance, held_by, throw_chance_if_held, left_out, block_width
    )
    found: list[tuple[FloatArray, FloatArray]] = []
    # Half of `left_out` for each of both parts of T, the third value's count and the first's; the
    # last two have at most three times and twice the binomial's probabilities.
    outside = 4 * left_out
    for total, share in zip(totals, shares, strict=True):
        rest, wrong, chances = _idle_counts(
            int(total), own, idle, wrong_to_own, left_out, block_width
        )
        chances *= share
        rare = chances < left_out * _LEFT_OUT_PART
        outside += float(np.sum(chances[rare]))
        found.append(_reports_over_two_values(rest[~rare], wrong[~rare], chances[~rare], left_out))
    law = np.concatenate([law for law, _ in found])
    losses = np.concatenate([loss for _, loss in found])
    return losses_on_grid(law, losses, outside, _grid_step(law, losses), 3 * _BINOMIAL_ERROR)


def _reports_over_two_values(
    rest: NDArray[np.int64], wrong: FloatArray, chances: FloatArray, left_out: float
) -> tuple[FloatArray, FloatArray]:
    """Probabilities and losses for `rest` reports over two values, one of them the user's: it has
    the first value with probability 1 - `wrong` under P, and `wrong` under Q.

    P and Q are f(x) 2/rest times the user's probability for each of the x reports of one value and
    the rest - x of the other, f the binomial. (`wrong` itself, and not its distance from 1/2, keeps
    the precision.)
    """
    reach = np.array(
        [likely_range(int(most), 0.5, left_out / 2) for most in rest], dtype=np.float64
    ).reshape(-1, 2)
    width = np.arange(float(np.max(reach[:, 1] - reach[:, 0], initial=0)) + 1)
    x, number = reach[:, :1] + width, rest[:, None].astype(np.float64)
    some = x <= number
    amiss = wrong[:, None]
    there, back = (
        (2 * ((1 - amiss) * one + amiss * other) / number)[some]
        for one, other in ((x, number - x), (number - x, x))
    )
    law = (chances[:, None] * np.asarray(binom.pmf(x, number, 0.5)))[some]
    return law * there, np.log(there) - np.log(back)


def _probability_of_one_special(domain: int, size: int, special: int) -> float:
    """The probability that a uniform set has a given one of `special` values and no other of them.

    C(domain - special, size - 1) / C(domain, size).
    """
    if size < 1 or domain - special < size - 1:
        return 0.0
    i = np.arange(special, dtype=np.float64)
    missed = float(np.sum(np.log1p(-(size - 1) / (domain - i))))
    return math.exp(missed) * size / (domain - size + 1)


def _thrown_in_blocks(
    free: int,
    throw_chance: float,
    held: int,
    throw_chance_if_held: float,
    left_out: float,
    block_width: float,
) -> tuple[NDArray[np.int64], FloatArray]:
    """T, how many other reports fall on the triple, in blocks: the least value of each block, and
    its probability."""
    one, of_one = _binomial_in_blocks(free, throw_chance, left_out, block_width)
    two, of_two = _binomial_in_blocks(held, throw_chance_if_held, left_out, block_width)
    totals, shares = np.add.outer(one, two).ravel(), np.outer(of_one, of_two).ravel()
    order = np.argsort(totals)
    totals, shares = totals[order], shares[order]
    mean = float(np.sum(totals * shares))
    sd = math.sqrt(max(float(np.sum(shares * (totals - mean) ** 2)), 0.0))
    edges = np.unique(
        np.searchsorted(totals, mean + sd * _block_starts_in_sds(mean, sd, block_width))
    )
    edges = np.unique(np.concatenate([[0], edges[edges < len(totals)]]))
    return totals[edges], np.add.reduceat(shares, edges)


def _block_starts_in_sds(mean: float, sd: float, block_width: float) -> FloatArray:
    """Where blocks start, in standard deviations from the mean: so fine that they change results by
    about a thousandth."""
    block_width = max(block_width, block_width / NARROW_BLOCKS * mean / (400 * sd)) if sd else 1.0
    return np.concatenate(
        [np.arange(-12.0, -4), np.arange(-4, 4, block_width), np.arange(4.0, 13, 2)]
    )


def _binomial_in_blocks(
    n: int, p: float, left_out: float, block_width: float
) -> tuple[NDArray[np.int64], FloatArray]:
    """Binomial(n, p) in blocks: the least value of each block, and its probability."""
    low, high = likely_range(n, p, left_out / 2)
    mean, sd = n * p, math.sqrt(n * p * (1 - p))
    inner = np.floor(mean + sd * _block_starts_in_sds(mean, sd, block_width)).astype(np.int64)
    starts = np.unique(np.clip(np.concatenate([[low], inner]), low, high))
    below = binom.cdf(np.append(starts[1:] - 1, n), n, p)
    first = binom.cdf(low - 1, n, p)
    return starts, np.diff(np.concatenate([[first], below]))


def _idle_counts(
    total: int, own: float, idle: float, wrong_to_own: float, left_out: float, block_width: float
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """For blocks of how many of `total` + 1 reports have the third value: a lower bound on how many
    are left to the first two, a lower bound on the probability that the user's has the wrong one,
    and the block's probability. `wrong_to_own`: the wrong value's probability over the own's.

    Given that count, the user's own report is among it with the same probability in both cases;
    otherwise it is among those left.
    """
    reports, other = total + 1, own * wrong_to_own
    low, high = likely_range(reports, 1 / 3, left_out / 2)
    y = np.arange(low, high + 1, dtype=np.float64)
    left = reports - y
    weight = (own + other) * left / 2 + idle * y
    law = np.asarray(binom.pmf(y, reports, 1 / 3)) * 3 / reports * weight
    mean, sd = reports / 3, math.sqrt(reports * 2 / 9)
    edges = np.floor(mean + sd * _block_starts_in_sds(mean, sd, block_width)).astype(np.int64) - low
    edges = np.unique(np.concatenate([[0], edges[(edges > 0) & (edges < len(y))]]))
    shares = np.add.reduceat(law, edges)
    ends = np.append(edges[1:], len(y)) - 1
    return (
        np.maximum(left[ends], 1).astype(np.int64),
        _probability_of_wrong_value(wrong_to_own, idle * y[edges] / weight[edges]),
        shares,
    )


def _probability_of_wrong_value(wrong_to_own: float, idle: FloatArray) -> FloatArray:
    """The probability that a report has the wrong one of two values, if it is uniform with
    probability `idle`."""
    by_itself = wrong_to_own / (1 + wrong_to_own)
    return np.asarray(by_itself + idle * (0.5 - by_itself))


def _grid_step(chances: FloatArray, losses: FloatArray) -> float:
    # Losses may be far apart with a small spread: a lower bound limits the number of points.
    points = float(np.max(losses) - np.min(losses)) / MOST_GRID_POINTS
    return max(
        min(max(standard_deviation(chances, losses) / _STEPS_PER_DEVIATION, 1e-7), 0.02), points
    )
