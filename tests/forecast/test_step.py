"""A level's driver against an engine that answers from a table: units, thresholds, what it reports.

It sees public numbers alone, so an engine is made of them here, and told what it asks for.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.stats import norm

from dphh.levels.ngrams import ForecastLevel
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease, LadderState, LevelToRun
from dphh.mechanisms.ngrams.forecast.shares import BudgetLeft
from dphh.mechanisms.ngrams.forecast.two_rounds import ReleasedGrams
from dphh.mechanisms.ngrams.ladder.classes import ValidClasses
from dphh.mechanisms.ngrams.ladder.rungs import GRAM_NUMBER_BITS, first_ladder
from dphh.privacy.forecast_rounds import Bins, Floats, Integers

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

    def run_first_round(
        self, valid: ValidClasses, noise_bins: Bins, norm: int
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

    def run_second_round(self, weights: Integers, norm: int) -> Integers:
        self.units.append(norm)
        self.weights = weights
        self.nonpositive = (self.counts * self.negative).astype(np.int64)
        return self.nonpositive

    def passing_grams(self, thresholds: Integers) -> ReleasedGrams:
        self.thresholds = thresholds
        group = self.valid.classes_of(KEYS)
        self.masses = self.valid.forecasts[group]
        first = (self.masses * self.units[0]).astype(np.int64)
        column = self.noise_bins.bin_of(first)
        weights = self.weights[group, column] / 64
        second = (self.masses * weights * self.units[1]).astype(np.int64)
        return ReleasedGrams(KEYS, column, first, second)


#: Three grams that are released, with the masses that their classes' forecasts say.
KEYS = np.array([0 << GRAM_NUMBER_BITS | 1, 1 << GRAM_NUMBER_BITS | 0, 1 << GRAM_NUMBER_BITS | 2])


def planned(mu: float = 0.25, spurious: float = 0.1) -> ForecastLevel:
    return ForecastLevel(2, 1 / mu, SIGMA, spurious)


def start(levels: int = 4, left: float = 0.8) -> LadderState:
    words, total = first_ladder(MASSES), np.array([MASSES.sum()])
    return LadderState(words, MASSES, total, BudgetLeft(left, 2, levels))


@pytest.mark.parametrize(("levels", "left", "mu"), [(2, 0.9, 0.25), (4, 0.8, 0.05), (7, 0.5, 1.0)])
def test_each_round_has_the_norm_that_its_share_pays_for_and_says_so(levels, left, mu):
    """What it reports is what later levels and the ledger take for drawn."""
    engine = Told()
    climb = start(levels, left)
    released = ForecastRelease.from_table(climb.next_level(planned(mu)).run(engine))
    first, second = released.shares
    assert first == pytest.approx(BudgetLeft(left, 2, levels).first_round_share())
    assert min(first, second) > 0 and first + second <= left * (1 + 1e-12)
    for unit, share in zip(engine.units, released.shares, strict=True):
        assert unit / SIGMA <= mu * share**0.5 < (unit + 1.001) / SIGMA
    if levels == 2:
        assert first + second == pytest.approx(left)
    assert climb.after_level(released).budget.left == pytest.approx(left - first - second)
    assert engine.noise_bins.noise.sigma == SIGMA


@pytest.mark.parametrize("spurious", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("negative", [0.0, 0.45, 0.5, 1.0])
def test_thresholds_keep_the_rule_of_signs(spurious, negative):
    """With W = the sum of q over grams at 0 or below, r W <= b / 2, and no tail passes a half
    (`mechanisms/ngrams/forecast/signs.py`)."""
    engine = Told(negative=negative)
    start().next_level(planned(spurious=spurious)).run(engine)
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
    released = ForecastRelease.from_table(start().next_level(planned()).run(engine))
    assert released.keys.tolist() == KEYS.tolist()
    assert released.masses == pytest.approx(engine.masses, rel=0.02)
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
    start().next_level(planned()).run(engine)
    return engine


def test_what_is_journalled_of_a_level_comes_back_as_it_was():
    table = start().next_level(planned()).run(Told())
    back = ForecastRelease.from_table(table.take(np.arange(table.num_rows)[::-1]))
    masses = dict(zip(table["key"].to_pylist(), table["mass"].to_pylist(), strict=True))
    assert back.shares == (masses.pop(-1), masses.pop(-2))
    assert dict(zip(back.keys.tolist(), back.masses.tolist(), strict=True)) == masses
    assert back.keys.tolist() == KEYS.tolist()


def test_levels_climb_one_by_one():
    climb = start()
    step = climb.next_level(planned())
    assert isinstance(step, LevelToRun)
    assert (step.below, step.largest_mass) == (len(MASSES), MASSES.sum())
    released = ForecastRelease.from_table(step.run(Told()))
    above = climb.after_level(released).next_level(planned())
    assert above.below == len(KEYS)
    assert above.largest_mass == pytest.approx(released.masses.sum())
    left = climb.budget.left - sum(released.shares)
    assert above.budget == replace(step.budget, level=3, left=left)
