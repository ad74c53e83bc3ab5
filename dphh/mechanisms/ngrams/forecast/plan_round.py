"""What round 1 shows of masses, and the plan of the rounds after it.

A gram's mass is the sum of its holders' plain weights, 1/sqrt(n) of a user who holds n grams. How
masses are distributed in each class follows by deconvolution of round 1's histogram; the masses of
released grams, in plain weights, from both rounds' noised weights as one estimate.

A plan of a later round is a weight for each row, and the probability that noise passes its
threshold. A row is some cells, such as one class of forecast and one bin of round 1's noised
weight. Let n be how many valid grams it has, a how many it would have if all were absent, and pi
its posterior over masses m. A gram of mass m and weight g will be seen at h = m sat(g) / sigma
deviations of the noise.

Thresholds: the least z with  n / a  sum pi exp(z h - h^2 / 2) >= nu,  a likelihood ratio that is
the same in all rows, so that the expected absent grams above them, sum of a Q(z), are at most
`most_spurious`.
Weights: of each row the g that maximises  n sum pi Phi(h(g) - z) - price n E[m] g^2,  at a price
that is the same in all rows, so that the mass-weighted mean of g^2 is 1. Both by turns.

The rule of signs (`tails_by_signs`): E[spurious grams] <= eta |S_{k-1}| = b, whatever the planned
tails.

An absent gram is a valid gram that no user holds. Given round 1, each cell has a planned tail q:
how often noise should pass its threshold. How many absent grams a cell has is not public. But
whether an absent gram's noise in round 2 is above 0 is a coin, independent of how far from 0 it is.
So absent grams that are not above 0 count those that are. With W the sum of q over all valid grams
of noised weight 0 or less, multiply every tail by

    r = b / (2 W + 2 max q),    and let no tail pass a half.

Theorem. E[spurious | round 1] <= b, for any q that round 1 and earlier releases decide, any
weights, and any users.

Proof. Fix round 1, so that q and all users' weights are fixed, and fix the noise of all grams
that a user holds. Let P = P[noise > 0] <= 1/2, and A_i the event that absent gram i has noise above
0; W_-i is W without i's own part. Given A_i, i passes a threshold of tail t <= r q_i with
probability t / P, independently of all A. As i adds to W only if not A_i,

    E[spurious] <= sum_i E[1{A_i} r q_i] / P = b/2 sum_i q_i E[1{A_i} / (max q + W_-i)] / P
                 = b/2 sum_i q_i E[1 / (max q + W_-i)]
                 = b/2 sum_i q_i E[1{not A_i} / (max q + W_-i)] / (1 - P)
                <= b E[sum over i not above 0 of q_i / (max q + W - q_i)],

by independence of A_i and W_-i (twice), and 1 - P >= 1/2. Each q_i <= max q, and these q_i sum to
W less what held grams add, so the last sum is at most W / W = 1, or 0. A half as the largest tail
keeps every threshold above 0, where passing implies A_i; a smaller tail only loses grams.

The theorem asks nothing of how q was found. In particular the prior, the weights and the share of
the budget may all come from the same histogram as the thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dphh.privacy.search import ndtr
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS
from dphh.udfs.rules.forecast import COUNTS_DIVISOR, MEAN_LIST_SIZES

#: In round 1, the L2 norm that a user spends on grams, of 1 in all: a gram of mass m has the mean
#: weight `ROUND_1_SCALE` m. The rest (of the squared norm) goes to a bin of list sizes.
ROUND_1_SCALE: float = (1 - 2 / COUNTS_DIVISOR) ** 0.5
#: The distance between neighbouring masses of the grid, as a difference of natural logarithms.
MASS_STEP = 0.25
#: The least mass of the grid after 0, in sigmas of round 1. A smaller one is too
#: close to 0 to be distinguished from it.
LEAST_MASS = 0.05
EM_PASSES = 60
#: EM is smoothed: the average of neighbouring masses' shares counts as much as this many grams.
PSEUDO_GRAMS = 20.0
_LEAST_EXPECTED = 1e-300
#: Only estimates that are at most this many of their standard deviations above 0 are corrected by
#: the distribution of masses in their class.
CORRECTED_DEVIATIONS = 5.0

#: The weights from which each row's is chosen.
WEIGHTS: Floats = np.exp(np.arange(-3.5, 4.01, 0.2))
#: The thresholds from which each row's is chosen, in standard deviations of the noise; a further
#: index stands for a threshold that is never passed. The least one has a tail of a quarter, because
#: the rule of signs may lower thresholds, to a tail of a half at most.
THRESHOLDS: Floats = np.arange(0.6875, 9.01, 0.0625)
ALTERNATIONS = 3
_BISECTIONS = 40
_TINY = 1e-200

#: The largest tail probability of a row's threshold.
LARGEST_TAIL = 0.5

WeightScaling = Callable[[Floats], Floats]


@dataclass(frozen=True)
class MassDistributions:
    """A grid of masses (the first is 0, for absent grams), the distribution of masses in each
    class, and the posterior in each of its bins."""

    masses: Floats
    #: Its shape: (classes, masses).
    by_class: Floats
    #: Its shape: (classes, bins, masses).
    by_bin: Floats


def mass_grid(sigma: float, largest_mass: float) -> Floats:
    lowest = LEAST_MASS * sigma
    count = int(np.ceil(np.log(max(largest_mass / lowest, 2.0)) / MASS_STEP)) + 1
    grid: Floats = np.r_[0.0, lowest * np.exp(MASS_STEP * np.arange(count))]
    return grid


def mass_distributions(
    grams_by_bin: Floats, forecasts: Floats, sigma: float, largest_mass: float
) -> MassDistributions:
    """The distributions of masses, by EM on the histogram of each class. `grams_by_bin`: (classes,
    bins), from round 1, whose noise has `sigma`. `forecasts`: each class's forecast mass."""
    masses = mass_grid(sigma, largest_mass)
    means = ROUND_1_SCALE * masses / sigma
    likelihood = (
        np.diff(ndtr(np.r_[BIN_STARTS_IN_SIGMAS, np.inf][None, :] - means[:, None]), axis=1) + 1e-12
    )
    # The first guess: a wide peak at the forecast; with a forecast below one user, mostly mass 0.
    away = np.log(masses[None, 1:] / forecasts[:, None])
    hill = np.exp(-(((away + 0.5) / 1.2) ** 2) / 2) + 1e-6
    hill /= hill.sum(1, keepdims=True)
    held = np.minimum(0.95, 0.9 * forecasts)[:, None]
    prior = np.hstack([1 - held, held * hill])
    total = grams_by_bin.sum(1, keepdims=True)
    for _ in range(EM_PASSES):
        expected = prior @ likelihood
        fitted = prior * ((grams_by_bin / np.maximum(expected, _LEAST_EXPECTED)) @ likelihood.T)
        near = prior.copy()
        near[1:] += prior[:-1]
        near[:-1] += prior[1:]
        near /= near.sum(1, keepdims=True)
        prior = (fitted + PSEUDO_GRAMS * near) / (total + PSEUDO_GRAMS)
        prior /= prior.sum(1, keepdims=True)
    by_bin = prior[:, None, :] * likelihood.T[None, :, :]
    by_bin /= by_bin.sum(2, keepdims=True)
    return MassDistributions(masses, prior, by_bin)


def widened_posteriors(by_bin: Floats) -> Floats:
    """Widen each posterior a little, because a deconvolution is overconfident."""
    wide = by_bin.copy()
    held = by_bin[..., 1:]
    padded = np.pad(held, [(0, 0)] * (held.ndim - 1) + [(1, 1)], mode="edge")
    wide[..., 1:] = padded[..., :-2] / 4 + held / 2 + padded[..., 2:] / 4
    wide /= wide.sum(-1, keepdims=True)
    return wide


def corrected_masses(
    mean: Floats, deviation: Floats, distributions: MassDistributions, classes: Integers
) -> Floats:
    """These estimates of masses, with their standard deviations; but where one is near 0, the
    geometric mean of the masses by their posterior in the gram's class."""
    masses, by_class = distributions.masses, distributions.by_class
    result = mean.copy()
    for start in range(0, len(mean), 1 << 14):
        part = np.arange(start, min(start + (1 << 14), len(mean)))
        part = part[mean[part] <= CORRECTED_DEVIATIONS * deviation[part]]
        away = (mean[part, None] - masses[None, 1:]) / deviation[part, None]
        log_weight = np.log(by_class[classes[part], 1:] + 1e-300) - away**2 / 2
        weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
        weight /= weight.sum(1, keepdims=True)
        result[part] = np.exp(weight @ np.log(masses[1:]))
    return result


def precision_weighted_mean(
    first_weights: Floats,
    second_weights: Floats,
    second_scales: Floats,
    sigmas: tuple[float, float],
) -> tuple[Floats, Floats]:
    """The precision-weighted mean of both rounds' estimates of each mass, and its standard
    deviation. Weights and sigmas are in users; `second_scales`: what a mass of 1 adds in round
    2."""
    first, second = ROUND_1_SCALE * first_weights, second_scales * second_weights
    precision = (ROUND_1_SCALE / sigmas[0]) ** 2 + (second_scales / sigmas[1]) ** 2
    mean = (first / sigmas[0] ** 2 + second / sigmas[1] ** 2) / precision
    return mean, 1 / np.sqrt(precision)


@dataclass(frozen=True, eq=False)
class Rows:
    """The cells of a level in rows. A round treats all grams of a row alike."""

    #: The row of each cell.
    of_cell: Integers
    #: How many valid grams each row has, and how many it would have if nobody held any.
    sizes: Floats
    sizes_by_noise: Floats
    #: The posterior over masses in each row: (rows, masses), the first of which is 0.
    posteriors: Floats


@dataclass(frozen=True)
class RoundPlan:
    """For each row: the weight and the threshold's tail probability; and the expected number of
    releases."""

    weights: Floats
    tails: Floats
    finds: float


def weight_scaling(users_by_list_size: Floats, saturation: float = 0.0) -> WeightScaling:
    """A function from planned weights g to the average weight that a gram really gets, after users
    scale their weights to the norm, relative to a plain weight.

    A gram of weight g among n - 1 others of weight 1 gets g / sqrt(g^2 + n - 1); a user whose
    squares sum to less than `saturation` spends that much less. Users are met once for each gram
    they hold.
    """
    sizes = MEAN_LIST_SIZES
    met = np.maximum(users_by_list_size, 0.0) * sizes
    if met.sum() == 0:
        return lambda g: g
    met = met / met.sum()
    plain = (met / np.sqrt(sizes)).sum()

    def scaled_weights(planned_weights: Floats) -> Floats:
        g = planned_weights[:, None]
        squares = np.maximum(g**2 + sizes - 1, saturation)
        scaled: Floats = (met * g / np.sqrt(squares)).sum(1) / plain
        return scaled

    return scaled_weights


def plan_round(
    rows: Rows, masses: Floats, sigma: float, most_spurious: float, scaled_weights: WeightScaling
) -> RoundPlan:
    """The plan of a round with at most `most_spurious` expected spurious grams."""
    some = rows.sizes > 0  # rows without a gram are left out: round 1 shows which are empty
    n, absent = rows.sizes[some], rows.sizes_by_noise[some] + _TINY
    held, mass = widened_posteriors(rows.posteriors)[some][:, 1:], masses[1:]
    choice = _AlternatingChoice(n, absent, held, mass, sigma, most_spurious, scaled_weights)
    weight = choice.first_weights()
    for left in reversed(range(ALTERNATIONS)):
        better = choice.best_weights(choice.best_thresholds(weight))
        weight = (weight + better) // 2 if left else better
    threshold = choice.best_thresholds(weight)
    weights, tails = np.full(len(some), WEIGHTS[0]), np.zeros(len(some))
    weights[some], tails[some] = WEIGHTS[weight], choice.tails[threshold]
    return RoundPlan(weights, tails, choice.expected_finds(weight, threshold))


class _AlternatingChoice:
    """Alternates between choosing weights and thresholds, as indices in WEIGHTS and THRESHOLDS, for
    rows that are not empty."""

    def __init__(
        self,
        n: Floats,
        absent: Floats,
        held: Floats,
        mass: Floats,
        sigma: float,
        most_spurious: float,
        scaled_weights: WeightScaling,
    ) -> None:
        self.n, self.absent, self.held, self.most_spurious = n, absent, held, most_spurious
        #: How often noise alone passes each of the thresholds.
        self.tails: Floats = np.r_[ndtr(-THRESHOLDS), 0.0]
        self.mean = held @ mass / sigma
        seen = (scaled_weights(WEIGHTS)[:, None] * mass / sigma)[:, :, None]
        self.passes = ndtr(seen - THRESHOLDS)
        near = np.minimum(seen, 14.0)  # a gram that is seen this far above 0 passes
        self.ratios = np.exp(THRESHOLDS * near - near**2 / 2)

    def first_weights(self) -> Integers:
        """The first weights, largest for grams whose mass is near the noise's standard deviation:
        (E[m] / sigma)^(+-1/2)."""
        wanted = np.minimum(self.mean, 1 / np.maximum(self.mean, _TINY)) ** 0.5
        return np.searchsorted(WEIGHTS, wanted).clip(max=len(WEIGHTS) - 1)

    def best_thresholds(self, weight_indices: Integers) -> Integers:
        """For each row the index of its threshold, given the index of its weight."""
        ratio = np.empty((len(self.n), len(THRESHOLDS)))
        for g in np.unique(weight_indices):
            ratio[weight_indices == g] = self.held[weight_indices == g] @ self.ratios[g]
        ratio = np.log(ratio + _TINY) + np.log(self.n / self.absent)[:, None]

        def thresholds_at(least_log_ratio: float) -> Integers:
            below: Integers = (ratio < least_log_ratio).sum(1)
            return below

        def keeps_bound(least_log_ratio: float) -> bool:
            tails = self.tails[thresholds_at(least_log_ratio)]
            return bool((self.absent * tails).sum() <= self.most_spurious)

        return thresholds_at(_least_sufficient(keeps_bound, -60.0, 600.0))

    def best_weights(self, threshold_indices: Integers) -> Integers:
        """For each row the index of its weight, given the index of its threshold."""
        found = np.zeros((len(self.n), len(WEIGHTS)))
        for z in np.unique(threshold_indices[threshold_indices < len(THRESHOLDS)]):
            rows = threshold_indices == z
            found[rows] = self.held[rows] @ self.passes[:, :, z].T
        found *= self.n[:, None]
        mass = self.n * self.mean
        cost = mass[:, None] * WEIGHTS**2

        def weights_at(log_price: float) -> Integers:
            best: Integers = (found - np.exp(log_price) * cost).argmax(1)
            return best

        def keeps_norm(log_price: float) -> bool:
            return bool((mass * WEIGHTS[weights_at(log_price)] ** 2).sum() <= mass.sum())

        return weights_at(_least_sufficient(keeps_norm, -40.0, 20.0))

    def expected_finds(self, weight_indices: Integers, threshold_indices: Integers) -> float:
        some = np.flatnonzero(threshold_indices < len(THRESHOLDS))
        passing = self.passes[weight_indices[some], :, threshold_indices[some]]
        return float((self.n[some, None] * self.held[some] * passing).sum())


def _least_sufficient(suffices: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def tails_by_signs(planned_tails: Floats, nonpositive: Integers, most_spurious: float) -> Floats:
    """The planned tail probability of each row, scaled so that the expected number of spurious
    grams is at most `most_spurious`, b of the theorem. `nonpositive`: how many valid grams of each
    row have a noised weight of 0 or less."""
    most = planned_tails.max(initial=0.0)
    if most == 0:
        return planned_tails
    r = most_spurious / (2 * (planned_tails * nonpositive).sum() + 2 * most)
    tails: Floats = np.minimum(r * planned_tails, LARGEST_TAIL)
    return tails
