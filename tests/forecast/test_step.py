"""A level's driver against an engine that answers from a table: units, thresholds, what it reports.

It sees public numbers alone, so an engine is made of them here, and told what it asks for.
"""

from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from dphh.mechanisms.ngrams.forecast import run as ladder_run
from dphh.mechanisms.ngrams.forecast import two_rounds
from dphh.mechanisms.ngrams.forecast.run import grams_masses_and_shares
from dphh.mechanisms.ngrams.forecast.shares import BudgetLeft
from dphh.mechanisms.ngrams.forecast.two_rounds import TwoRoundLevel
from dphh.mechanisms.ngrams.ladder.classes import ValidClasses
from dphh.mechanisms.ngrams.ladder.rungs import GRAM_NUMBER_BITS, first_ladder
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import Bins

SIGMA = 2**13
MASSES = np.array([3_000.0, 900.0, 700.0, 400.0, 350.0, 90.0, 80.0, 20.0, 20.0, 7.0])


@dataclass
class Told:
    """Answers with what is expected of it, and remembers what it was asked."""

    #: List sizes, in users, of so many and no others.
    lists: list[int] = field(default_factory=lambda: [0] * 19)
    #: Of the grams of each row, how many stand at 0 or below.
    negative: float = 0.5
    units: list[int] = field(default_factory=list)

    def first_round(
        self, host: Any, valid: ValidClasses, noise_bins: Bins, norm: int, purpose: str
    ) -> tuple[Integers, Integers]:
        self.valid, self.noise_bins = valid, noise_bins
        self.units.append(norm)
        self.counts = np.outer(valid.sizes, noise_bins.noise_probabilities).round().astype(np.int64)
        weighs = (self.foretold(valid) * norm).astype(np.int64)
        self.counts[np.arange(len(weighs)), noise_bins.bin_of(weighs)] += 1 + valid.sizes // 10
        each = int(norm / 50**0.5)
        return self.counts, np.array(self.lists) * each

    def foretold(self, valid: ValidClasses) -> Floats:
        """Most grams of a class are nobody's, and some weigh about this."""
        return valid.forecasts

    def second_round(
        self, host: Any, valid: ValidClasses, bins: Bins, weights: Integers, norm: int, purpose: str
    ) -> Integers:
        self.units.append(norm)
        self.weights = weights
        self.nonpositive = (self.counts * self.negative).astype(np.int64)
        return self.nonpositive

    def passing(
        self, host: Any, valid: ValidClasses, bins: Bins, thresholds: Integers, purpose: str
    ) -> Any:
        self.thresholds = thresholds
        group = self.valid.classes_of(KEYS)
        self.masses = self.valid.forecasts[group]
        first = (self.masses * self.units[0]).astype(np.int64)
        column = self.noise_bins.bin_of(first)
        weights = self.weights[group, column] / 64
        second = (self.masses * weights * self.units[1]).astype(np.int64)
        cell = group * len(self.noise_bins.starts) + column
        words = pa.nulls(len(KEYS), pa.string())
        return pa.table(
            {"key": KEYS, "word": words, "cell": cell, "first": first, "second": second}
        )


#: Three grams that are released, with the masses that their classes' forecasts say.
KEYS = np.array([0 << GRAM_NUMBER_BITS | 1, 1 << GRAM_NUMBER_BITS | 0, 1 << GRAM_NUMBER_BITS | 2])


def planned(mu: float = 0.25, spurious: float = 0.1) -> ForecastLevel:
    return ForecastLevel(2, 1 / mu, SIGMA, spurious)


def level_2(
    planned: ForecastLevel, levels: int = 4, left: float = 0.8, lift: Any = None
) -> TwoRoundLevel:
    words, total = first_ladder(MASSES), np.array([MASSES.sum()])
    return ladder_run.level_above(planned, words, MASSES, total, BudgetLeft(left, 2, levels), lift)


def drawn(level: TwoRoundLevel, engine: Told) -> Any:
    """The table of the level's release, as the journal stores it."""
    positions = Mock()
    with patch.multiple(
        two_rounds,
        first_round=engine.first_round,
        second_round=engine.second_round,
        passing=engine.passing,
    ):
        return ladder_run.draw_level_above(positions, level, Mock(), "test")


@pytest.mark.parametrize(("levels", "left", "mu"), [(2, 0.9, 0.25), (4, 0.8, 0.05), (7, 0.5, 1.0)])
def test_each_round_has_the_norm_that_its_share_pays_for_and_says_so(levels, left, mu):
    """What it reports is what later levels and the ledger take for drawn."""
    engine = Told()
    level = level_2(planned(mu), levels, left)
    _, _, shares = grams_masses_and_shares(drawn(level, engine))
    first, second = shares
    assert first == pytest.approx(BudgetLeft(left, 2, levels).first_round_share())
    assert min(first, second) > 0 and first + second <= left * (1 + 1e-12)
    for unit, share in zip(engine.units, shares, strict=True):
        assert unit / SIGMA <= mu * share**0.5 < (unit + 1.001) / SIGMA
    if levels == 2:
        assert first + second == pytest.approx(left)
    assert level.budget.after_level(sum(shares)).left == pytest.approx(left - first - second)
    assert engine.noise_bins.noise.sigma == SIGMA


@pytest.mark.parametrize("spurious", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("negative", [0.0, 0.45, 0.5, 1.0])
def test_thresholds_keep_the_rule_of_signs(spurious, negative):
    """With W = the sum of q over grams at 0 or below, r W <= b / 2, and no tail passes a half
    (`mechanisms/ngrams/forecast/plan_round.py`)."""
    engine = Told(negative=negative)
    drawn(level_2(planned(spurious=spurious)), engine)
    budget = spurious * len(MASSES)
    chances = norm.sf((engine.thresholds - 0.5) / SIGMA)  # that noise reaches a row's threshold
    assert chances.max() <= 0.5 + 1e-9
    assert (engine.thresholds > 0).all()
    assert (chances * engine.nonpositive).sum() <= budget / 2 * (1 + 1e-6)
    assert chances.max() > 0 and chances.max() <= max(budget / 2, 1e-9) * (1 + 1e-6)
    if negative:
        assert (chances * engine.nonpositive).sum() >= 0.02 * budget / 2


def test_scores_are_masses_in_plain_weights():
    """A mass shows in round 1 as what is left beside the list sizes, and in round 2 by its row's
    weight, where lists are so long that a weight takes from nobody."""
    engine = Told(lists=[0] * 18 + [10_000])
    keys, masses, _ = grams_masses_and_shares(drawn(level_2(planned()), engine))
    assert keys.tolist() == KEYS.tolist()
    assert masses == pytest.approx(engine.masses, rel=0.02)
    group = engine.valid.classes_of(KEYS)
    rows = group, engine.noise_bins.bin_of((engine.masses * engine.units[0]).astype(np.int64))
    assert (engine.weights[rows] > 16).any(), "round 2 hardly has a say"


def test_list_sizes_that_noise_may_have_made_are_none():
    """Two deviations of the noise, which are so many users."""
    (unit, _) = step_with(0).units
    users = 2 * SIGMA / (unit / 50**0.5)
    nobody, few, many = (step_with(int(share * users)).weights for share in (0, 0.9, 1.1))
    assert np.array_equal(nobody, few)
    assert not np.array_equal(nobody, many)


def step_with(users_of_three: int) -> Told:
    engine = Told(lists=[0, 0, users_of_three] + [0] * 16)
    drawn(level_2(planned()), engine)
    return engine


def test_what_is_journalled_of_a_level_comes_back_as_it_was():
    table = drawn(level_2(planned()), Told())
    keys, found, shares = grams_masses_and_shares(table.take(np.arange(table.num_rows)[::-1]))
    masses = dict(zip(table["key"].to_pylist(), table["mass"].to_pylist(), strict=True))
    assert shares == (masses.pop(-1), masses.pop(-2))
    assert dict(zip(keys.tolist(), found.tolist(), strict=True)) == masses
    assert keys.tolist() == KEYS.tolist()


def test_a_level_follows_from_the_one_below():
    level = level_2(planned())
    _, largest_mass = level.forecasts_and_largest_mass(np.zeros(0))
    assert (level.below, largest_mass) == (len(MASSES), MASSES.sum())
    keys, masses, shares = grams_masses_and_shares(drawn(level, Told()))
    ladder = first_ladder(MASSES).with_next(keys)
    budget = level.budget.after_level(sum(shares))
    above = ladder_run.level_above(planned(), ladder, masses, MASSES, budget)
    assert above.below == len(KEYS)
    assert above.forecasts_and_largest_mass(np.zeros(0))[1] == pytest.approx(masses.sum())
    left = level.budget.left - sum(shares)
    assert above.budget == replace(level.budget, level=3, left=left)
