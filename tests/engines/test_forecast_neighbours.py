"""What one user moves in the two rounds of a level, through the whole path of each engine.

D and D + u are two corpora, each read by itself: with its own rows, its own numbers of words and
its own grams that somebody holds. What is public is the same on both sides: what is released, and
the weights of round 2, which here depend on a gram's class alone, so that they are the same
whatever round 1 showed. There is no noise, so that what passes shows the sums.

In plain Python every user adds what they add alone, so that a neighbour's difference is what that
user adds: `expected` says it for whole corpora, and nothing else may be among the sums.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dphh import Corpus
from dphh.engines import ENGINES
from dphh.engines.duckdb import rows as duckdb_rows
from dphh.mechanisms.ngrams.forecast.two_rounds import TwoRounds
from dphh.mechanisms.ngrams.ladder.classes import ValidClasses, valid_classes
from dphh.mechanisms.ngrams.ladder.placed import Placed
from dphh.mechanisms.ngrams.ladder.rungs import Ladder, first_ladder
from dphh.privacy.forecast_rounds import bins
from dphh.testing import SeededRandomness
from dphh.udfs.kernel import gathering as kernel_gathering
from dphh.udfs.kernel.contributions import Held
from dphh.udfs.kernel.reading import Words
from dphh.udfs.kernel.spilled_texts import SpilledTexts
from dphh.udfs.kernel.two_rounds import PlainWeights
from tests.engines.ladders import Quiet
from tests.engines.levels import host_on
from tests.forecast import rounds_in_arrays

pytestmark = pytest.mark.on_spark

WORDS = [f"w{number:02}" for number in range(12)]
SIGMA_GRID = 2**10
#: All 144 pairs, each of them once in the texts of who holds them all.
ALL_PAIRS = " ".join(f"{one} {other}" for one in WORDS for other in WORDS)
Rows = Sequence[tuple[str, str]]


def ladder_to(level: int) -> Ladder:
    """What is released below a level: all words; of the pairs two in three, and so on. Some of it
    nobody need hold."""
    ladder = first_ladder(pa.array(WORDS), "both")
    while ladder.top.level < level - 1:
        valid = ladder.valid_grams()
        keys = np.sort(valid.keys(np.arange(len(valid))))
        ladder = ladder.with_next(keys[np.arange(len(keys)) % 3 > 0][:600])
    return ladder


LADDERS = {level: ladder_to(level) for level in (2, 3, 4)}


@dataclass
class Added:
    """What all users add to each gram that somebody holds, where round 2 gives it something."""

    round_1: dict[int, int]
    lists: list[int]
    round_2: dict[int, int]


def classes(ladder: Ladder) -> ValidClasses:
    masses = np.geomspace(1.0, 100.0, len(ladder.top))
    below = ladder.rungs[-2] if len(ladder.rungs) > 1 else [0]
    return valid_classes(ladder.top, masses, np.geomspace(1.0, 500.0, len(below)))


def weights_of(ladder: Ladder, seed: int) -> Any:
    """By class, the same in all bins."""
    rows = len(classes(ladder).forecasts), len(bins(SIGMA_GRID).starts)
    of_class = np.random.default_rng(seed).integers(1, 3_500, rows[0])
    return np.tile(of_class[:, None], rows[1])


def added(engine: str, rows: Rows, unit: int, seed: int, level: int = 2) -> Added:
    """Both rounds over a corpus of (user, text)."""
    ladder = LADDERS[level]
    with corpus_of(rows) as corpus, host_on(engine, corpus, Quiet(seed)) as host:
        host.gather("users", Words(ends=True))
        Placed(host).climb(ladder)
        rounds = TwoRounds(host, "test")
        seen = rounds.first_round(level, classes(ladder), bins(SIGMA_GRID), unit)
        rounds.second_round(weights_of(ladder, seed), unit)
        passed = rounds.passed(np.ones(seen.counts.shape, dtype=np.int64))
        rounds.close()
    somebodys = {key for _, text in rows for key in held(ladder, text)}
    some = np.isin(passed.keys, [*somebodys])  # the others are spurious
    keys = passed.keys[some].tolist()
    return Added(
        dict(zip(keys, passed.first[some].tolist(), strict=True)),
        seen.lists.tolist(),
        dict(zip(keys, passed.second[some].tolist(), strict=True)),
    )


@contextmanager
def corpus_of(rows: Rows) -> Iterator[Corpus]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.parquet"
        table = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
        table.write_parquet(path)
        yield Corpus(path, user="who", text="what")


def held(ladder: Ladder, text: str) -> Iterator[int]:
    """The valid grams of a text: side by side stand two grams that were released."""
    number = {word: place for place, word in enumerate(WORDS)}
    places = [number.get(word) for word in text.split()]
    for rung in [*ladder.rungs[1:], None]:
        pairs = [
            None if left is None or right is None else left << 32 | right
            for left, right in pairwise(places)
        ]
        if rung is None:
            yield from (pair for pair in pairs if pair is not None)
        else:
            at = {key: place for place, key in enumerate(rung.keys.tolist())}
            places = [at.get(pair) for pair in pairs]


def expected(rows: Rows, unit: int, seed: int, level: int) -> Added:
    """The same in plain Python, user by user."""
    ladder = LADDERS[level]
    grams: defaultdict[str, set[int]] = defaultdict(set)
    for user, text in rows:
        grams[user] |= {*held(ladder, text)}
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**power for power in range(5, 15)]
    first, second = Counter(), Counter()
    lists = [0] * len(sizes)
    valid, weights = classes(ladder), weights_of(ladder, seed)[:, 0]
    for keys in filter(None, grams.values()):
        plain = isqrt(unit * unit * 49 // (50 * len(keys)))
        lists[sum(size <= len(keys) for size in sizes) - 1] += isqrt(unit * unit // 50)
        named = np.array([*keys])
        g = weights[valid.of(named)].tolist()
        norm = isqrt(sum(x * x for x in g) - 1) + 1
        for key, weight in zip(keys, g, strict=True):
            first[key] += plain
            second[key] += unit * weight // norm
    some = {key: weight for key, weight in second.items() if weight}
    return Added({key: first[key] for key in some}, lists, some)


def squared_distance(one: dict[int, int], other: dict[int, int]) -> int:
    return sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in one.keys() | other.keys())


def moves_the_unit_at_most(
    engine: str, others: Rows, user: Rows, unit: int, seed: int, level: int = 2
) -> None:
    without = added(engine, others, unit, seed, level)
    with_user = added(engine, [*others, *user], unit, seed, level)
    both = without.round_1.keys() & with_user.round_1.keys()
    first = sum((without.round_1[key] - with_user.round_1[key]) ** 2 for key in both)
    lists = zip(without.lists, with_user.lists, strict=True)
    assert first + sum((one - other) ** 2 for one, other in lists) <= unit**2
    assert squared_distance(without.round_2, with_user.round_2) <= unit**2


@pytest.mark.parametrize("unit", [8, 11])
def test_a_newcomer_moves_nobodys_weights_where_others_hold_so_much_that_they_give_nothing(
    engine, unit
):
    """At these units, who holds 144 grams gives each of them 0 in round 1. Were such grams
    forgotten, a newcomer of one of them would have all these users weigh it in round 2."""
    others = [(f"long {number}", ALL_PAIRS) for number in range(40)]
    moves_the_unit_at_most(engine, others, [("new", f"{WORDS[3]} {WORDS[7]}")], unit, 1)


words = st.sampled_from([*WORDS, *WORDS, "never released", "nor this"])
texts = st.one_of(st.just(ALL_PAIRS), st.lists(words, max_size=40).map(" ".join))
rows_of_others = st.lists(st.tuples(st.sampled_from("abcdef"), texts), max_size=8)
rows_of_newcomer = st.lists(texts, min_size=1, max_size=3)
levels = st.sampled_from([*LADDERS])
units, seeds = st.integers(8, 60), st.integers(0, 9)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=15)
@given(rows_of_others, rows_of_newcomer, units, seeds, levels)
def test_any_user_moves_each_round_by_the_unit_at_most(engine, others, newcomer, unit, seed, level):
    user = [("new", text) for text in newcomer]
    moves_the_unit_at_most(engine, others, user, unit, seed, level)


#: Users' rows among one another's, the same text twice, texts that go on where the last one ended.
MIXED = [
    ("a", "w00 w01 w02 w03"),
    ("b", ALL_PAIRS),
    ("a", "w03 w04 never w05 w06 w07"),
    ("", "w00 w01 w02"),
    ("a", "w00 w01 w02 w03"),
    ("c", "w05"),
    ("c", "w06"),
    ("d", ""),
    ("b", ALL_PAIRS),
    ("e", "w01 w01 w01 w01 w01"),
]


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=15)
@given(rows_of_others, units, seeds, levels)
@example(MIXED, 8, 1, 2)
@example(MIXED, 40, 2, 3)
@example(MIXED, 11, 3, 4)
@example([], 8, 1, 3)
def test_the_sums_are_what_each_user_adds_alone_and_nothing_else(engine, rows, unit, seed, level):
    """Other rows, other words and other users change nothing of what a user adds."""
    assert added(engine, rows, unit, seed, level) == expected(rows, unit, seed, level)


@pytest.mark.parametrize("level", LADDERS)
def test_users_who_are_written_to_files_and_read_in_several_parts_add_the_same(monkeypatch, level):
    monkeypatch.setattr(duckdb_rows, "SHARE", 1 << 60)  # nothing fits into memory
    monkeypatch.setattr(kernel_gathering, "BYTES", 1)
    parts = []
    read = SpilledTexts.read

    def counted(*asked):
        parts.append(asked[1:])
        return read(*asked)

    monkeypatch.setattr(SpilledTexts, "read", counted)
    assert added("duckdb", MIXED, 9, 1, level) == expected(MIXED, 9, 1, level)
    assert len(parts) > 1


def both_ways(engine: str, rows: Rows, seed: int) -> Iterator[Any]:
    """The engine's rounds, and those in plain arrays over what its users add."""
    with corpus_of(rows) as corpus, host_on(engine, corpus, SeededRandomness(seed)) as host:
        host.gather("users", Words(ends=True))
        Placed(host).climb(LADDERS[2])
        yield TwoRounds(host, "test")
    yield rounds_in_arrays.TwoRounds(partial(in_plain_arrays, rows), SeededRandomness(seed), "test")


def in_plain_arrays(rows: Rows, rule: rounds_in_arrays.Rule) -> tuple[Any, Any]:
    """What these users add, each of one text, by the rule of a round."""
    users = [np.array(sorted({*held(LADDERS[2], text)})) for _, text in rows]
    number = np.array([len(keys) for keys in users])
    of_users = Held(np.concatenate(users), np.repeat(np.arange(len(users)), number), number, number)
    keys, where = np.unique(of_users.keys, return_inverse=True)
    sums = np.zeros(len(keys), dtype=np.int64)
    np.add.at(sums, where, rule(of_users))
    if not isinstance(rule, PlainWeights):
        return keys, sums
    sizes, weights = rule.list_sizes(number)
    lists = np.bincount(-1 - sizes, weights).astype(np.int64)
    return np.r_[-1 - np.arange(len(lists)), keys], np.r_[lists, sums]


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_queries_show_what_the_rounds_in_plain_arrays_show(engine, seed):
    """The oracle: both rounds over one array of sums, from the same draws."""
    valid = classes(LADDERS[2])
    rows = [(f"u{n}", ALL_PAIRS) for n in range(3)]
    rows += [(f"v{n}", " ".join(WORDS[n % 5 : n % 5 + 3])) for n in range(400)]
    thresholds = np.random.default_rng(seed).integers(
        1, 3 * SIGMA_GRID, (len(valid.sizes), len(bins(SIGMA_GRID).starts))
    )
    weights = np.random.default_rng(seed).integers(1, 3_500, thresholds.shape)
    shown = []
    for rounds in both_ways(engine, rows, seed):
        seen = rounds.first_round(2, valid, bins(SIGMA_GRID), 100)
        negatives = rounds.second_round(weights, 120)
        passed = rounds.passed(thresholds)
        arrays = (seen.counts, seen.lists, negatives, *vars(passed).values())
        shown.append([array.tolist() for array in arrays])
        rounds.close()
    assert shown[0] == shown[1]
    assert len(shown[0][3]) > 10
