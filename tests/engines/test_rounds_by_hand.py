"""The two rounds of a level, integer for integer, where the noise of each gram is known.

What users add, what is noised, how it is binned, which signs are counted and what passes are worked
out here once more, in plain Python, from users' lists and from the words that were dealt: bins of
sums without their noise, list sizes without theirs, a weight or a threshold of another row, or a
comparison that is off by one, each come to another number. On every engine, by its own queries.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, isqrt
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import ndtri

from dphh import Corpus
from dphh.engines import ENGINES
from dphh.mechanisms.ngrams.forecast.climb import FirstRound, ForecastRelease, Passed
from dphh.mechanisms.ngrams.forecast.levels import draw_level
from dphh.mechanisms.ngrams.ladder.classes import ValidClasses, valid_classes
from dphh.mechanisms.ngrams.ladder.placed import Placed
from dphh.mechanisms.ngrams.ladder.rungs import PAIR, Integers, first_ladder, first_rung
from dphh.privacy.forecast_rounds import EDGES, LIST_SIZES, bins
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.reading import Words
from tests.engines.levels import host_on
from tests.forecast.rounds_in_arrays import Rule, TwoRounds
from tests.forecast.test_rounds import sums

SIGMA, UNITS = 2**11, (700, 500)
WORDS = 6
PAIRS = [(a, b) for a in range(WORDS) for b in range(WORDS)]
Row = tuple[int, int]
Lists = list[list[int]]


class Noted:
    """A test's words, named by keys; what they make of noise is worked out here.

    What is drawn for keys is noted in a folder, as it may be drawn in Spark's workers.
    """

    is_test = True

    def __init__(self, seed: int, folder: Path) -> None:
        self._source = SeededRandomness(seed)
        self.folder = folder
        #: The round that is under way, and of each what was drawn for which key.
        self.round = 1
        self._noise: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._named: set[tuple[str, int]] = set()

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        words = self._dealt(count, purpose, keys)
        if keys is not None:
            noted = [purpose, [int(key) for key in keys.to_pylist()], words.tolist()]
            (self.folder / f"{uuid4().hex}.noted").write_text(json.dumps(noted))
        return words

    @property
    def noise(self) -> dict[int, dict[int, int]]:
        """Read after each round: what was drawn since belongs to it."""
        for path in self.folder.glob("*.noted"):
            purpose, names, words = json.loads(path.read_text())
            path.unlink()
            assert not self._noise[self.round].keys() & set(names), "noise was drawn twice"
            named = {(purpose, name) for name in names}
            assert not self._named & named, "noise of one name was drawn for both rounds"
            self._named |= named
            self._noise[self.round] |= dict(zip(names, map(_noise, words), strict=True))
        return self._noise

    def _dealt(self, count: int, purpose: str, keys: pa.Array | None) -> Any:
        return self._source.words(count, purpose, keys)


def _noise(word: int) -> int:
    """By inversion: the last bit is the sign, the others how far out of 2^63 on either side."""
    magnitude = int(-ndtri(((word >> 1) + 0.5) / 2**64) * SIGMA + 0.5)
    return -magnitude if word & 1 else magnitude


def held_by(users: int, pairs: list[tuple[int, int]]) -> Lists:
    """Users of one pair, of some, and of all: indices of PAIRS."""
    those = [WORDS * a + b for a, b in pairs]
    return [those[: 1 + user % len(those)] for user in range(users)] + [those] * 3


@dataclass
class ByHand:
    """What both rounds have to come to."""

    valid: ValidClasses
    users: Lists
    noted: Noted

    @property
    def noise(self) -> dict[int, dict[int, int]]:
        return self.noted.noise

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
        noise = {key: noise for key, noise in self.noise[1].items() if key >= 0}
        assert noise.keys() == sums.keys()
        return {key: total + noise[key] for key, total in sums.items()}

    def lists(self) -> list[int]:
        """Noised list sizes, which have the rest of a user's norm: a fiftieth of its square."""
        noise = {key: noise for key, noise in self.noise[1].items() if key < 0}
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
        assert self.noise[2].keys() == rows.keys()
        return {key: sums[key] + self.noise[2][key] for key in rows}


Drive = Callable[[Any], Passed]


def in_memory(users: Lists, noted: Noted, drive: Drive, _: Path) -> None:
    """Over sums that plain Python adds up."""

    def added(rule: Rule) -> tuple[Integers, Integers]:
        found = sums(users, rule)
        return np.array([*found], dtype=np.int64), np.array([*found.values()], dtype=np.int64)

    drive(TwoRounds(added, noted, "test"))  # type: ignore[arg-type]


def on_engine(engine: str, users: Lists, noted: Noted, drive: Drive, folder: Path) -> None:
    """As a level of a run, of texts of two words each."""
    rows = [(user, [str(word) for word in PAIRS[i]]) for user, of in enumerate(users) for i in of]
    path = folder / "corpus.parquet"
    pl.DataFrame({"who": [u for u, _ in rows], "what": [t for _, t in rows]}).write_parquet(path)
    corpus = Corpus(path, user="who", text="what", as_="list")

    class Step:
        def run(self, both: Any) -> ForecastRelease:
            keys = drive(both).keys
            return ForecastRelease(keys, np.ones(len(keys)), (0.1, 0.1), 0.0)

    with host_on(engine, corpus, noted) as host:
        host.gather("users", Words(ends=True))
        ladder = first_ladder(pa.array([str(word) for word in range(WORDS)]), "both")
        draw_level(Placed(host), Step(), ladder, "level")  # type: ignore[arg-type]


HOW = ["in memory", *ENGINES]


@pytest.fixture(params=HOW)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class Ran:
    hand: ByHand
    seen: FirstRound
    weights: np.ndarray
    negatives: np.ndarray
    thresholds: np.ndarray
    passed: Passed


def ran(engine: str, pairs: list[tuple[int, int]], seed: int, folder: Path) -> Ran:
    masses = np.array([1.0, 2.0, 5.0, 20.0, 60.0, 100.0])
    valid = valid_classes(first_rung(WORDS), masses, np.array([masses.sum()]))
    users, noted, rng = held_by(9, pairs), Noted(seed, folder), np.random.default_rng(seed)
    hand = ByHand(valid, users, noted)
    found: list[Ran] = []

    def drive(both: Any) -> Passed:
        seen = both.first_round(2, valid, bins(SIGMA), UNITS[0])
        assert seen.counts.sum(1).tolist() == valid.sizes.tolist()
        assert noted.noise[1]
        weights = rng.integers(1, 3_500, seen.counts.shape)
        noted.round = 2
        negatives = both.second_round(weights, UNITS[1])
        assert noted.noise[2]
        noted.round = 3
        thresholds = rng.integers(1, 3 * SIGMA, seen.counts.shape)
        # Each threshold stands where it decides: at a noised weight of its row, or right above it.
        second = hand.second(weights)
        for place, (key, first) in enumerate(hand.first().items()):
            if second[key] > 0:
                thresholds[hand.row(key, first)] = second[key] + place % 2
        passed: Passed = both.passed(thresholds)
        found.append(Ran(hand, seen, weights, negatives, thresholds, passed))
        return passed

    run = in_memory if engine == "in memory" else partial(on_engine, engine)
    run(users, noted, drive, folder)
    assert not noted.noise[3]
    return found[0]


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


@pytest.mark.parametrize("seed", range(2))
def test_where_every_gram_is_held_both_rounds_are_what_they_say(
    engine: str, seed: int, tmp_path: Path
) -> None:
    run = ran(engine, PAIRS, seed, tmp_path)
    first, second = run.hand.first(), run.hand.second(run.weights)
    rows = {key: run.hand.row(key, noised) for key, noised in first.items()}
    assert run.seen.counts.tolist() == by_row(list(rows.values()), run.seen.counts.shape).tolist()
    assert run.seen.lists.tolist() == run.hand.lists()
    negative = [rows[key] for key in rows if second[key] <= 0]
    assert run.negatives.tolist() == by_row(negative, run.negatives.shape).tolist()
    assert what_passed(run) == passing(run)
    assert len(negative) > 2 and 2 < len(run.passed.keys) < len(rows)


@pytest.mark.parametrize("seed", range(2))
def test_where_some_are_held_those_are_counted_as_they_are_and_the_others_beside(
    engine: str, seed: int, tmp_path: Path
) -> None:
    run = ran(engine, PAIRS[::3], seed, tmp_path)
    first, second = run.hand.first(), run.hand.second(run.weights)
    rows = {key: run.hand.row(key, noised) for key, noised in first.items()}
    held = by_row(list(rows.values()), run.seen.counts.shape)
    absent = run.seen.counts - held
    assert (absent >= 0).all()
    assert run.seen.lists.tolist() == run.hand.lists()
    negative = by_row([rows[key] for key in rows if second[key] <= 0], run.negatives.shape)
    assert (run.negatives >= negative).all() and (run.negatives <= negative + absent).all()
    keys = run.passed.keys.tolist()
    assert keys == sorted(keys)  # another order could show which of them are held
    wanted, found = passing(run), what_passed(run)
    assert {key: told for key, told in found.items() if key in rows} == wanted
    for key, (column, noised, weight) in found.items():
        group = int(run.hand.valid.of(np.array([key]))[0])
        assert run.hand.row(key, noised) == (group, column)
        assert weight >= run.thresholds[group, column] > 0


def test_grams_that_get_nothing_have_their_noise_all_the_same(engine: str, tmp_path: Path) -> None:
    """At so small a unit who holds them all gives each gram 0, in either round: there is noise of
    each in both, and a bin and a sign."""
    masses = np.ones(WORDS)
    valid = valid_classes(first_rung(WORDS), masses, np.array([6.0]))
    everything, noted = list(range(len(PAIRS))), Noted(3, tmp_path)
    hand = ByHand(valid, [everything] * 4, noted)
    told: list[Any] = []

    def drive(both: Any) -> Passed:
        seen = both.first_round(2, valid, bins(SIGMA), 5)
        assert noted.noise[1]
        noted.round = 2
        told.append(seen.counts)
        told.append(both.second_round(np.ones(seen.counts.shape, dtype=np.int64), 5))
        assert noted.noise[2]
        noted.round = 3
        passed: Passed = both.passed(np.ones(seen.counts.shape, dtype=np.int64))
        told.append(passed)
        return passed

    run = in_memory if engine == "in memory" else partial(on_engine, engine)
    run(hand.users, noted, drive, tmp_path)
    counts, negatives, passed = told
    keys = hand.keys(everything)
    assert {key for key in noted.noise[1] if key >= 0} == set(keys) == noted.noise[2].keys()
    rows = {key: hand.row(key, noted.noise[1][key]) for key in keys}
    assert counts.tolist() == by_row([*rows.values()], counts.shape).tolist()
    below = [rows[key] for key in keys if noted.noise[2][key] <= 0]
    assert negatives.tolist() == by_row(below, counts.shape).tolist()
    above = {key: noted.noise[2][key] for key in keys if noted.noise[2][key] > 0}
    assert dict(zip(passed.keys.tolist(), passed.second.tolist(), strict=True)) == above


def test_a_gram_that_comes_to_nothing_is_counted_with_those_below(
    engine: str, tmp_path: Path
) -> None:
    """At 0 a gram is not above 0: the rule of signs counts it."""

    class Silent(Noted):
        def _dealt(self, count: int, purpose: str, keys: pa.Array | None) -> Any:
            if keys is None:
                return super()._dealt(count, purpose, keys)
            return np.full(count, 2**64 - 1, dtype=np.uint64)

    masses = np.ones(WORDS)
    valid = valid_classes(first_rung(WORDS), masses, np.array([6.0]))
    noted = Silent(1, tmp_path)
    told: list[Any] = []

    def drive(both: Any) -> Passed:
        seen = both.first_round(2, valid, bins(SIGMA), 700)
        noted.round = 2
        # Users of norm 1 and more than one gram give nothing to any; the last gives all to one.
        told.append(both.second_round(np.ones(seen.counts.shape, dtype=np.int64), 1))
        told.append(both.passed(np.ones(seen.counts.shape, dtype=np.int64)))
        passed: Passed = told[-1]
        return passed

    everything = list(range(len(PAIRS)))
    run = in_memory if engine == "in memory" else partial(on_engine, engine)
    run([everything, [0, 7], [7]], noted, drive, tmp_path)
    negatives, passed = told
    assert negatives.sum() == len(PAIRS) - 1
    assert (passed.keys.tolist(), passed.second.tolist()) == ([1 << PAIR | 1], [1])
