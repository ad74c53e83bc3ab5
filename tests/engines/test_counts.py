"""Counts of public keys, and `counts=` of what a run finds, against looking at each user."""

from __future__ import annotations

import io
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dphh import Corpus, CorpusError, Ledger, UsageError, counts, exact_ngrams, items, ngrams, trie
from dphh.mechanisms.counts import levels as counts_levels
from dphh.mechanisms.counts.levels import draw_counts
from dphh.mechanisms.counts.of_found import NOTE
from dphh.testing import SeededRandomness
from tests.conftest import full
from tests.engines.levels import CHANCE, few, host_on
from tests.udfs.test_given_grams import looked_up

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


@given(rows=ROWS, most=st.sampled_from([1, 2, 100]), grouped=st.booleans())
@few(20)
def test_sums_are_those_of_looking_at_each_user(engine, tmp_path, no_noise, rows, most, grouped):
    plan = counts(
        as_corpus(tmp_path, rows), of=ITEMS, max_held=most, **(BY if grouped else {}), **BUDGET
    )
    users = defaultdict(list)
    for user, words, country in rows:
        users[user].append((words, {"DE": 0, "FR": 1}.get(country, 2)))
    texts = [[words for words, _ in user] for user in users.values()]
    of_texts = [[group if grouped else 0 for _, group in user] for user in users.values()]
    expected = looked_up(texts, ITEMS, plan.levels[0].weighing, of_texts, 3 if grouped else 1)
    assert drawn(engine, plan, no_noise) == expected.tolist()


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


@pytest.mark.parametrize("by", ["nowhere", "what"])
def test_a_column_that_names_no_groups_is_refused_before_it_is_paid_for(
    engine, tmp_path, by, ledger
):
    corpus = as_corpus(tmp_path, [(1, ["x"], "DE")])
    with pytest.raises(CorpusError, match="by: "):
        counts(corpus, of=ITEMS, by=by, groups=["DE"], **BUDGET).run(engine=engine, ledger=ledger)
    assert not ledger.runs()


@pytest.mark.parametrize(
    "values, first",
    [([1, 2, None], "1"), ([True, False, None], "true"), (["DE", "", None], "DE")],
)
def test_groups_are_declared_as_texts_whatever_the_columns_type(
    engine, tmp_path, no_noise, values, first
):
    path = tmp_path / "typed.parquet"
    frame = pl.DataFrame({"who": [1, 2, 3], "what": ["a", "a", "a"], "where": values}, strict=False)
    frame.write_parquet(path)
    corpus = Corpus(str(path), user="who", text="what")
    plan = counts(corpus, of=[["a"]], by="where", groups=[first], max_held=2, **BUDGET)
    unit = plan.levels[0].weighing.unit
    assert drawn(engine, plan, no_noise) == [unit, 2 * unit]


@pytest.mark.slow
def test_on_msnbc_intervals_hold_the_exact_counts_as_often_as_they_say(shared_data, tmp_path):
    rows = pl.scan_parquet(shared_data / "msnbc.parquet")
    users = rows if full() else rows.head(200_000)
    users.sink_parquet(tmp_path / "msnbc.parquet")
    corpus = Corpus(str(tmp_path / "msnbc.parquet"), user="user_id", text="text")
    found = ngrams(corpus, max_n=6, epsilon=1.0, delta=1e-7, max_items=10, counts=0.3).run()
    exact = {
        tuple(row["tokens"]): row["users"]
        for row in exact_ngrams(corpus, max_n=6).to_arrow().to_pylist()
    }
    asked = {"of": found, "top": 1_000, "epsilon": 1.0, "delta": 1e-7}
    made = [counts(corpus, max_held=most, **asked).run() for most in (30, 1_000)]
    for release in (found, *made):
        rows = release.to_arrow().to_pylist()
        held = [row["low"] <= exact.get(tuple(row["tokens"]), 0) <= row["high"] for row in rows]
        assert sum(held) / len(held) >= 0.95 - 0.03


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


def test_of_what_one_user_too_few_holds_so_much_comes_through_as_the_plan_says(written):
    """400 items of 39 users each, 100 of 200: each user holds one. With noise of the system's."""
    rows = [(f"{item} {user}", f"few{item}") for item in range(400) for user in range(39)]
    rows += [(f"many {item} {user}", f"many{item}") for item in range(100) for user in range(200)]
    plan = items(written(rows), epsilon=4.0, delta=1e-5, max_items=1, counts=0.5, min_users=40)
    assert "comes through with probability at most 2.50%" in " ".join(plan.describe().split())
    found = [row["item"] for row in plan.run()]
    below = sum(item.startswith("few") for item in found)
    assert below <= 32, "of 400 at 2.5% more than 32 come through once in ten million times"
    assert len(found) - below == 100


def test_of_each_group_what_fewer_of_its_users_hold_is_left_out(written):
    rows = [(user, f"{'north' if user < 300 else 'south'} both") for user in range(400)]
    corpus = written(rows)
    frame = pl.read_parquet(corpus.where[0]).with_columns(
        side=pl.col("what").str.split(" ").list.first()
    )
    frame.write_parquet(corpus.where[0])
    asked = {"counts": 0.5, "by": "side", "groups": ["north", "south"]}
    plan = items(corpus, epsilon=4.0, delta=1e-5, max_items=3, min_users=150, **asked)
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
        items(**LOOSE, **more)


def test_beyond_what_can_be_counted_the_first_of_each_level_are(written, monkeypatch):
    monkeypatch.setattr(counts_levels, "MOST_KEYS", 4)
    release = FINDS["dpne"](written(SHARED), counts=0.3).run(randomness=SeededRandomness(1))
    counted = [(row["level"], row["users"] is not None) for row in release]
    for level, number in ((1, 2), (2, 1), (3, 1)):
        known = [known for of, known in counted if of == level]
        assert known == [True] * number + [False] * (len(known) - number)
    assert release.manifest["counting"]["counted"] == 4
    assert repr(release)  # a row that was not counted shows its score


@pytest.mark.parametrize(
    "reading, expected",
    [
        ({"text": None, "item": "what"}, {"né": 100, "n": 100, "éa": 100}),
        ({"as_": "characters"}, {"n": 200, "é": 200, "a": 100}),
    ],
    ids=["whole", "characters"],
)
def test_however_a_corpus_is_read_its_finds_are_counted_so(engine, written, reading, expected):
    corpus = written([(user, ["né", "n", "éa"][user % 3]) for user in range(300)], **reading)
    release = items(corpus, counts=0.3, **LOOSE).run(engine=engine, randomness=ExactCounts())
    assert {row["item"]: row["users"] for row in release} == expected


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


# Of every way to find: where nothing is found, on every engine alike, and in runs cut short.


class StopError(Exception):
    pass


def standing(ledger):
    """What stands in an unfinished run's ledger, step by step, read past dphh."""
    with closing(sqlite3.connect(ledger.path)) as con:
        found = con.execute("SELECT step, data FROM drawn JOIN unfinished USING (run)").fetchall()
    return {step: pq.read_table(io.BytesIO(data)) for step, data in found}


COUNTED = {
    "items": (lambda corpus: FINDS["items"](corpus, counts=0.3), SHARED),
    "dpne": (lambda corpus: FINDS["dpne"](corpus, counts=0.3), SHARED),
    "trie": (grow, GROWN),
}


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("how", ["of keys", "of groups", *COUNTED])
def test_a_seeds_release_is_the_same_counted_on_this_engine(engine, written, tmp_path, how):
    if how in COUNTED:
        ask, rows = COUNTED[how]
        plan = ask(written(rows))
    else:
        rows = [(user, WORDS[: 1 + user % 8], ["DE", None, "IT"][user % 3]) for user in range(500)]
        groups = BY if how == "of groups" else {}
        plan = counts(as_corpus(tmp_path, rows), of=ITEMS, max_held=2, **groups, **BUDGET)
    release = plan.run(engine=engine, randomness=SeededRandomness(4))
    other = plan.run(engine="duckdb", randomness=SeededRandomness(4))
    assert release.table.equals(other.table)
    assert len(release) - release.table["users"].null_count > 3


@pytest.mark.parametrize("how", COUNTED)
def test_where_nothing_is_found_nothing_is_counted(engine, written, how):
    ask, _ = COUNTED[how]
    release = ask(written([(1, "a b"), (2, "c")])).run(
        engine=engine, randomness=SeededRandomness(1)
    )
    assert len(release) == 0
    assert release.table.schema.names[-3:] == ["users", "low", "high"]
    assert release.manifest["counting"]["counted"] == 0


@pytest.mark.parametrize("when", ["counting", "counted"])
@pytest.mark.parametrize("how", COUNTED)
def test_a_run_that_is_cut_short_counts_what_it_found_and_pays_once(
    engine, written, ledger, monkeypatch, how, when
):
    ask, rows = COUNTED[how]
    plan = ask(written(rows))

    def stop(line):
        if line.startswith("counting") and when == "counting":
            raise StopError

    def fail(*_):
        raise StopError

    with monkeypatch.context() as patch, pytest.raises(StopError):
        patch.setattr(Ledger, "settle", fail)
        plan.run(engine=engine, ledger=ledger, run_id="cut", progress=stop)
    stood = standing(ledger)
    assert ("counts" in stood) == (when == "counted")
    release = plan.run(engine=engine, ledger=ledger, run_id="cut")
    drawn_before = {step: table for step, table in stood.items() if step != "counts"}
    assert len(release) == sum(len(table) for table in drawn_before.values())
    if how == "dpne":
        noisy = Counter(n for table in drawn_before.values() for n in table["noisy"].to_pylist())
        bits = plan.levels[0].grid_bits
        assert Counter(int(row["score"] * 2**bits) for row in release) == noisy
    if "counts" in stood:
        counting = release.manifest["counting"]
        unit = 2 ** counting["grid_bits"]
        noisy = stood["counts"]["noisy"].to_pylist()[: counting["counted"]]
        users = {max(0, (value + unit // 2) // unit) for value in noisy}
        assert {row["users"] for row in release} - {None} <= users
    assert [run.state for run in ledger.runs()] == ["settled"]
