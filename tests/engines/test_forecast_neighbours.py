"""What users move in the two rounds of a level, through the whole path of each engine.

D and D + u are two corpora, each read by itself: with its own rows, its own numbers of words and
its own grams that somebody holds. What is public is the same on both sides: what is released, and
the weights of round 2, which here depend on a gram's class alone, so that they are the same
whatever round 1 showed. There is no noise, so that what passes shows the sums.

In plain Python every user adds what they add alone, and no more than the unit. Where an engine's
sums are these, whatever the corpus, a neighbour's difference is what that user adds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from dphh.udfs.kernel import gathering as kernel_gathering
from dphh.udfs.kernel.reading import Words
from dphh.udfs.kernel.spilled_texts import SpilledTexts
from tests.engines.ladders import Quiet
from tests.engines.levels import host_on
from tests.engines.watched import grams_held, in_round_1, in_round_2, to_lists

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

    round_1: Counter[int] = field(default_factory=Counter)
    lists: list[int] = field(default_factory=lambda: [0] * 19)
    round_2: Counter[int] = field(default_factory=Counter)


def classes(ladder: Ladder) -> ValidClasses:
    masses = np.geomspace(1.0, 100.0, len(ladder.top))
    below = ladder.rungs[-2] if len(ladder.rungs) > 1 else [0]
    return valid_classes(ladder.top, masses, np.geomspace(1.0, 500.0, len(below)))


def weights_of(ladder: Ladder, seed: int) -> Any:
    """By class, the same in all bins."""
    rows = len(classes(ladder).forecasts), len(bins(SIGMA_GRID).starts)
    of_class = np.random.default_rng(seed).integers(1, 3_500, rows[0])
    return np.tile(of_class[:, None], rows[1])


def added(engine: str, rows: Rows, unit: int, seed: int, level: int) -> Added:
    """Both rounds over a corpus of (user, text)."""
    ladder = LADDERS[level]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.parquet"
        table = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
        table.write_parquet(path)
        corpus = Corpus(path, user="who", text="what")
        with host_on(engine, corpus, Quiet(seed)) as host:
            host.gather("users", Words(ends=True))
            Placed(host).climb(ladder)
            rounds = TwoRounds(host, "test")
            seen = rounds.first_round(level, classes(ladder), bins(SIGMA_GRID), unit)
            rounds.second_round(weights_of(ladder, seed), unit)
            passed = rounds.passed(np.ones(seen.counts.shape, dtype=np.int64))
            rounds.close()
    some = np.isin(passed.keys, [*grams_held(ladder, WORDS, [text for _, text in rows])])
    keys = passed.keys[some].tolist()  # the others are spurious
    first, second = (column[some].tolist() for column in (passed.first, passed.second))
    return Added(
        Counter(dict(zip(keys, first, strict=True))),
        seen.lists.tolist(),
        Counter(dict(zip(keys, second, strict=True))),
    )


def expected(rows: Rows, unit: int, seed: int, level: int) -> Added:
    """The same in plain Python, user by user; each moves either round by the unit at most."""
    ladder, found = LADDERS[level], Added()
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for user, text in rows:
        texts[user].append(text)
    valid, weights = classes(ladder), weights_of(ladder, seed)[:, 0]
    for of_user in texts.values():
        keys = [*grams_held(ladder, WORDS, of_user)]
        if not keys:
            continue
        plain = in_round_1(unit, len(keys))
        place, own = to_lists(unit, len(keys))
        g = dict(zip(keys, weights[valid.of(np.array(keys))].tolist(), strict=True))
        second = in_round_2(unit, g)
        assert len(keys) * plain**2 + own**2 <= unit**2
        assert sum(x * x for x in second.values()) <= unit**2
        found.lists[place] += own
        found.round_1.update(dict.fromkeys(keys, plain))
        found.round_2.update(second)
    found.round_2 = +found.round_2
    found.round_1 = Counter({key: found.round_1[key] for key in found.round_2})
    return found


words = st.sampled_from([*WORDS, *WORDS, "never released", "nor this"])
texts = st.one_of(st.just(ALL_PAIRS), st.lists(words, max_size=40).map(" ".join))
rows_of_users = st.lists(st.tuples(st.sampled_from("abcdef"), texts), max_size=8)

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
#: At units of 8 and 11, who holds 144 grams gives each of them 0 in round 1. Were such grams
#: forgotten, a newcomer of one of them would have all these users weigh it in round 2.
LONG = [(f"long {number}", ALL_PAIRS) for number in range(40)]
NEWCOMER = ("new", f"{WORDS[3]} {WORDS[7]}")


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=15)
@given(rows_of_users, st.integers(8, 60), st.integers(0, 9), st.sampled_from([*LADDERS]))
@example(LONG, 8, 1, 2)
@example([*LONG, NEWCOMER], 8, 1, 2)
@example([*LONG, NEWCOMER], 11, 1, 2)
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
