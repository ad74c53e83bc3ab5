"""`counts=`: what a run finds is counted in the same run, whatever finds it, on every engine."""

from __future__ import annotations

import io
import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from dphh import Ledger, UsageError, items, ngrams
from dphh.mechanisms.counts import levels as counts_levels
from dphh.mechanisms.counts.of_found import NOTE
from dphh.testing import SeededRandomness

BUDGET = {"epsilon": 8.0, "delta": 1e-4}
PLANS = {
    "items": lambda corpus, **more: items(corpus, method="gaussian", **BUDGET, **more),
    "adaptive": lambda corpus, **more: items(corpus, method="adaptive", **BUDGET, **more),
    "sips": lambda corpus, **more: items(corpus, method="sips", **BUDGET, **more),
    "dpne": lambda corpus, **more: ngrams(corpus, max_n=3, method="dpne", **BUDGET, **more),
    "forecast": lambda corpus, **more: ngrams(corpus, max_n=3, method="forecast", **BUDGET, **more),
}
TEXTS = ["new york is big", "york new", "new york new york", "san francisco", "rare"]
ROWS = [(user, TEXTS[user % 5]) for user in range(300)] + [(999, text) for text in TEXTS]


class ExactCounts:
    """A test's randomness but for the counts, whose noise it inverts to zero."""

    is_test = True

    def __init__(self):
        self.others = SeededRandomness(5)

    def words(self, count, purpose, keys=None):
        if purpose.startswith("counts"):
            return np.full(count, 2**64 - 1, dtype=np.uint64)
        return self.others.words(count, purpose, keys)


def held_by(tokens):
    """How many users hold these tokens side by side, looked up row by row."""
    text = f" {' '.join(tokens)} "
    return len({user for user, row in ROWS if text in f" {row} "})


@pytest.mark.parametrize("how", PLANS)
def test_what_fewer_users_hold_is_left_out(engine, written, how):
    plan = PLANS[how](written(ROWS), counts=0.3)
    (all_of_it, some) = (
        PLANS[how](written(ROWS), counts=0.3, **floor).run(
            engine=engine, randomness=ExactCounts(), again=True
        )
        for floor in ({}, {"min_users": 100})
    )
    enough = [row for row in all_of_it if row["low"] >= 100]
    assert 0 < len(enough) < len(all_of_it)
    assert [row["tokens"] for row in some] == [row["tokens"] for row in enough]
    assert all(held_by(row["tokens"]) >= 100 for row in some)
    assert some.manifest["counting"]["kept"] == len(some)
    assert plan.price != PLANS[how](written(ROWS), counts=0.3, min_users=100).price


def test_of_what_one_user_too_few_holds_so_much_comes_through_as_the_plan_says(written):
    """400 items of 39 users each, 100 of 200: each user holds one. With noise of the system's."""
    rows = [(f"{item} {user}", f"few{item}") for item in range(400) for user in range(39)]
    rows += [(f"many {item} {user}", f"many{item}") for item in range(100) for user in range(200)]
    plan = items(written(rows), epsilon=4.0, delta=1e-5, max_items=1, counts=0.5, min_users=40)
    assert "comes through with probability at most 2.50%" in " ".join(plan.describe().split())
    found = [row["item"] for row in plan.run()]
    few = sum(item.startswith("few") for item in found)
    assert few <= 32, "of 400 at 2.5% more than 32 come through once in ten million times"
    assert len(found) - few == 100
    without = items(written(rows), epsilon=4.0, delta=1e-5, max_items=1, counts=0.5).run()
    assert len(without) == 500


def test_of_each_group_what_fewer_of_its_users_hold_is_left_out(written):
    rows = [(user, f"{'north' if user < 300 else 'south'} both") for user in range(400)]
    corpus = written(rows)
    frame = pl.read_parquet(corpus.where[0]).with_columns(
        side=pl.col("what").str.split(" ").list.first()
    )
    frame.write_parquet(corpus.where[0])
    asked = {"counts": 0.5, "by": "side", "groups": ["north", "south"]}
    plan = items(corpus, epsilon=4.0, delta=1e-5, max_items=3, min_users=150, **asked)
    assert "of each group, what is found there" in " ".join(plan.describe().split())
    found = {(row["item"], row["group"]) for row in plan.run(randomness=ExactCounts())}
    assert found == {("both", "north"), ("north", "north")}


@pytest.mark.parametrize(
    "more, said",
    [
        ({"min_users": 20}, "say counts="),
        ({"min_users": 1, "counts": 0.3}, "a whole number from 2"),
        ({"min_users": True, "counts": 0.3}, "a whole number from 2"),
    ],
)
def test_a_floor_goes_with_counts_of_all(more, said):
    with pytest.raises(UsageError, match=said):
        items(**BUDGET, **more)


@pytest.mark.parametrize("how", PLANS)
def test_all_that_is_found_is_counted_whoever_finds_it(engine, written, how):
    release = PLANS[how](written(ROWS), counts=0.3).run(engine=engine, randomness=ExactCounts())
    rows = release.to_arrow().to_pylist()
    assert {row["item"] for row in rows} >= {"new", "york"}
    for row in rows:
        assert row["users"] == held_by(row["tokens"])
        assert row["low"] <= row["users"] <= row["high"]
    assert release.table.schema.names[3:] == ["score", "users", "low", "high"]
    assert release.manifest["counting"]["counted"] == len(rows)
    drew = release.manifest.get("drawn", release.manifest["events"])
    assert sum(event.get("note") == NOTE for event in drew) == 1  # whatever was given back


@pytest.mark.on_spark(every=True)
def test_a_seeds_release_is_the_same_counted_on_this_engine(engine, written):
    plan = PLANS["dpne"](written(ROWS), counts=0.3)
    release = plan.run(engine=engine, randomness=SeededRandomness(4))
    other = plan.run(engine="duckdb", randomness=SeededRandomness(4))
    assert release.table.equals(other.table)
    assert len(release) > 8


@pytest.mark.parametrize("how", ["items", "dpne"])
def test_where_nothing_is_found_nothing_is_counted(engine, written, how):
    plan = PLANS[how](written([(1, "a b"), (2, "c")]), counts=0.3)
    release = plan.run(engine=engine, randomness=SeededRandomness(1))
    assert len(release) == 0
    assert release.table.schema.names[-3:] == ["users", "low", "high"]
    assert release.manifest["counting"]["counted"] == 0


def standing(ledger):
    """What stands in an unfinished run's ledger, step by step, read past dphh."""
    with closing(sqlite3.connect(ledger.path)) as con:
        found = con.execute("SELECT step, data FROM pieces JOIN unfinished USING (run)").fetchall()
    return {step: pq.read_table(io.BytesIO(data)) for step, data in found}


class StopError(Exception):
    pass


def test_a_run_that_is_cut_short_before_it_counts_counts_what_it_found(engine, written, ledger):
    plan = PLANS["dpne"](written(ROWS), counts=0.3)

    def stop(line):
        if line.startswith("counting"):
            raise StopError

    with pytest.raises(StopError):
        plan.run(engine=engine, ledger=ledger, run_id="cut", progress=stop)
    stood = standing(ledger)
    assert len(stood) == 3 and "counts" not in stood
    release = plan.run(engine=engine, ledger=ledger, run_id="cut")
    noisy = Counter(value for rows in stood.values() for value in rows["noisy"].to_pylist())
    bits = plan.levels[0].grid_bits
    assert Counter(int(row["score"] * 2**bits) for row in release) == noisy
    assert release.table["users"].null_count == 0


def test_counts_that_were_drawn_stand_when_a_run_goes_on(engine, written, ledger, monkeypatch):
    plan = PLANS["items"](written(ROWS), counts=0.3)

    def fail(*_):
        raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", fail)
        with pytest.raises(StopError):
            plan.run(engine=engine, ledger=ledger, run_id="cut")
    drawn = standing(ledger)["counts"]
    release = plan.run(engine=engine, ledger=ledger, run_id="cut")
    unit = 2 ** release.manifest["counting"]["grid_bits"]
    users = {max(0, (noisy + unit // 2) // unit) for noisy in drawn["noisy"].to_pylist()}
    assert set(release.table["users"].to_pylist()) == users
    (entry,) = ledger.runs()
    assert [event.kind for event in entry.events] == ["set union", "gaussian", "delta"]
    assert len(ledger.runs()) == 1


def test_beyond_what_can_be_counted_the_first_of_each_level_are(written, monkeypatch):
    monkeypatch.setattr(counts_levels, "MOST_KEYS", 4)
    release = PLANS["dpne"](written(ROWS), counts=0.3).run(randomness=SeededRandomness(1))
    counted = [(row["level"], row["users"] is not None) for row in release]
    for level, number in ((1, 2), (2, 1), (3, 1)):
        known = [known for of, known in counted if of == level]
        assert known == [True] * number + [False] * (len(known) - number)
    assert release.manifest["counting"]["counted"] == 4
    assert repr(release)  # a row that was not counted shows its score


WHOLE, LETTERS = {"né": 100, "n": 100, "éa": 100}, {"n": 200, "é": 200, "a": 100}


@pytest.mark.parametrize(
    "reading, expected",
    [
        ({"text": None, "item": "what"}, WHOLE),
        ({"as_": "characters"}, LETTERS),
    ],
    ids=["whole", "characters"],
)
def test_however_a_corpus_is_read_its_finds_are_counted_so(engine, written, reading, expected):
    corpus = written([(user, ["né", "n", "éa"][user % 3]) for user in range(300)], **reading)
    release = items(corpus, counts=0.3, **BUDGET).run(engine=engine, randomness=ExactCounts())
    assert {row["item"]: row["users"] for row in release} == expected
