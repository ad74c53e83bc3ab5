"""Masses: their distribution in each class, by deconvolution of round 1's histogram, and those of
released grams, from both rounds' noised weights as one estimate, in plain weights.

A gram's mass is the sum of its holders' plain weights, 1/sqrt(n) of a user who holds n grams.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphh.privacy.search import ndtr
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS
from dphh.udfs.rules.forecast import COUNTS_DIVISOR

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
_TINY = 1e-300
#: Only estimates that are at most this many of their standard deviations above 0 are corrected by
#: the distribution of masses in their class.
CORRECTED_DEVIATIONS = 5.0


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
        fitted = prior * ((grams_by_bin / np.maximum(expected, _TINY)) @ likelihood.T)
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


def estimated_masses(
    first_weights: Floats,
    second_weights: Floats,
    second_scales: Floats,
    sigmas: tuple[float, float],
    distributions: MassDistributions,
    classes: Integers,
) -> Floats:
    """The mass of each gram, from its noised weights in both rounds: their precision-weighted mean,
    or, if this is near 0, the geometric mean of the masses by their posterior. `classes`: each
    gram's class. The other parameters are those of `precision_weighted_mean`."""
    mean, deviation = precision_weighted_mean(first_weights, second_weights, second_scales, sigmas)
    return corrected_masses(mean, deviation, distributions, classes)


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
