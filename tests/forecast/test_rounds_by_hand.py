"""The two rounds of a level, integer for integer, where the noise of each gram is known.

What users add, what is noised, how it is binned, which signs are counted and what passes are worked
out here once more, in plain Python, from users' lists and from the words that were dealt: bins of
sums without their noise, list sizes without theirs, a weight or a threshold of another row, or a
comparison that is off by one, each come to another number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from math import ceil, isqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtri

from dphh.ladder.classes import ValidClasses, valid_classes
from dphh.ladder.forecast import FirstRound, Passed
from dphh.ladder.rungs import PAIR, first_rung
from dphh.privacy.forecast.rounds import EDGES, LIST_SIZES, bins
from dphh.testing import SeededRandomness
from tests.forecast.test_two_rounds import rounds

SIGMA, UNITS = 2**11, (700, 500)
WORDS = 6
PAIRS = [(a, b) for a in range(WORDS) for b in range(WORDS)]
Row = tuple[int, int]


class Noted:
    """A test's words, named by keys; what they make of noise is worked out here."""

    is_test = True

    def __init__(self, seed: int) -> None:
        self._source = SeededRandomness(seed)
        #: What was asked for with keys, call by call.
        self.noise: list[dict[int, int]] = []

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        words = self._source.words(count, purpose, keys)
        if keys is not None:
            names = [int(key) for key in keys.to_pylist()]
            self.noise.append(dict(zip(names, map(_noise, words.tolist()), strict=True)))
        return words


def _noise(word: int) -> int:
    """By inversion: the last bit is the sign, the others how far out of 2^63 on either side."""
    magnitude = int(-ndtri(((word >> 1) + 0.5) / 2**64) * SIGMA + 0.5)
    return -magnitude if word & 1 else magnitude


def held_by(users: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """Users of one pair, of some, and of all: indices of PAIRS."""
    those = [WORDS * a + b for a, b in pairs]
    return [those[: 1 + user % len(those)] for user in range(users)] + [those] * 3


@dataclass
class ByHand:
    """What both rounds have to come to."""

    valid: ValidClasses
    users: list[list[int]]
    noise: list[dict[int, int]]

    def row(self, key: int, first: int) -> Row:
        edges = [ceil(edge * SIGMA) for edge in EDGES[1:].tolist()]
        return int(self.valid.of(np.array([key]))[0]), bisect_right(edges, first)

    def keys(self, user: list[int]) -> list[int]:
        return [PAIRS[i][0] << PAIR | PAIRS[i][1] for i in user]

    def first(self) -> dict[int, int]:
        """By gram: noised sums of round 1."""
        sums: Counter[int] = Counter()
        for user in self.users:
            each = isqrt(UNITS[0] ** 2 * 49 // (50 * len(user)))
            sums.update(dict.fromkeys(self.keys(user), each))
        (noise,) = (part for part in self.noise[:2] if min(part) >= 0)
        assert noise.keys() == sums.keys()
        return {key: total + noise[key] for key, total in sums.items()}

    def lists(self) -> list[int]:
        """Noised list sizes, which have the rest of a user's norm: a fiftieth of its square."""
        (noise,) = (part for part in self.noise[:2] if min(part) < 0)
        sizes = LIST_SIZES.tolist()
        sums = Counter(bisect_right(sizes, len(user)) - 1 for user in self.users)
        each = isqrt(UNITS[0] ** 2 // 50)
        assert sorted(noise) == sorted(-1 - size for size in range(len(sizes)))
        return [sums[size] * each + noise[-1 - size] for size in range(len(sizes))]

    def second(self, weights: np.ndarray) -> dict[int, int]:
        """By gram: noised sums of round 2."""
        rows = {key: self.row(key, noised) for key, noised in self.first().items()}
        sums: Counter[int] = Counter()
        for user in self.users:
            g = {key: int(weights[rows[key]]) for key in self.keys(user)}
            square = sum(x * x for x in g.values())
            length = isqrt(square - 1) + 1  # rounded up
            sums.update({key: UNITS[1] * x // length for key, x in g.items()})
        (noise,) = self.noise[2:]
        assert noise.keys() == rows.keys()
        return {key: sums[key] + noise[key] for key in rows}


@dataclass
class Ran:
    hand: ByHand
    seen: FirstRound
    weights: np.ndarray
    negatives: np.ndarray
    thresholds: np.ndarray
    passed: Passed


def ran(pairs: list[tuple[int, int]], seed: int) -> Ran:
    masses = np.array([1.0, 2.0, 5.0, 20.0, 60.0, 100.0])
    valid = valid_classes(first_rung(WORDS), masses, np.array([masses.sum()]))
    users, noted, rng = held_by(9, pairs), Noted(seed), np.random.default_rng(seed)
    both = rounds(users, noted)  # type: ignore[arg-type]
    seen = both.first_round(2, valid, bins(SIGMA), UNITS[0])
    weights = rng.integers(1, 3_500, seen.counts.shape)
    negatives = both.second_round(weights, UNITS[1])
    thresholds = rng.integers(1, 3 * SIGMA, seen.counts.shape)
    hand = ByHand(valid, users, noted.noise)
    # Each threshold stands where it decides: at a noised weight of its row, or right above it.
    second = hand.second(weights)
    for place, (key, first) in enumerate(hand.first().items()):
        if second[key] > 0:
            thresholds[hand.row(key, first)] = second[key] + place % 2
    return Ran(hand, seen, weights, negatives, thresholds, both.passed(thresholds))


def by_row(rows: list[Row], shape: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros(shape, dtype=np.int64)
    for row in rows:
        counts[row] += 1
    return counts


def passing(run: Ran) -> dict[int, tuple[int, int, int]]:
    """Bin and both noised weights of the held grams that reach the threshold of their row."""
    first, second = run.hand.first(), run.hand.second(run.weights)
    rows = {key: run.hand.row(key, noised) for key, noised in first.items()}
    return {
        key: (rows[key][1], first[key], second[key])
        for key in first
        if second[key] >= run.thresholds[rows[key]]
    }


def what_passed(run: Ran) -> dict[int, tuple[int, int, int]]:
    columns = (run.passed.bins, run.passed.first, run.passed.second)
    told = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(run.passed.keys.tolist(), told, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_where_every_gram_is_held_both_rounds_are_what_they_say(seed: int) -> None:
    run = ran(PAIRS, seed)
    first, second = run.hand.first(), run.hand.second(run.weights)
    rows = {key: run.hand.row(key, noised) for key, noised in first.items()}
    assert run.seen.counts.tolist() == by_row(list(rows.values()), run.seen.counts.shape).tolist()
    assert run.seen.lists.tolist() == run.hand.lists()
    negative = [rows[key] for key in rows if second[key] <= 0]
    assert run.negatives.tolist() == by_row(negative, run.negatives.shape).tolist()
    assert what_passed(run) == passing(run)
    assert len(negative) > 2 and 2 < len(run.passed.keys) < len(rows)


@pytest.mark.parametrize("seed", range(4))
def test_where_some_are_held_those_are_counted_as_they_are_and_the_others_beside(seed: int) -> None:
    run = ran(PAIRS[::3], seed)
    first, second = run.hand.first(), run.hand.second(run.weights)
    rows = {key: run.hand.row(key, noised) for key, noised in first.items()}
    held = by_row(list(rows.values()), run.seen.counts.shape)
    absent = run.seen.counts - held
    assert (absent >= 0).all()
    assert run.seen.counts.sum(1).tolist() == run.hand.valid.sizes.tolist()
    assert run.seen.lists.tolist() == run.hand.lists()
    negative = by_row([rows[key] for key in rows if second[key] <= 0], run.negatives.shape)
    assert (run.negatives >= negative).all() and (run.negatives <= negative + absent).all()
    wanted, found = passing(run), what_passed(run)
    assert {key: told for key, told in found.items() if key in rows} == wanted
    for key, (column, noised, weight) in found.items():
        group = int(run.hand.valid.of(np.array([key]))[0])
        assert run.hand.row(key, noised) == (group, column)
        assert weight >= run.thresholds[group, column] > 0


def test_a_gram_whose_noise_comes_to_nothing_is_counted_with_those_below() -> None:
    """At 0 a gram is not above 0: the rule of signs counts it."""

    class Silent(Noted):
        def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
            if keys is None:
                return super().words(count, purpose)
            return np.full(count, 2**64 - 1, dtype=np.uint64)

    masses = np.ones(2)
    valid = valid_classes(first_rung(2), masses, np.array([2.0]))
    both = rounds([[0, 1, 6, 7], [0]], Silent(1))  # type: ignore[arg-type]
    seen = both.first_round(2, valid, bins(SIGMA), 700)
    weights = np.ones(seen.counts.shape, dtype=np.int64)
    # A user of norm 1 and four grams gives nothing to any; the other gives all to one.
    assert both.second_round(weights, 1).sum() == 3
    passed = both.passed(np.ones(seen.counts.shape, dtype=np.int64))
    assert (passed.keys.tolist(), passed.second.tolist()) == ([0], [1])
