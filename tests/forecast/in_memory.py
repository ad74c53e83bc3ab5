"""The forecast ladder above level 1 on NumPy arrays: an engine in a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphh.mechanisms.ngrams.forecast.climb import Climb, ForecastRelease, Passed, Rounds, Step
from dphh.mechanisms.ngrams.ladder.rungs import PAIR
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
        return passed

    def move_to(self, passed: Passed) -> None:
        """Where what was released stands, of what was added up last."""
        held = self.held[self.number]
        at = np.minimum(np.searchsorted(passed.keys, held), max(len(passed.keys) - 1, 0))
        there = np.flatnonzero(passed.keys[at] == held if len(passed.keys) else held < 0)
        self.at = self.at.only(self.pairs[there], at[there])


def distinct_pairs(user: Integers, key: Integers, keys: int) -> tuple[Integers, Integers]:
    both = np.unique(user * max(keys, 1) + key)
    return both // max(keys, 1), both % max(keys, 1)


def climb(start: Climb, rounds: Rounds) -> Iterator[tuple[Step, ForecastRelease]]:
    """Level by level, up to the last or until nothing is valid."""
    while start.top.level < start.levels and len((step := start.step()).valid):
        released = step.run(rounds)
        yield step, released
        start = start.after(released)
