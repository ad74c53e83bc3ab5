"""`trie(counts=)`: what a trie found is counted in the same run, on every engine."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from dphh import Ledger, trie
from dphh.mechanisms.counts.of_found import NOTE
from dphh.testing import SeededRandomness
from tests.engines.test_counts_of_found import ExactCounts, standing

BUDGET = {"epsilon": 8.0, "delta": 1e-4}
TEXTS = ["new york is big", "york new", "new york", "new york", "rare"]
#: Users of one row; of several; of the same row twice; and one of everything, and of nothing.
ROWS = (
    [(user, TEXTS[user % 5]) for user in range(400)]
    + [(user, "york new") for user in range(60)]
    + [(user, "new york") for user in range(0, 400, 7)]
    + [(999, text) for text in [*TEXTS, "", None]]
)


def leaves(rows):
    """The rows that no other row goes on from, by looking at every pair."""
    below = [(row["tokens"][: len(row["tokens"]) - (not row["ended"])], row) for row in rows]
    return [
        row
        for row in rows
        if row["ended"] or all(begin != row["tokens"] or other is row for begin, other in below)
    ]


def held_by(row, read):
    """How many users hold a sequence that begins so, or is it, looked up row by row."""
    tokens, ended = row["tokens"], row["ended"]

    def holds(sequence):
        return sequence == tokens if ended else sequence[: len(tokens)] == tokens

    return len({user for user, text in ROWS if text is not None and holds(read(text))})


def plan(corpus, **more):
    return trie(corpus, **{**BUDGET, "max_length": 4, "counts": 0.3, "max_items": 20, **more})


PAPER = {"accounting": "paper", "users": 500, "epsilon": 80.0, "delta": 1e-2}
READINGS = {
    "words": ({}, {}, str.split),
    "characters": ({"text": None, "item": "what"}, {}, list),
    "units": (
        {"text": None, "item": "what"},
        {"unit": 3},
        lambda text: [text[at : at + 3] for at in range(0, len(text), 3)],
    ),
    "batches": ({}, PAPER, str.split),
}


@pytest.mark.parametrize("how", READINGS)
def test_each_leaf_is_counted_and_nothing_above_it(engine, written, how):
    reading, more, read = READINGS[how]
    release = plan(written(ROWS, **reading), **more).run(engine=engine, randomness=ExactCounts())
    rows = release.to_arrow().to_pylist()
    counted = leaves(rows)
    assert counted
    assert sum(row["users"] is not None for row in rows) == len(counted)
    for row in counted:
        assert row["users"] == held_by(row, read)
        assert row["low"] <= row["users"] <= row["high"]
    if how == "words":
        ends = {row["item"]: row["ended"] for row in counted}
        assert ends == {"new york": True, "york new": True, "rare": True, "new york is big": False}
    assert release.table.schema.names[3:] == ["score", "ended", "users", "low", "high"]
    drew = release.manifest.get("drawn", release.manifest["events"])
    assert sum(event.get("note") == NOTE for event in drew) == bool(rows)
    assert repr(release)


@pytest.mark.on_spark(every=True)
def test_a_seeds_release_is_the_same_counted_on_this_engine(engine, written):
    asked = plan(written(ROWS))
    release = asked.run(engine=engine, randomness=SeededRandomness(4))
    other = asked.run(engine="duckdb", randomness=SeededRandomness(4))
    assert release.table.equals(other.table)
    assert release.table["users"].null_count < len(release)


class StopError(Exception):
    pass


@pytest.mark.parametrize("where", ["while it grows", "before it counts", "when it has counted"])
def test_a_run_that_is_cut_short_goes_on_and_pays_once(engine, written, ledger, monkeypatch, where):
    asked = plan(written(ROWS), choice="most-frequent")

    def stop(line):
        if line.startswith({"while it grows": "level 2", "before it counts": "counting"}[where]):
            raise StopError

    def fail(*_):
        raise StopError

    with monkeypatch.context() as patch, pytest.raises(StopError):
        if where == "when it has counted":
            patch.setattr(Ledger, "settle", fail)
            stop = None
        asked.run(engine=engine, ledger=ledger, run_id="cut", progress=stop)
    stood = standing(ledger)
    assert ("counts" in stood) == (where == "when it has counted")
    release = asked.run(engine=engine, ledger=ledger, run_id="cut")
    grown = {step: table for step, table in stood.items() if step.startswith("trie")}
    for step, table in grown.items():
        level = int(step.removeprefix("trie/level "))
        rows = [row for row in release if row["level"] == level]
        assert len(rows) == len(table)
    if "counts" in stood:
        unit = 2 ** release.manifest["counting"]["grid_bits"]
        noisy = stood["counts"]["noisy"].to_pylist()[: release.manifest["counting"]["counted"]]
        users = {max(0, (value + unit // 2) // unit) for value in noisy}
        assert {row["users"] for row in release} - {None} <= users
    (entry,) = ledger.runs()
    assert [event.kind for event in entry.events] == ["approximate", "gaussian", "delta"]
    assert len(ledger.runs()) == 1


def test_where_nothing_grows_nothing_is_counted(engine, written):
    release = plan(written([(1, "a b"), (2, "c")])).run(
        engine=engine, randomness=SeededRandomness(1)
    )
    assert len(release) == 0
    assert release.table.schema.names[-3:] == ["users", "low", "high"]
    assert release.manifest["counting"]["counted"] == 0


def test_intervals_hold_the_true_numbers_of_holders(written):
    """300 words of 60 to 120 holders each, of users who hold 1 to 30 of them."""
    words = [f"w{place:03}" for place in range(300)]
    rows, held = [], dict.fromkeys(words, 0)
    user = 0
    for size in (1, 1, 1, 1, 2, 3, 30) * 60:
        for start in range(0, 300, size):
            for word in words[start : start + size]:
                rows.append((user, word))
                held[word] += 1
            user += 1
    corpus = written(rows, text=None, item="what")
    release = plan(corpus, max_length=2, unit=4, max_items=3, choice="drawn").run()
    ends = [row for row in release if row["ended"]]
    inside = sum(row["low"] <= held[row["item"]] <= row["high"] for row in ends)
    assert len(ends) == 300
    assert inside >= binom.ppf(1e-9, len(ends), 0.95)
