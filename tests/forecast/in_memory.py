"""The forecast ladder on NumPy arrays: an engine in a page, with level 1's rounds of set union."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dphh.absent import absent_bins, absent_negatives, spurious_grams
from dphh.classes import ValidClasses
from dphh.forecast import FirstRound, Found, Passed, climb
from dphh.ladder import PAIR, first_rung
from dphh.privacy.forecast.rounds import (
    LIST_SIZES,
    SIGMA_GRID,
    Bins,
    list_bin,
    list_weight,
    plain_weight,
    shared_out,
)
from dphh.privacy.forecast.shares import WORDS_ALONE, WORDS_COMMON, WORDS_DELTA, WORDS_ROUNDS
from dphh.privacy.gaussian import gaussian_sigma
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.set_union import grid_bits, new_item_threshold, weight
from dphh.udfs.noise import draw_rounded_gaussian
from dphh.udfs.randomness import SystemRandomness

Integers = NDArray[np.int64]
SYSTEM = SystemRandomness()


@dataclass
class Positions:
    """Where what grams stand: texts one after the other, with a gap between two."""

    place: Integers
    user: Integers
    gram: Integers
    users: int

    @classmethod
    def of_texts(cls, user: Integers, text: Integers, word: Integers) -> Positions:
        gaps = np.r_[0, np.cumsum(text[1:] != text[:-1])]
        return cls(np.arange(len(word)) + gaps, user, word, int(user.max(initial=-1)) + 1)

    def only(self, some: Integers, gram: Integers) -> Positions:
        return Positions(self.place[some], self.user[some], gram, self.users)


class InMemory:
    """`dphh.forecast.Rounds`."""

    def __init__(self, positions: Positions) -> None:
        self.at = positions
        self.occurrences: list[int] = []
        self.spurious: list[int] = []

    def first_round(self, level: int, valid: ValidClasses, law: Bins, unit: int) -> FirstRound:
        self.valid, self.law = valid, law
        at = self.at
        self.pairs = np.flatnonzero(at.place[1:] == at.place[:-1] + 1)
        key = (at.gram[self.pairs] << PAIR) | at.gram[self.pairs + 1]
        self.keys, self.number = np.unique(key, return_inverse=True)
        self.holder, self.held = distinct_pairs(at.user[self.pairs], self.number, len(self.keys))
        held = np.bincount(self.holder, minlength=at.users)

        plain = np.array([plain_weight(unit, max(t, 1)) for t in range(held.max(initial=0) + 1)])
        self.first = self._noised(plain[held[self.holder]])
        self.bin = law.of(self.first)
        group = valid.of(self.keys)
        self.shape = len(valid.forecasts), len(law.starts)
        self.row = group * self.shape[1] + self.bin
        supported = np.bincount(group, minlength=self.shape[0])
        self.absent = absent_bins(valid, supported, law, SYSTEM, "test")

        sizes = np.bincount(list_bin(held[held > 0]), minlength=len(LIST_SIZES))
        lists = sizes * list_weight(unit) + noise(len(LIST_SIZES))
        return FirstRound(self._by_row(self.row) + self.absent, lists)

    def second_round(self, weights: Integers, unit: int) -> Integers:
        g = weights.ravel()[self.row[self.held]]
        self.second = self._noised(shared_out(unit, g, self.holder, self.at.users))
        self.negatives = absent_negatives(self.absent, self.law, SYSTEM, "test")
        return self._by_row(self.row[self.second <= 0]) + self.negatives

    def passed(self, thresholds: Integers) -> Passed:
        kept = np.flatnonzero(self.second >= thresholds.ravel()[self.row])
        drawn = spurious_grams(
            self.valid,
            self.absent,
            self.negatives,
            thresholds,
            lambda keys: np.isin(keys, self.keys),
            self.law,
            SYSTEM,
            "test",
        )
        passed = Passed.sorted_by_key(
            np.r_[self.keys[kept], drawn.keys],
            np.r_[self.bin[kept], drawn.bins],
            np.r_[self.first[kept], drawn.first],
            np.r_[self.second[kept], drawn.second],
        )
        gram = np.full(len(self.keys), -1)
        gram[kept] = np.searchsorted(passed.keys, self.keys[kept])
        gram = gram[self.number]
        there = gram >= 0
        self.at = self.at.only(self.pairs[there], gram[there])
        self.occurrences.append(int(there.sum()))
        self.spurious.append(len(drawn.keys))
        return passed

    def _noised(self, weights: Integers) -> Integers:
        sums = np.zeros(len(self.keys), dtype=np.int64)
        np.add.at(sums, self.held, weights)
        return sums + noise(len(sums))

    def _by_row(self, rows: Integers) -> Integers:
        return np.bincount(rows, minlength=self.shape[0] * self.shape[1]).reshape(self.shape)


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
    levels: list[Found]

    @property
    def total(self) -> int:
        return sum(self.found)


def forecast_ladder(
    texts: Positions, epsilon: float, delta: float, levels: int, max_items: int, eta: float = 0.01
) -> Run:
    sigma = gaussian_sigma(epsilon, delta / 2)
    number, found, masses, used = words(texts, sigma * levels**0.5, delta / 2, max_items)
    gram = np.where(found, np.cumsum(found) - 1, -1)[number]
    there = np.flatnonzero(gram >= 0)
    engine = InMemory(texts.only(there, gram[there]))
    left = 1 - used / levels
    above = list(climb(first_rung(len(masses)), masses, levels, left, 1 / sigma, eta, engine))
    return Run(
        [len(masses), *(len(f.rung) for f in above)],
        [len(there), *engine.occurrences],
        [0, *engine.spurious],
        above,
    )


def words(
    texts: Positions, sigma: float, delta: float, max_items: int
) -> tuple[Integers, NDArray[np.bool_], NDArray[np.float64], float]:
    """Level 1: each position's word number, which words are found, their masses, and what of the
    level's share was used."""
    keys, number = np.unique(texts.gram, return_inverse=True)
    holder, held = distinct_pairs(texts.user, number, len(keys))
    found, masses, used = np.zeros(len(keys), dtype=bool), np.zeros(len(keys)), 0.0
    rng = np.random.default_rng()
    for index, planned in enumerate(WORDS_ROUNDS):
        if index == 1 and found.sum() < WORDS_COMMON:
            continue
        alone = index == 2 and used == WORDS_ROUNDS[0]
        share = WORDS_ALONE if alone else planned
        scale = sigma / share**0.5
        bits = min(grid_bits(scale, max_items), 15 - ceil(np.log2(scale)))
        table = rounded_gaussian(ceil(scale * 2**bits))
        threshold = new_item_threshold(table, bits, max_items, WORDS_DELTA[index] * delta)
        some = ~found[held]
        user, key = bounded(holder[some], held[some], max_items, rng)
        weights = np.array([0] + [weight(bits, t) for t in range(1, max_items + 1)])
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, key, weights[np.bincount(user, minlength=texts.users)[user]])
        noised = sums + noise(len(keys), table.sigma)
        new = (sums > 0) & (noised >= threshold) & ~found
        masses[new] = noised[new] / 2**bits
        found |= new
        used += share
        few = 5 * (new & (noised < 2 * threshold)).sum() < found.sum()
        if few and (index == 0 or 2 * new.sum() <= found.sum()):
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
