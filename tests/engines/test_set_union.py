"""Rounds of a set union: what bounds a user, what a round decides, what it costs and what it shows.

`test_plain_sql.py` has the levels as the specification has, `test_neighbours.py` what a newcomer
changes.
"""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from dataclasses import asdict
from math import floor, sqrt
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh import Corpus, Ledger, items
from dphh.levels.set_union import CHOICE_COMMON, SetUnionLevel, WeighedLevel
from dphh.mechanisms.items.levels import items_levels
from dphh.mechanisms.set_union.levels import draw_words
from dphh.mechanisms.set_union.rounds import new_delta, round_alone
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.testing import SeededRandomness
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.reading import Words as Texts
from tests.engines.levels import bare_level, few, histogram, host_on, in_adaptive_rounds, unstored

#: Without Spark: what is looked at is the driver's, or a query that Spark has from DuckDB.
NOT_SPARK = pytest.mark.parametrize("engine", ["duckdb", "polars"])
WORDS = st.sampled_from(["a", "b", "c", "dd", "é", "ß", "f\0g", "日本"])
ROWS = st.lists(st.tuples(st.integers(0, 4), st.lists(WORDS, max_size=5)), min_size=1, max_size=12)


# What bounds a user


@given(rows=ROWS, cap=st.integers(1, 3))
@few(25)
def test_an_over_full_user_keeps_just_as_many_items_as_allowed(
    engine, written, no_noise, rows, cap
):
    corpus = written([(user, words) for user, words in rows], text="what", as_="list")
    held = defaultdict(set)
    for user, words in rows:
        held[user] |= {*words}
    per_user = Counter(min(len(words), cap) for words in held.values() if words)
    expected = sum(users * t * floor(1024 / sqrt(t)) for t, users in per_user.items())
    assert sum(histogram(engine, corpus, no_noise, cap).values()) == expected


def test_which_items_an_over_full_user_keeps_differs_from_user_to_user(engine, written, no_noise):
    words = " ".join(f"w{i}" for i in range(50))
    found = histogram(engine, written([(user, words) for user in range(200)]), no_noise, 5)
    assert len(found) == 50  # all would keep the same five if the item alone were hashed


def test_noise_is_drawn_once_and_the_threshold_reads_what_was_drawn(engine, written):
    """Were noise drawn again for the filter, or for the output, some would lie below."""
    corpus = written([(user, f"w{user}") for user in range(3000)])
    with host_on(engine, corpus, SystemRandomness()) as host:
        host.gather("users", Texts())
        passed = draw_words(host, bare_level(1, threshold=1024), "test")
    scores = passed.column("noisy").to_pylist()
    assert 0 < len(scores) < 3000
    assert min(scores) >= 1024


# Thresholds that are made for equal weights (`SetUnionLevel`) stand where weights are equal:
# whatever draws one is asked, of each user alone and without noise.

MOST, SIGMA = 7, 1_557
# DP-SIPS, and what one round in the place of others costs


def run_on(engine: str, corpus: Any, randomness: Any, plan: Any) -> list[Any]:
    with host_on(engine, corpus, randomness) as host:
        return list(items_levels(plan.price, host, unstored, " "))


def test_an_item_is_released_in_one_round_only(engine, written):
    rows = [(user, " ".join(f"w{i}" for i in range(1 + user % 8))) for user in range(2000)]
    release = items(written(rows), epsilon=1, delta=1e-5, method="sips").run(engine=engine)
    found = release.to_polars()["item"].to_list()
    assert sorted(found) == [f"w{i}" for i in range(8)]
    assert sum(level["released"] for level in release.manifest["levels"]) == 8


@pytest.mark.parametrize("method", ["sips", "adaptive"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.01), (0.5, 0.03), (3, 0.01)])
def test_one_round_alone_costs_no_more_than_those_it_replaces_compose_to(method, epsilon, delta):
    """A ledger composes the priced rounds: two thresholds together cost a little less than the sum
    of their deltas, so one threshold may not cost that sum."""
    plan = items(epsilon=epsilon, delta=delta, max_items=30, method=method)
    first, *later = plan.levels
    both = first, round_alone(later)
    others = plan.events[2 * len(plan.levels) :]  # which are of no round
    alone = compose(
        [
            *(GaussianEvent(level.sigma) for level in both),
            *(DeltaEvent(new_delta(level)) for level in both),
            *others,
        ]
    )
    priced = compose(plan.events)
    assert alone.infinite_loss <= priced.infinite_loss
    assert alone.delta(epsilon) <= priced.delta(epsilon) <= delta


# Rounds whose weights follow earlier noise


def corpus_of(rows: dict[str, str]) -> Corpus:
    frame = pl.DataFrame({"who": list(rows), "what": list(rows.values())})
    return Corpus(frame, user="who", text="what")


#: Six words that all share, and of each user one of their own, which does not pass by chance.
SHARED = {f"u{user}": f"common{user % 6} unheard{user}" for user in range(3000)}
ADAPTIVE: dict[str, Any] = {"epsilon": 4, "delta": 1e-12, "method": "adaptive", "max_items": 4}


def test_what_nobody_keeps_never_leaves_by_noise_alone(engine: str) -> None:
    """Thresholds are made for as many new items as a user keeps, however many they hold."""
    rows = {"one": " ".join(f"own{number}" for number in range(500)), "two": "b a"}
    level = SetUnionLevel(1, 7, 10, 10**4, -(10**9))
    (found,) = in_adaptive_rounds(engine, corpus_of(rows), SeededRandomness(1), [level])
    assert len(found) == 7 + 2


@NOT_SPARK
def test_what_is_stored_is_what_was_released(engine: str, tmp_path: Path) -> None:
    """The journal holds one draw, of what passed; the ledger's file no word that did not."""
    stored = []
    keep = Ledger.keep_level

    def kept(self: Ledger, hold: object, step: str, data: bytes) -> bytes:
        stored.append((step, pq.read_table(io.BytesIO(data))))
        for file in tmp_path.glob("ledger*"):
            assert b"unheard" not in file.read_bytes()
        return keep(self, hold, step, data)

    with patch.object(Ledger, "keep_level", kept):
        release = items(corpus_of(SHARED), **ADAPTIVE).run(
            engine=engine, ledger=tmp_path / "ledger.sqlite"
        )
    ((step, table),) = stored
    assert step == "items"
    assert table.column_names == ["round", "key", "noisy"]
    assert set(table["key"].to_pylist()) == set(release.to_polars()["item"])
    assert set(release.to_polars()["item"]) == {f"common{number}" for number in range(6)}
    kinds = [level["kind"] for level in release.manifest["levels"]]
    assert kinds == ["set_union", "weighed", "weighed"]


def test_later_rounds_thresholds_cover_any_weights() -> None:
    plan = items(epsilon=4, delta=1e-6, max_items=30, method="adaptive")
    first, *later = plan.levels
    assert type(first) is SetUnionLevel
    for level in later:
        assert isinstance(level, WeighedLevel)
        equal = SetUnionLevel(**asdict(level))
        assert new_delta(level) > 1.0003 * new_delta(equal)


# Method "auto": a first round chooses, and releases nothing.

AUTO: dict[str, Any] = {"epsilon": 8, "delta": 1e-3, "max_items": 10, "method": "auto"}


@pytest.mark.parametrize("common", [CHOICE_COMMON - 1, CHOICE_COMMON])
def test_common_items_choose_rounds_and_too_few_one_round(engine, written, no_noise, common):
    plan = items(**AUTO)
    first, alone, *rounds = plan.levels
    popular = int(first.threshold) + 1
    rows = [(user, f"c{user % common}") for user in range(common * popular)]
    rows += [(-1 - user, "rare") for user in range(int(rounds[-1].threshold) + 1)]
    done = run_on(engine, written(rows), no_noise, plan)
    second = alone if common < CHOICE_COMMON else rounds[0]
    assert [step.level for step in done][:2] == [first, second]
    assert done[0].rows.num_rows == 0
    found = [item for step in done for item in step.rows["item"].to_pylist()]
    assert sorted(found) == sorted([*(f"c{number}" for number in range(common)), "rare"])
