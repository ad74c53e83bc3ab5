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
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dphh.mechanisms.ldp_trie.amplification import BINOMIAL_ERROR, likely_range
from dphh.privacy.losses import MOST_GRID_POINTS, Losses, losses_on_grid, standard_deviation
from dphh.udfs.arrays import Floats
from dphh.udfs.rules.reports import LevelReports, SubsetSelection

#: The part of delta for terms that sums leave out; it is added to their result.
_LEFT_OUT_PART = 1e-5
#: How many grid steps make the losses' standard deviation. Rounding losses to the grid adds 1 part
#: in 4 * 25^2 to their variance.
_STEPS_PER_DEVIATION = 25
_ROUND_DOWN_FACTOR = 1 - 1e-12  # a probability times this is rounded down
#: The width of blocks of counts, in standard deviations: narrow for results, wide for searches.
#: Each block is treated as its worst count.
NARROW_BLOCKS, WIDE_BLOCKS = 0.15, 0.6


@lru_cache(maxsize=256)
def epsilon_by_theorem_b(
    mechanism: SubsetSelection,
    sent: LevelReports,
    replaced: int,
    block_width: float = NARROW_BLOCKS,
) -> float:
    """The epsilon of a level's sums if `replaced` reports of one user change, all for different
    values. `WIDE_BLOCKS` take a tenth of the time, and give a result half a percent higher.
    Infinite if the theorem gives nothing at this delta."""
    left_out = _LEFT_OUT_PART * sent.delta / (8 * replaced)
    one = _losses_of_one_report(mechanism, sent, replaced, left_out, block_width)
    if one is None:
        return math.inf
    # The infinite loss is for the case that more reports than assumed throw into earlier triples.
    all_replaced = one.times(replaced, left_out / replaced)
    return replace(all_replaced, infinite=all_replaced.infinite + left_out).epsilon(sent.delta)


def _losses_of_one_report(
    mechanism: SubsetSelection,
    sent: LevelReports,
    replaced: int,
    left_out: float,
    block_width: float,
) -> Losses | None:
    """The losses of one replaced report. It throws into a triple of values, as T other reports do.
    None if the level has too few values for the triples."""
    s, d, triple_values = mechanism.domain, mechanism.size, 3 * replaced
    if s - triple_values - d < 1:
        return None
    wrong_to_own = math.exp(-mechanism.epsilon) * _ROUND_DOWN_FACTOR
    idle_to_own = wrong_to_own * (s - triple_values - d + 1) / d
    own = 1 / (1 + wrong_to_own + idle_to_own)
    idle = own * idle_to_own
    # A report is a uniform set, or its own value and a uniform set of d - 1 others. These are the
    # probabilities that the uniform set has one given value of all triples and no other: `plain`
    # without an own value, `beside` if that is in no triple, `held` if it is in one.
    uniform = Fraction(d, s)
    marked = float((mechanism.own_chance - uniform) / (1 - uniform))
    plain = _chance_of_one_triple_value(s, d, triple_values)
    beside = _chance_of_one_triple_value(s - 1, d - 1, triple_values) if d > 1 else 0.0
    held = _chance_of_one_triple_value(s - 1, d - 1, triple_values - 1) if d > 1 else 0.0
    holder_throw_chance = (1 - marked) * plain * 3 * _ROUND_DOWN_FACTOR
    throw_chance = holder_throw_chance + marked * beside * 3 * _ROUND_DOWN_FACTOR
    others = sent.reports - replaced
    holders = min(3 * sent.users, others)
    taken = 0
    if replaced > 1:
        earlier = min(triple_values * max(plain, beside, held) / _ROUND_DOWN_FACTOR, 1.0)
        taken = likely_range(others, earlier, left_out / 2)[1]
    totals, shares = _throws_in_blocks(
        max(others - taken - holders, 0),
        throw_chance,
        max(min(others - taken, holders), 0),
        holder_throw_chance,
        left_out,
        block_width,
    )
    found: list[tuple[Floats, Floats]] = []
    # At most 7 halves of `left_out` are cut: one of each part of T; three of the third value's
    # count, as its probabilities are at most three times the binomial's; two of the first's.
    outside = 4 * left_out
    for total, share in zip(totals, shares, strict=True):
        reports, wrong, chances = _third_value_in_blocks(
            int(total), own, idle, wrong_to_own, left_out, block_width
        )
        chances *= share
        kept = chances >= left_out * _LEFT_OUT_PART
        outside += float(np.sum(chances[~kept]))
        found.append(_losses_over_two_values(reports[kept], wrong[kept], chances[kept], left_out))
    law = np.concatenate([law for law, _ in found])
    losses = np.concatenate([loss for _, loss in found])
    return losses_on_grid(law, losses, outside, _grid_step(law, losses), 3 * BINOMIAL_ERROR)


def _losses_over_two_values(
    reports: NDArray[np.int64], wrong_chances: Floats, chances: Floats, left_out: float
) -> tuple[Floats, Floats]:
    """Probabilities, and the losses that have them, of reports that have one of two values. A case
    has so many `reports`, one of them the user's, the probability `chances`, and the probability
    `wrong_chances` that the user's has the wrong value: the second under P, the first under Q.

    P and Q are f(x) 2/n times the user's probability for each of the x reports of one value and the
    n - x of the other, f the binomial. (The wrong value's probability itself, and not its distance
    from 1/2, keeps the precision.)
    """
    reach = np.array(
        [likely_range(int(most), 0.5, left_out / 2) for most in reports], dtype=np.float64
    ).reshape(-1, 2)
    width = np.arange(float(np.max(reach[:, 1] - reach[:, 0], initial=0)) + 1)
    x, number = reach[:, :1] + width, reports[:, None].astype(np.float64)
    some = x <= number
    wrong = wrong_chances[:, None]
    there, back = (
        (2 * ((1 - wrong) * one + wrong * other) / number)[some]
        for one, other in ((x, number - x), (number - x, x))
    )
    law = (chances[:, None] * np.asarray(binom.pmf(x, number, 0.5)))[some]
    return law * there, np.log(there) - np.log(back)


def _chance_of_one_triple_value(domain: int, size: int, triple_values: int) -> float:
    """The probability that a uniform set of `size` of `domain` values has a given one of the values
    of all triples, and no other of these.

    C(domain - triple_values, size - 1) / C(domain, size).
    """
    if size < 1 or domain - triple_values < size - 1:
        return 0.0
    i = np.arange(triple_values, dtype=np.float64)
    missed = float(np.sum(np.log1p(-(size - 1) / (domain - i))))
    return math.exp(missed) * size / (domain - size + 1)


def _throws_in_blocks(
    non_holder_reports: int,
    throw_chance: float,
    holder_reports: int,
    holder_throw_chance: float,
    left_out: float,
    block_width: float,
) -> tuple[NDArray[np.int64], Floats]:
    """T, how many other reports throw into the triple, in blocks: the least value of each block,
    and its probability. Holders' reports are for values of the triple."""
    one, of_one = _binomial_in_blocks(non_holder_reports, throw_chance, left_out, block_width)
    two, of_two = _binomial_in_blocks(holder_reports, holder_throw_chance, left_out, block_width)
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


def _block_starts_in_sds(mean: float, sd: float, block_width: float) -> Floats:
    """Where blocks start, in standard deviations from the mean: so fine that they change results by
    about a thousandth."""
    block_width = max(block_width, block_width / NARROW_BLOCKS * mean / (400 * sd)) if sd else 1.0
    return np.concatenate(
        [np.arange(-12.0, -4), np.arange(-4, 4, block_width), np.arange(4.0, 13, 2)]
    )


def _binomial_in_blocks(
    n: int, p: float, left_out: float, block_width: float
) -> tuple[NDArray[np.int64], Floats]:
    """Binomial(n, p) in blocks: the least value of each block, and its probability."""
    low, high = likely_range(n, p, left_out / 2)
    mean, sd = n * p, math.sqrt(n * p * (1 - p))
    inner = np.floor(mean + sd * _block_starts_in_sds(mean, sd, block_width)).astype(np.int64)
    starts = np.unique(np.clip(np.concatenate([[low], inner]), low, high))
    below = binom.cdf(np.append(starts[1:] - 1, n), n, p)
    first = binom.cdf(low - 1, n, p)
    return starts, np.diff(np.concatenate([[first], below]))


def _third_value_in_blocks(
    other_throws: int,
    own: float,
    idle: float,
    wrong_to_own: float,
    left_out: float,
    block_width: float,
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """How many of `other_throws` + 1 reports have the triple's third value, in blocks. For each
    block: a lower bound on the number of reports that have one of the first two values; a lower
    bound on the probability that the user's has the wrong one of these; and the block's
    probability. The user's report has its own value with probability `own` and the third with
    `idle`; `wrong_to_own` is the wrong value's probability over the own's.

    Given that number, the user's report has the third value with the same probability in both
    cases; otherwise it has one of the first two.
    """
    reports, other = other_throws + 1, own * wrong_to_own
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
    # Where the user's report does not have the third value:
    wrong = wrong_to_own / (1 + wrong_to_own)
    return (
        np.maximum(left[ends], 1).astype(np.int64),
        wrong + idle * y[edges] / weight[edges] * (0.5 - wrong),
        shares,
    )


def _grid_step(chances: Floats, losses: Floats) -> float:
    # Where losses are far apart and deviate little, this least step limits the number of points.
    least_step = float(np.max(losses) - np.min(losses)) / MOST_GRID_POINTS
    step = min(max(standard_deviation(chances, losses) / _STEPS_PER_DEVIATION, 1e-7), 0.02)
    return max(step, least_step)
