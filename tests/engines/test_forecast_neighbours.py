"""What one user moves in the two rounds of a level, through the whole path of each engine.

D and D + u are two corpora, each read by itself: with its own rows, its own numbers of words and
its own grams that somebody holds. What is public is the same on both sides: the released words, and
the weights of round 2, which here hang on a gram's class alone, so that they are the same whatever
round 1 showed. There is no noise, so that what passes shows the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh import Corpus
from dphh.engines import ENGINES
from dphh.engines.two_rounds import Rule, TwoRounds
from dphh.ladder.classes import valid_classes
from dphh.ladder.rungs import PAIR, first_ladder
from dphh.privacy.forecast.rounds import bins
from dphh.testing import SeededRandomness
from dphh.udfs.contributions import Held
from dphh.udfs.two_rounds import Plainly
from tests.engines.ladders import Quiet
from tests.engines.levels import session_on

WORDS = [f"w{number:02}" for number in range(12)]
SIGMA_GRID = 2**10
LADDER = first_ladder(pa.array(WORDS), "both")
MASSES = np.geomspace(1.0, 1_000.0, len(WORDS))
VALID = valid_classes(LADDER.top, MASSES, np.array([MASSES.sum()]))
#: All 144 pairs, each of them once in the texts of who holds them all.
ALL_PAIRS = " ".join(f"{one} {other}" for one in WORDS for other in WORDS)
Rows = Sequence[tuple[str, str]]


@dataclass
class Added:
    """What all users add to each gram that somebody holds, where round 2 gives it something."""

    round_1: dict[int, int]
    lists: list[int]
    round_2: dict[int, int]


def held_pairs(rows: Rows) -> set[int]:
    """The keys of the valid pairs that stand in some text."""
    number = {word: place for place, word in enumerate(WORDS)}
    pairs = set()
    for _, text in rows:
        tokens = text.split()
        pairs |= {(one, other) for one, other in pairwise(tokens)}
    return {
        number[one] << PAIR | number[other]
        for one, other in pairs
        if one in number and other in number
    }


def added(engine: str, rows: Rows, unit: int, seed: int) -> Added:
    """Both rounds over a corpus of (user, text)."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.parquet"
        table = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
        table.write_parquet(path)
        corpus = Corpus(path, user="who", text="what")
        with session_on(engine, corpus, Quiet(seed)) as session:
            session.hold_texts()
            session._place_all(LADDER)
            rounds = session._rounds("test")
            seen = rounds.first_round(2, VALID, bins(SIGMA_GRID), unit)
            of_class = np.random.default_rng(seed).integers(1, 3_500, len(VALID.sizes))
            rounds.second_round(np.tile(of_class[:, None], seen.counts.shape[1]), unit)
            passed = rounds.passed(np.ones(seen.counts.shape, dtype=np.int64))
            rounds.close()
    held = np.isin(passed.keys, list(held_pairs(rows)))
    keys = passed.keys[held].tolist()
    return Added(
        dict(zip(keys, passed.first[held].tolist(), strict=True)),
        seen.lists.tolist(),
        dict(zip(keys, passed.second[held].tolist(), strict=True)),
    )


def both_ways(engine: str, rows: Rows, seed: int) -> Iterator[Any]:
    """The engine's rounds, and those in plain arrays over what its users add."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.parquet"
        pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
        corpus = Corpus(path, user="who", text="what")
        with session_on(engine, corpus, SeededRandomness(seed)) as session:
            session.hold_texts()
            session._place_all(LADDER)
            yield session._rounds("test")
    yield TwoRounds(partial(in_plain_arrays, rows), SeededRandomness(seed), "test")


def in_plain_arrays(rows: Rows, rule: Rule) -> tuple[Any, Any]:
    """What these users add, each of one text, by the rule of a round."""
    users = [np.array(sorted(held_pairs([row])), dtype=np.int64) for row in rows]
    number = np.array([len(keys) for keys in users])
    held = Held(np.concatenate(users), np.repeat(np.arange(len(users)), number), number, number)
    keys, where = np.unique(held.keys, return_inverse=True)
    sums = np.zeros(len(keys), dtype=np.int64)
    np.add.at(sums, where, rule(held))
    if not isinstance(rule, Plainly):
        return keys, sums
    sizes, weights = rule.list_sizes(number)
    lists = np.bincount(-1 - sizes, weights).astype(np.int64)
    return np.r_[-1 - np.arange(len(lists)), keys], np.r_[lists, sums]


def squared_distance(one: dict[int, int], other: dict[int, int]) -> int:
    return sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in one.keys() | other.keys())


def moves_the_unit_at_most(engine: str, others: Rows, user: Rows, unit: int, seed: int) -> None:
    without = added(engine, others, unit, seed)
    with_user = added(engine, [*others, *user], unit, seed)
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


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=15)
@given(
    rows_of_others, st.lists(texts, min_size=1, max_size=3), st.integers(8, 60), st.integers(0, 9)
)
def test_any_user_moves_each_round_by_the_unit_at_most(engine, others, newcomer, unit, seed):
    moves_the_unit_at_most(engine, others, [("new", text) for text in newcomer], unit, seed)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_queries_show_what_the_rounds_in_plain_arrays_show(engine, seed):
    """The oracle: both rounds over one array of sums, from the same draws."""
    rows = [(f"u{n}", ALL_PAIRS) for n in range(3)]
    rows += [(f"v{n}", " ".join(WORDS[n % 5 : n % 5 + 3])) for n in range(400)]
    thresholds = np.random.default_rng(seed).integers(
        1, 3 * SIGMA_GRID, (len(VALID.sizes), len(bins(SIGMA_GRID).starts))
    )
    weights = np.random.default_rng(seed).integers(1, 3_500, thresholds.shape)
    shown = []
    for rounds in both_ways(engine, rows, seed):
        seen = rounds.first_round(2, VALID, bins(SIGMA_GRID), 100)
        negatives = rounds.second_round(weights, 120)
        passed = rounds.passed(thresholds)
        arrays = (seen.counts, seen.lists, negatives, *vars(passed).values())
        shown.append([array.tolist() for array in arrays])
        rounds.close()
    assert shown[0] == shown[1]
    assert len(shown[0][3]) > 10
