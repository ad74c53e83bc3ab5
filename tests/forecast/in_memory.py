"""The forecast ladder on NumPy arrays: an engine in a page, with level 1's rounds of set union."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphh.ladder.rounds import Passed
from dphh.ladder.rungs import PAIR
from dphh.levels import SetUnionLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease, Step, begun, climb
from dphh.mechanisms.ngrams.forecast.price import (
    budget_of,
    enough_words,
    words_alone,
    words_alone_share,
    words_rounds,
)
from dphh.mechanisms.ngrams.forecast.shares import WORDS_COMMON, WORDS_ROUNDS
from dphh.privacy.set_union import weight
from dphh.udfs.draws.noise import draw_rounded_gaussian
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.contributions import Held
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
    found, masses, used = np.zeros(len(keys), dtype=bool), np.zeros(len(keys)), 0.0
    rng = np.random.default_rng()
    budget = budget_of(epsilon, delta, max_n, max_items, Counting())
    rounds = list(zip(words_rounds(budget, max_n, max_items), WORDS_ROUNDS, strict=True))
    alone = words_alone(budget, max_n, max_items), words_alone_share(max_n)
    level: SetUnionLevel
    for of_sips in rounds:
        level, share = of_sips
        if level.round > 1 and found.sum() < WORDS_COMMON:
            if level.round < len(rounds):
                continue
            level, share = alone
        user, key = bounded(holder[~found[held]], held[~found[held]], max_items, rng)
        weights = [0] + [weight(level.grid_bits, t) for t in range(1, max_items + 1)]
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, key, np.array(weights)[np.bincount(user, minlength=texts.users)[user]])
        noised = sums + noise(len(keys), level.sigma_grid)
        new = (sums > 0) & (noised >= level.threshold_grid)
        masses[new] = noised[new] / 2**level.grid_bits
        found |= new
        used += share
        near = int((new & (noised < 2 * level.threshold_grid)).sum())
        if enough_words(level.round, int(new.sum()), near, int(found.sum())):
            break
    return number, found, masses[found], used


def bounded(
    user: Integers, key: Integers, most: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """At most so many keys of each user, at random."""
    order = np.lexsort((rng.random(len(user)), user))
    user, key = user[order], key[order]
    first = np.r_[True, user[1:] != user[:-1]] if len(user) else np.zeros(0, dtype=bool)
    start = np.maximum.accumulate(np.where(first, np.arange(len(user)), 0))
    keep = np.arange(len(user)) - start < most
    return user[keep], key[keep]
