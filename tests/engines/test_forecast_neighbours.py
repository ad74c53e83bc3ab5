"""What one user moves in the two rounds of a level, through the whole path of each engine.

D and D + u are two corpora, each read by itself: with its own rows, its own numbers of words and
its own grams that somebody holds. What is public is the same on both sides: the released words,
and the noised weight of each gram in round 1, which here is a number that hangs on the gram alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from dphh.engines.two_rounds import TwoRounds
from dphh.ladder.classes import ValidClasses, valid_classes
from dphh.ladder.rungs import Ladder, first_ladder
from dphh.privacy.forecast.rounds import bins
from dphh.testing import SeededRandomness
from tests.engines.levels import session_on

WORDS = [f"w{number:02}" for number in range(12)]
SIGMA_GRID = 2**10
LADDER = first_ladder(pa.array(WORDS), "both")
#: All 144 pairs, each of them once in the texts of who holds them all.
ALL_PAIRS = " ".join(f"{one} {other}" for one in WORDS for other in WORDS)
Rows = Sequence[tuple[str, str]]


@dataclass
class Added:
    """What all users add to each key in a round, before its noise."""

    round_1: dict[int, int]
    lists: dict[int, int]
    round_2: dict[int, int]


class Watched(TwoRounds):
    """Keeps the sums of both rounds. The noised weight of a gram hangs on the gram alone."""

    def __init__(self, sums: Any) -> None:
        super().__init__(sums, SeededRandomness(7), "test")
        self.seen: dict[str, dict[int, int]] = {}

    def _noised(self, keys: Any, sums: Any, what: str) -> Any:
        self.seen[what] = dict(zip(keys.tolist(), sums.tolist(), strict=True))
        return (keys * 2_654_435_761) % (14 * SIGMA_GRID) - SIGMA_GRID


def classes(ladder: Ladder) -> ValidClasses:
    masses = np.geomspace(1.0, 100.0, len(ladder.top))
    return valid_classes(ladder.top, masses, np.array([masses.sum()]))


def added(engine: str, rows: Rows, unit: int, seed: int) -> Added:
    """Both rounds over a corpus of (user, text)."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.parquet"
        corpus = Corpus(path, user="who", text="what")
        pl.DataFrame(
            rows, schema={"who": pl.String, "what": pl.String}, orient="row"
        ).write_parquet(path)
        with session_on(engine, corpus, SeededRandomness(7)) as session:
            session.hold_texts()
            session._place_all(LADDER)
            rounds = Watched(lambda rule: session._sums(rule, LADDER))
            shape = rounds.first_round(2, classes(LADDER), bins(SIGMA_GRID), unit).counts.shape
            weights = np.random.default_rng(seed).integers(1, 3_500, shape)
            rounds.second_round(weights, unit)
    return Added(rounds.seen["round 1"], rounds.seen["list sizes"], rounds.seen["round 2"])


def squared_distance(one: dict[int, int], other: dict[int, int]) -> int:
    return sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in one.keys() | other.keys())


def moves_the_unit_at_most(engine: str, others: Rows, user: Rows, unit: int, seed: int) -> None:
    without = added(engine, others, unit, seed)
    with_user = added(engine, [*others, *user], unit, seed)
    first = squared_distance(without.round_1, with_user.round_1)
    first += squared_distance(without.lists, with_user.lists)
    assert first <= unit**2
    assert squared_distance(without.round_2, with_user.round_2) <= unit**2


@pytest.mark.parametrize("unit", [8, 11])
def test_a_newcomer_moves_nobodys_weights_where_others_hold_so_much_that_they_give_nothing(
    engine, unit
):
    """At these units, who holds 144 grams gives each of them 0 in round 1. Were such grams
    forgotten, a newcomer of one of them would have all these users weigh it in round 2."""
    others = [(f"long {number}", ALL_PAIRS) for number in range(40)]
    moves_the_unit_at_most(engine, others, [("new", f"{WORDS[3]} {WORDS[7]}")], unit, 1)


def test_every_gram_that_somebody_holds_gets_noise_in_both_rounds(engine):
    rounds = added(engine, [("long", ALL_PAIRS)], 8, 1)
    assert len(rounds.round_1) == len(rounds.round_2) == len(WORDS) ** 2
    assert set(rounds.round_1.values()) == {0}


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
