"""Counts of public keys, and `counts=` of what a run finds.

`test_plain_sql.py` has the sums as the specification has.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dphh import Corpus, counts, items, ngrams, trie
from dphh.mechanisms.counts import levels as counts_levels
from dphh.mechanisms.counts.levels import draw_counts
from dphh.mechanisms.counts.of_found import NOTE
from dphh.testing import SeededRandomness
from tests.engines.levels import CHANCE, few, host_on

WORDS = ["a", "b", "c", "dd", "é", "\x1f", "\\", "日本"]
ITEMS = (("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b", "a"), ("zz",), ("\x1f",), ("é", "\\"))
ROWS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.lists(st.sampled_from([*WORDS, "a", "b", "a", "b", ""]), max_size=6),
        st.sampled_from(["DE", "FR", "ES", "other", None]),
    ),
    min_size=1,
    max_size=14,
)
BUDGET = {"epsilon": 1.0, "delta": 1e-8}
BY = {"by": "where", "groups": ["DE", "FR"]}


def as_corpus(tmp_path, rows):
    path = tmp_path / "corpus.parquet"
    schema = {"who": pl.Int64, "what": pl.List(pl.String), "where": pl.String}
    pl.DataFrame([*rows], schema=schema, orient="row").write_parquet(path)
    return Corpus(str(path), user="who", text="what", as_="list")


def drawn(engine, plan, randomness):
    """The noised sums of all keys, as the engine gives them."""
    (level,) = plan.levels
    with host_on(engine, plan.corpus, randomness) as host:
        table = draw_counts(host, level, plan["of"], plan["groups"])
    found = dict(zip(table["key"].to_pylist(), table["noisy"].to_pylist(), strict=True))
    assert sorted(found) == list(range(level.weighing.keys + level.weighing.octaves))
    return [found[key] for key in sorted(found)]


@given(rows=ROWS, most=st.sampled_from([1, 3]), victim=st.integers(0, 5))
@few(10)
def test_whoever_comes_or_goes_moves_all_that_is_released_by_the_priced_norm(
    engine, tmp_path, no_noise, rows, most, victim
):
    # With a user who has everything, and one who is always there.
    everything = [(5, list(item), "DE") for item in ITEMS] + [(5, WORDS, "FR"), (99, ["a"], "ES")]
    options = {**BY, "max_held": most, **BUDGET}

    def sums(found):
        return drawn(engine, counts(as_corpus(tmp_path, found), of=ITEMS, **options), no_noise)

    with_them = sums([*rows, *everything])
    without = sums([row for row in [*rows, *everything] if row[0] != victim])
    weighing = counts(of=ITEMS, **options).levels[0].weighing
    moved = sum((one - other) ** 2 for one, other in zip(with_them, without, strict=True))
    assert moved <= most * weighing.unit**2


def test_a_corpus_that_nobody_is_in_counts_nobody(engine, tmp_path, no_noise):
    plan = counts(as_corpus(tmp_path, []), of=ITEMS, max_held=2, **BUDGET)
    assert set(drawn(engine, plan, no_noise)) == {0}


# What a run finds is counted in the same run, whatever finds it.

LOOSE = {"epsilon": 8.0, "delta": 1e-4}
FINDS = {
    "items": lambda corpus, **more: items(corpus, method="gaussian", **LOOSE, **more),
    "adaptive": lambda corpus, **more: items(corpus, method="adaptive", **LOOSE, **more),
    "sips": lambda corpus, **more: items(corpus, method="sips", **LOOSE, **more),
    "dpne": lambda corpus, **more: ngrams(corpus, max_n=3, method="dpne", **LOOSE, **more),
    "forecast": lambda corpus, **more: ngrams(corpus, max_n=3, method="forecast", **LOOSE, **more),
}
TEXTS = ["new york is big", "york new", "new york new york", "san francisco", "rare"]
SHARED = [(user, TEXTS[user % 5]) for user in range(300)] + [(999, text) for text in TEXTS]


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
    return len({user for user, row in SHARED if text in f" {row} "})


@pytest.mark.parametrize("how", FINDS)
def test_all_that_is_found_is_counted_and_what_fewer_users_hold_is_left_out(engine, written, how):
    all_of_it, some = (
        FINDS[how](written(SHARED), counts=0.3, **floor).run(
            engine=engine, randomness=ExactCounts(), again=True
        )
        for floor in ({}, {"min_users": 100})
    )
    rows = all_of_it.to_arrow().to_pylist()
    assert {row["item"] for row in rows} >= {"new", "york"}
    for row in rows:
        assert row["users"] == held_by(row["tokens"])
        assert row["low"] <= row["users"] <= row["high"]
    assert all_of_it.table.schema.names[3:] == ["score", "users", "low", "high"]
    assert all_of_it.manifest["counting"]["counted"] == len(rows)
    drew = all_of_it.manifest.get("drawn", all_of_it.manifest["events"])
    assert sum(event.get("note") == NOTE for event in drew) == 1  # whatever was given back
    enough = [row for row in rows if row["low"] >= 100]
    assert 0 < len(enough) < len(rows)
    assert [row["tokens"] for row in some] == [row["tokens"] for row in enough]
    assert some.manifest["counting"]["kept"] == len(some)


def test_beyond_what_can_be_counted_the_first_of_each_level_are(written, monkeypatch):
    monkeypatch.setattr(counts_levels, "MOST_KEYS", 4)
    release = FINDS["dpne"](written(SHARED), counts=0.3).run(randomness=SeededRandomness(1))
    counted = [(row["level"], row["users"] is not None) for row in release]
    for level, number in ((1, 2), (2, 1), (3, 1)):
        known = [known for of, known in counted if of == level]
        assert known == [True] * number + [False] * (len(known) - number)
    assert release.manifest["counting"]["counted"] == 4
    assert repr(release)  # a row that was not counted shows its score


# Of a trie each leaf is counted, and nothing above it.

BEGINNINGS = ["new york is big", "york new", "new york", "new york", "rare"]
#: Users of one row; of several; of the same row twice; and one of everything, and of nothing.
GROWN = (
    [(user, BEGINNINGS[user % 5]) for user in range(400)]
    + [(user, "york new") for user in range(60)]
    + [(user, "new york") for user in range(0, 400, 7)]
    + [(999, text) for text in [*BEGINNINGS, "", None]]
)
READINGS = {
    "words": ({}, {}, str.split),
    "units": (
        {"text": None, "item": "what"},
        {"unit": 3},
        lambda text: [text[at : at + 3] for at in range(0, len(text), 3)],
    ),
    "batches": (
        {},
        {"accounting": "paper", "users": 500, "epsilon": 80.0, "delta": 1e-2},
        str.split,
    ),
}


def grow(corpus, **more):
    return trie(corpus, **{**LOOSE, "max_length": 4, "counts": 0.3, "max_items": 20, **more})


def leaves(rows):
    """The rows that no other row goes on from, by looking at every pair."""
    below = [(row["tokens"][: len(row["tokens"]) - (not row["ended"])], row) for row in rows]
    return [
        row
        for row in rows
        if row["ended"] or all(begin != row["tokens"] or other is row for begin, other in below)
    ]


def begun_by(row, read):
    """How many users hold a sequence that begins so, or is it, looked up row by row."""
    tokens = row["tokens"]

    def holds(sequence):
        return sequence == tokens if row["ended"] else sequence[: len(tokens)] == tokens

    return len({user for user, text in GROWN if text is not None and holds(read(text))})


@pytest.mark.parametrize("how", READINGS)
def test_each_leaf_is_counted_and_nothing_above_it(engine, written, how):
    reading, more, read = READINGS[how]
    release = grow(written(GROWN, **reading), **more).run(engine=engine, randomness=ExactCounts())
    rows = release.to_arrow().to_pylist()
    counted = leaves(rows)
    assert counted
    assert sum(row["users"] is not None for row in rows) == len(counted)
    for row in counted:
        assert row["users"] == begun_by(row, read)
        assert row["low"] <= row["users"] <= row["high"]
    if how == "words":
        ends = {row["item"]: row["ended"] for row in counted}
        assert ends == {"new york": True, "york new": True, "rare": True, "new york is big": False}
    assert release.table.schema.names[3:] == ["score", "ended", "users", "low", "high"]


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
    release = grow(corpus, max_length=2, unit=4, max_items=3, choice="drawn").run()
    ends = [row for row in release if row["ended"]]
    inside = sum(row["low"] <= held[row["item"]] <= row["high"] for row in ends)
    assert len(ends) == 300
    assert inside >= binom.ppf(CHANCE, len(ends), 0.95)
