"""The forecast ladder above level 1: two rounds a level; the driver sees public numbers alone.

forecast classes -> round 1 -> prior -> shares, weights and thresholds -> round 2 ->
the rule of signs -> release -> masses, the next level's forecast. `docs/forecast.md` has the
privacy statement; `dphh.privacy.forecast` the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dphh.classes import ValidClasses, valid_classes
from dphh.ladder import Integers, Rung, next_rung
from dphh.privacy.forecast.plan_round import RoundPlan, plan_round, saturation
from dphh.privacy.forecast.prior import blurred, deconvolved, mass_grid
from dphh.privacy.forecast.rounds import (
    LISTS_PART,
    SIGMA_GRID,
    Bins,
    bins,
    list_weight,
    unit_for,
)
from dphh.privacy.forecast.score import estimated_masses
from dphh.privacy.forecast.shares import Shares
from dphh.privacy.forecast.spurious import tails_by_signs

Floats = NDArray[np.float64]
#: Weights of round 2 are whole numbers: a plain weight is so many.
PLAIN = 64


@dataclass(frozen=True)
class FirstRound:
    """How many valid grams of each class stand in each bin of round 1, and noised list sizes."""

    counts: Integers
    lists: Integers


@dataclass(frozen=True)
class Passed:
    """What a level releases, spurious grams among it, ascending by key."""

    keys: Integers
    bins: Integers
    first: Integers
    second: Integers

    @classmethod
    def sorted_by_key(
        cls, keys: Integers, bins: Integers, first: Integers, second: Integers
    ) -> Passed:
        """Held and spurious grams, merged: their order must not say which is which."""
        order = np.argsort(keys)
        return cls(keys[order], bins[order], first[order], second[order])


class Rounds(Protocol):
    """What an engine does for a level. Only what these return leaves it."""

    def first_round(self, level: int, valid: ValidClasses, law: Bins, unit: int) -> FirstRound: ...

    def second_round(self, weights: Integers, unit: int) -> Integers:
        """Weights by (class, bin). Returns how many valid grams of each stand at 0 or below."""
        ...

    def passed(self, thresholds: Integers) -> Passed: ...


@dataclass(frozen=True, eq=False)
class Found:
    rung: Rung
    masses: Floats
    valid: int
    #: Of mu^2: what the rounds took.
    shares: tuple[float, float]
    units: tuple[int, int]
    predicted: float


def climb(
    words: Rung, masses: Floats, levels: int, left: float, mu: float, eta: float, rounds: Rounds
) -> Iterator[Found]:
    """Levels 2 to `levels`. `left` is the part of mu^2 that level 1 left over."""
    rung, before = words, np.array([masses.sum()])
    shares = Shares(left, 1, levels)
    law = bins()
    for level in range(2, levels + 1):
        shares = replace(shares, level=level)
        valid = valid_classes(rung, masses, before)
        if not len(valid):
            return
        found = _level(level, valid, rung, words, masses, shares, mu, eta, rounds, law)
        yield found
        shares = replace(shares, left=shares.left - sum(found.shares))
        rung, before, masses = found.rung, masses, found.masses


def _level(
    level: int,
    valid: ValidClasses,
    rung: Rung,
    words: Rung,
    masses: Floats,
    shares: Shares,
    mu: float,
    eta: float,
    rounds: Rounds,
    law: Bins,
) -> Found:
    budget = eta * len(rung)
    first_share = shares.first_round()
    unit = unit_for(1 / (mu * first_share**0.5))
    seen = rounds.first_round(level, valid, law, unit)
    first_sigma = SIGMA_GRID / unit

    seen_first = (1 - 1 / LISTS_PART) ** 0.5
    grid = mass_grid(first_sigma, masses.sum())
    prior = deconvolved(
        seen.counts.astype(float), valid.forecasts, grid, seen_first * grid / first_sigma
    )
    nulls = valid.sizes[:, None] * law.probabilities[None, :]
    size = list_weight(unit)
    lists = np.where(seen.lists > 2 * SIGMA_GRID, seen.lists / size, 0.0)
    saturated = saturation(lists)
    posterior = blurred(prior.by_bin).reshape(nulls.size, -1)

    def planned(share: float) -> RoundPlan:
        return plan_round(
            seen.counts.ravel().astype(float),
            nulls.ravel(),
            posterior,
            grid,
            1 / (mu * share**0.5),
            budget,
            saturated,
        )

    even = shares.even()
    second_share = shares.second_round(planned(even).finds, planned(2 * even).finds, len(rung))
    plan = planned(second_share)
    weights = np.maximum(1, np.rint(plan.weights * PLAIN)).astype(np.int64)
    unit2 = unit_for(1 / (mu * second_share**0.5))
    negatives = rounds.second_round(weights.reshape(nulls.shape), unit2)
    tails = tails_by_signs(plan.tails, negatives.ravel(), budget)
    thresholds = _thresholds(tails, law)
    passed = rounds.passed(thresholds.reshape(nulls.shape))

    second_sigma = SIGMA_GRID / unit2
    group = valid.of(passed.keys)
    g = weights.reshape(nulls.shape)[group, passed.bins] / PLAIN
    scores = estimated_masses(
        passed.first / unit,
        passed.second / unit2,
        seen_first,
        saturated(g),
        (first_sigma, second_sigma),
        prior.by_class,
        grid,
        group,
    )
    return Found(
        rung=next_rung(rung, words, passed.keys, "both"),
        masses=scores,
        valid=len(valid),
        shares=(first_share, second_share),
        units=(unit, unit2),
        predicted=plan.finds,
    )


def _thresholds(tails: Floats, law: Bins) -> Integers:
    """By the noise's exact tail: the least integers that noise reaches no more often than that."""
    noise = law.noise
    distinct, where = np.unique(tails, return_inverse=True)
    never = noise.reach + 1
    found = [
        never if tail < 1e-60 else noise.smallest_with_tail_at_most(Fraction(tail))
        for tail in distinct.tolist()
    ]
    return np.array(found, dtype=np.int64)[where]
