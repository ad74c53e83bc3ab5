"""The forecast ladder on NumPy arrays: an engine in a page, with level 1's rounds of set union."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease, Passed, Step, begun, climb
from dphh.mechanisms.ngrams.forecast.price import budget_of, words_rounds
from dphh.mechanisms.ngrams.forecast.words_rounds import WordsRounds, words_rounds_run
from dphh.mechanisms.ngrams.ladder.rungs import PAIR
from dphh.mechanisms.ngrams.price import price_ngrams
from dphh.mechanisms.set_union.adaptive import AdaptiveRounds, Ran
from dphh.privacy.following import Following, parts_of_round
from dphh.udfs.draws.noise import draw_rounded_gaussian
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.contributions import Followed, Held, Weigh, contributions, equal_weights
from dphh.udfs.kernel.two_rounds import PlainWeights
from tests.forecast.rounds_in_arrays import Rule, TwoRounds

Integers = NDArray[np.int64]
SYSTEM = SystemRandomness()
#: The noise's table where no price says which.
SIGMA_GRID = 2**15


@dataclass
class Positions:
    """Where what grams stand: texts one after the other, with a gap between two."""

    position: Integers
    user: Integers
    gram: Integers
    users: int

    @classmethod
    def of_texts(cls, user: Integers, text: Integers, word: Integers) -> Positions:
        gaps = np.r_[0, np.cumsum(text[1:] != text[:-1])]
        return cls(np.arange(len(word)) + gaps, user, word, int(user.max(initial=-1)) + 1)

    def only(self, some: Integers, gram: Integers) -> Positions:
        return Positions(self.position[some], self.user[some], gram, self.users)


class InMemory(TwoRounds):
    """An engine in a page: sums of users' weights, by NumPy, and where what passed stands."""

    def __init__(self, positions: Positions) -> None:
        super().__init__(self._add_up, SYSTEM, "test")
        self.at = positions
        self.occurrences: list[int] = []
        self.spurious: list[int] = []

    def _add_up(self, rule: Rule) -> tuple[Integers, Integers]:
        at = self.at
        self.pairs = np.flatnonzero(at.position[1:] == at.position[:-1] + 1)
        key = (at.gram[self.pairs] << PAIR) | at.gram[self.pairs + 1]
        keys, self.number = np.unique(key, return_inverse=True)
        self.held = keys
        holder, held = distinct_pairs(at.user[self.pairs], self.number, len(keys))
        of = Held(keys[held], holder, np.bincount(holder, minlength=at.users), np.empty(0))
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, held, rule(of))
        if isinstance(rule, PlainWeights):
            sizes, weights = rule.list_sizes(of.number)
            lists = np.bincount(-1 - sizes, weights).astype(np.int64)
            some = np.flatnonzero(lists)
            keys, sums = np.r_[-1 - some, keys], np.r_[lists[some], sums]
        return keys, sums

    def passed(self, thresholds: Integers) -> Passed:
        passed = super().passed(thresholds)
        self.move_to(passed)
        self.spurious.append(int((~np.isin(passed.keys, self._keys)).sum()))
        return passed

    def move_to(self, passed: Passed) -> None:
        """Where what was released stands, of what was added up last."""
        held = self.held[self.number]
        at = np.minimum(np.searchsorted(passed.keys, held), max(len(passed.keys) - 1, 0))
        there = np.flatnonzero(passed.keys[at] == held if len(passed.keys) else held < 0)
        self.at = self.at.only(self.pairs[there], at[there])
        self.occurrences.append(len(there))


def noise(count: int, sigma: int = SIGMA_GRID) -> Integers:
    return draw_rounded_gaussian(SYSTEM, sigma, count, "test")


def distinct_pairs(user: Integers, key: Integers, keys: int) -> tuple[Integers, Integers]:
    both = np.unique(user * max(keys, 1) + key)
    return both // max(keys, 1), both % max(keys, 1)


@dataclass
class Run:
    found: list[int]
    #: How often the released grams occur.
    occurrences: list[int]
    spurious: list[int]
    levels: list[tuple[Step, ForecastRelease]]

    @property
    def total(self) -> int:
        return sum(self.found)


def forecast_ladder(
    texts: Positions, epsilon: float, delta: float, levels: int, max_items: int, eta: float = 0.01
) -> Run:
    number, found, masses, used = words(texts, epsilon, delta, levels, max_items)
    gram = np.where(found, np.cumsum(found) - 1, -1)[number]
    there = np.flatnonzero(gram >= 0)
    engine = InMemory(texts.only(there, gram[there]))
    budget = budget_of(epsilon, delta, levels, max_items, Counting())
    grid = words_rounds(budget, levels, max_items)[0].sigma_grid
    start = begun(len(masses), masses, 1 - used / levels, levels, 1 / budget.sigma, eta, grid)
    above = list(climb(start, engine))
    return Run(
        [len(masses), *(len(released.keys) for _, released in above)],
        [len(there), *engine.occurrences],
        [0, *engine.spurious],
        above,
    )


def words(
    texts: Positions, epsilon: float, delta: float, max_n: int, max_items: int
) -> tuple[Integers, NDArray[np.bool_], NDArray[np.float64], float]:
    """Level 1: each position's word number, which words are found, their masses, and what of the
    level's share was used."""
    keys, number = np.unique(texts.gram, return_inverse=True)
    holder, held = distinct_pairs(texts.user, number, len(keys))
    masses, told = np.zeros(len(keys)), np.zeros(len(keys), dtype=np.int64)
    ran: list[SetUnionLevel] = []

    def draw(level: SetUnionLevel, following: Following | None) -> pa.Table:
        left = np.flatnonzero(masses[held] == 0)
        left = left[np.argsort(holder[left], kind="stable")]
        rule: Weigh = equal_weights(level.max_items, level.grid_bits, salt=level.round)
        if following is not None:
            w = following.weights(told)
            rule = Followed(1 << level.grid_bits, level.max_items, level.round, w)
        numbers = np.bincount(holder[left], minlength=texts.users)
        given, weights = contributions(np.arange(texts.users), numbers, held[left], rule)
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, given, weights)
        noised = sums + noise(len(keys), level.sigma_grid)
        ran.append(level)
        told[:] += parts_of_round(ran[0].grid, level.grid) * noised
        new = np.flatnonzero((sums > 0) & (noised >= level.threshold_grid))
        masses[new] = noised[new] / 2**level.grid_bits
        return pa.table({"key": [str(word) for word in new], "noisy": noised[new]})

    price = price_ngrams(max_n=max_n, epsilon=epsilon, delta=delta, max_items=max_items)
    rounds = WordsRounds.of(price)
    used = sum(share for _, share in words_rounds_run(rounds, run_rounds(rounds, draw), max_n))
    found = masses > 0
    return number, found, masses[found], used


def run_rounds(
    rounds: AdaptiveRounds, draw: Callable[[SetUnionLevel, Following | None], pa.Table]
) -> pa.Table:
    ran: list[Ran] = []
    while (level := rounds.next(ran)) is not None:
        ran.append((level, draw(level, rounds.following(ran, level))))
    return rounds.table(ran)
