"""A released gram's mass: both rounds' noised weights as one estimate, in plain weights."""

from __future__ import annotations

import numpy as np

from dphh.privacy.forecast_rounds import Floats, Integers

#: Within so many of its own deviations from 0, the prior has a say.
UNSURE = 5.0


def estimated_masses(
    first: Floats,
    second: Floats,
    seen_first: float,
    seen_second: Floats,
    sigmas: tuple[float, float],
    prior: Floats,
    masses: Floats,
    group: Integers,
) -> Floats:
    """The posterior means of masses. `first`, `second`: both rounds' noised weights, in users.
    `seen_*`: the weight that a mass of 1 has in each round."""
    mean, deviation = precision_weighted(first, second, seen_first, seen_second, sigmas)
    result = mean.copy()
    for start in range(0, len(mean), 1 << 14):
        part = np.arange(start, min(start + (1 << 14), len(mean)))
        part = part[mean[part] <= UNSURE * deviation[part]]
        away = (mean[part, None] - masses[None, 1:]) / deviation[part, None]
        log_weight = np.log(prior[group[part], 1:] + 1e-300) - away**2 / 2
        weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
        weight /= weight.sum(1, keepdims=True)
        result[part] = np.exp(weight @ np.log(masses[1:]))
    return result


def precision_weighted(
    first: Floats,
    second: Floats,
    seen_first: float,
    seen_second: Floats,
    sigmas: tuple[float, float],
) -> tuple[Floats, Floats]:
    """The precision-weighted mean of both rounds' estimates, without a prior, and its standard
    deviation."""
    precision = (seen_first / sigmas[0]) ** 2 + (seen_second / sigmas[1]) ** 2
    mean = (seen_first * first / sigmas[0] ** 2 + seen_second * second / sigmas[1] ** 2) / precision
    return mean, 1 / np.sqrt(precision)
