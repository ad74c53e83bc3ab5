"""A level's driver against an engine that answers from a table: purses, thresholds, what it says.

It sees public numbers alone, so an engine is made of them here, and told what it asks for.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from dphh.mechanisms.ngrams import run as ladder_run
from dphh.mechanisms.ngrams.forecast import two_rounds
from dphh.mechanisms.ngrams.forecast.purses import SPURIOUS_PART_OF_TWO_ROUNDS
from dphh.mechanisms.ngrams.forecast.two_rounds import (
    Drawn,
    TwoRoundLevel,
    draw_two_rounds,
    users_counted,
)
from dphh.mechanisms.ngrams.ladder.classes import ValidClasses
from dphh.mechanisms.ngrams.ladder.rungs import GRAM_NUMBER_BITS, first_ladder
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.mechanisms.ngrams.run import full_purse, grams_of_level, table_of_grams
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import Bins
from dphh.udfs.rules.forecast import Spending

SIGMA = 2**13
MASSES = np.array([3_000.0, 900.0, 700.0, 400.0, 350.0, 90.0, 80.0, 20.0, 20.0, 7.0])


@dataclass
class Told:
    """Answers with what is expected of it, and remembers what it was asked."""

    #: List sizes, in users, of so many and no others.
    lists: list[float] = field(default_factory=lambda: [0.0] * 19)
    #: Users who can climb no further, in the highest eighth of purses; nobody else is seen.
    with_full_purses: float = 100.0
    #: Of the grams of each row, how many stand at 0 or below.
    negative: float = 0.5

    def first_round(
        self, host: Any, level: TwoRoundLevel, spending: Spending, purpose: str
    ) -> tuple[Integers, Floats]:
        valid, bins = level.valid, level.bins
        self.valid, self.bins, self.first = valid, bins, spending
        self.counts = np.outer(valid.sizes, bins.noise_probabilities).round().astype(np.int64)
        weighs = (self.foretold(valid) * spending.first**0.5).astype(np.int64)
        self.counts[np.arange(len(weighs)), bins.bin_of(weighs)] += 1 + valid.sizes // 10
        purses = np.zeros(8 * len(spending.parts))
        purses[7] = self.with_full_purses
        return self.counts, np.append(self.lists, purses)

    def foretold(self, valid: ValidClasses) -> Floats:
        """Most grams of a class are nobody's, and some weigh about this."""
        return valid.forecasts

    def later_round(
        self, host: Any, planned: Any, bins: Bins, spending: Spending, purpose: str
    ) -> Any:
        self.weights, self.second = self.in_matrix(planned, "weight"), spending
        self.nonpositive = (self.counts * self.negative).astype(np.int64)
        some = np.flatnonzero(self.nonpositive)[::-1]  # no row where there is none, in no order
        return pa.table({"cell": some, "nonpositive": self.nonpositive.ravel()[some]})

    def in_matrix(self, table: Any, column: str) -> Integers:
        assert table.column("cell").to_pylist() == [*range(self.counts.size)]
        values: Integers = table.column(column).to_numpy().reshape(self.counts.shape)
        return values

    @property
    def second_norm(self) -> float:
        """Of the users who are seen: what they spend in round 2."""
        purse = 7.5 / 8 * self.first.full - self.first.first
        return float((purse * self.second.parts[0] / 2**15) ** 0.5)

    def passing(
        self, host: Any, level: TwoRoundLevel, thresholds: Any, is_late: bool, purpose: str
    ) -> Any:
        self.thresholds = self.in_matrix(thresholds, "threshold")
        group = self.valid.classes_of(KEYS)
        self.masses = self.valid.forecasts[group]
        first = (self.masses * self.first.first**0.5).astype(np.int64)
        column = self.bins.bin_of(first)
        weights = self.weights[group, column] / 64
        second = (self.masses * weights * self.second_norm).astype(np.int64)
        cell = group * len(self.bins.starts) + column
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
    full = full_purse(planned, left)
    purses = {"purse": full, "likely": 0.99 * full, "levels": levels}
    return ladder_run.level_above(planned, words, MASSES, total, lift, **purses)


def drawn(level: TwoRoundLevel, engine: Told) -> Drawn:
    with patch.multiple(
        two_rounds,
        first_round=engine.first_round,
        draw_later_round=engine.later_round,
        draw_passing=engine.passing,
    ):
        return draw_two_rounds(Mock(), level, "test")


@pytest.mark.parametrize(("levels", "left", "mu"), [(2, 0.9, 0.25), (4, 0.8, 0.05), (7, 0.5, 1.0)])
def test_purses_are_what_is_left_and_no_round_asks_for_more(levels, left, mu):
    """What the kernel is told: a full purse; a quarter of an even share; parts of what is left."""
    engine = Told()
    drawn(level_2(planned(mu), levels, left), engine)
    assert engine.first.full == engine.second.full
    whole = (mu * SIGMA) ** 2
    assert engine.first.full <= left * whole < engine.first.full + 1.01
    assert engine.first.first == engine.second.first == int(whole / levels / 4)
    parts = engine.second.parts
    assert len(parts) == len(engine.first.parts) == levels - 1
    assert all(0 < part <= 2**15 for part in parts)
    # The further up a user can climb, the more is kept.
    assert list(parts) == sorted(parts, reverse=True)
    assert engine.second.saturation == 2 * 64**2 and not engine.second.late
    assert engine.second.level == 2
    assert engine.bins.noise.sigma == SIGMA


@pytest.mark.parametrize("share", [0.3, 1 - 1 / 21 / 5, 0.999])
@pytest.mark.parametrize("total_sigma", [0.03, 0.7, 12.345, 900.1])
def test_a_full_purse_is_no_more_than_is_priced(share, total_sigma):
    """In exact arithmetic, and hardly less."""
    level = ForecastLevel(2, total_sigma, SIGMA, 0.1)
    exact = (Fraction(SIGMA) / Fraction(total_sigma)) ** 2 * Fraction(share)
    assert exact * (1 - Fraction(2, 10**9)) - 1 <= full_purse(level, share) <= exact


@pytest.mark.parametrize("spurious", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("negative", [0.0, 0.45, 0.5, 1.0])
def test_thresholds_keep_the_rule_of_signs(spurious, negative):
    """With W = the sum of q over grams at 0 or below, r W <= b / 2, and no tail passes a half
    (`mechanisms/ngrams/forecast/plan_round.py`). Of what a level may release, the two rounds have
    a fixed part; the late round has the rest."""
    engine = Told(negative=negative)
    drawn(level_2(planned(spurious=spurious)), engine)
    budget = SPURIOUS_PART_OF_TWO_ROUNDS * spurious * len(MASSES)
    chances = norm.sf((engine.thresholds - 0.5) / SIGMA)  # that noise reaches a row's threshold
    assert chances.max() <= 0.5 + 1e-9
    assert (engine.thresholds > 0).all()
    assert (chances * engine.nonpositive).sum() <= budget / 2 * (1 + 1e-6)
    assert chances.max() > 0 and chances.max() <= max(budget / 2, 1e-9) * (1 + 1e-6)
    if negative:
        assert (chances * engine.nonpositive).sum() >= 0.02 * budget / 2


def test_scores_are_masses_in_plain_weights():
    """A mass shows in round 1 as what is left beside the numbers of users, and in round 2 by its
    row's weight, where lists are so long that a weight takes from nobody."""
    engine = Told(lists=[0] * 18 + [10_000])
    found = drawn(level_2(planned()), engine)
    assert found.passed["key"].to_pylist() == KEYS.tolist()
    assert found.masses == pytest.approx(engine.masses, rel=0.02)
    group = engine.valid.classes_of(KEYS)
    rows = group, engine.bins.bin_of((engine.masses * engine.first.first**0.5).astype(np.int64))
    assert (engine.weights[rows] > 16).any(), "round 2 hardly has a say"


def test_a_mean_purse_follows_from_noised_numbers_alone():
    """Where these tell nothing, it is what is likely; else the middles of the parts of a purse."""
    nobody, some = Told(with_full_purses=0.0), Told()
    level = level_2(planned())
    assert drawn(level, nobody).mean_purse == level.likely_purse
    assert drawn(level, some).mean_purse == pytest.approx(7.5 / 8 * level.full_purse)


def test_numbers_of_users_that_noise_may_have_made_are_none():
    """Two deviations of the noise, in units of what a user adds."""
    bins, host = Bins(SIGMA), Mock()
    noisy = [2 * SIGMA, 2 * SIGMA + 1, -(5**9), 10**6]
    host.take.return_value = pa.table(
        {"bin": [1, 0, 3, 2], "noisy": [noisy[i] for i in (1, 0, 3, 2)]}
    )
    assert users_counted(host, bins, 4, 40, "t").tolist() == [
        0,
        (2 * SIGMA + 1) / 40,
        0,
        10**6 / 40,
    ]
    assert users_counted(host, bins, 4, 0, "t")[1] == 2 * SIGMA + 1  # an empty purse counts nobody


def test_what_is_journalled_of_a_ladder_comes_back_as_it_was():
    parts = [
        table_of_grams(2, KEYS, np.array([3.0, 2.0, 1.0])),
        table_of_grams(3, KEYS[:1], np.array([0.5])),
        table_of_grams(2, KEYS[:2] + 7, np.array([9.0, 8.0]), late=1),
        table_of_grams(3, KEYS[:0], np.array([]), late=1),
    ]
    table = pa.concat_tables(parts)
    mixed = table.take(np.arange(table.num_rows)[::-1])

    def read(level: int, late: int) -> tuple[Any, ...]:
        return tuple(column.tolist() for column in grams_of_level(mixed, level, late))

    assert read(2, late=0) == (KEYS.tolist(), [3.0, 2.0, 1.0])
    assert read(2, late=1) == ((KEYS[:2] + 7).tolist(), [9.0, 8.0])
    assert read(3, late=0) == (KEYS[:1].tolist(), [0.5])
    assert read(3, late=1) == read(4, late=0) == read(4, late=1) == ([], [])


def test_a_level_follows_from_the_one_below():
    level = level_2(planned())
    assert (level.below, level.largest_mass) == (len(MASSES), MASSES.sum())
    assert level.levels_after == 2
    found = drawn(level, Told())
    ladder = first_ladder(MASSES).with_next(KEYS)
    three = ForecastLevel(3, 4.0, SIGMA, 0.1)
    purses = {"purse": level.full_purse, "likely": found.mean_purse / 2, "levels": 4}
    above = ladder_run.level_above(three, ladder, found.masses, MASSES, **purses)
    assert above.below == len(KEYS)
    assert above.largest_mass == pytest.approx(found.masses.sum())
    assert (above.full_purse, above.levels_after) == (level.full_purse, 1)
    assert above.likely_purse == found.mean_purse / 2
    assert above.first == level.first
