"""`ngrams` on every engine: what its levels read, bound and release."""

from __future__ import annotations

from itertools import pairwise, product
from typing import get_args

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import ngrams
from dphh.columns import SCORED
from dphh.mechanisms.ngrams.price import Method
from dphh.testing import SeededRandomness
from tests.engines.ladders import (
    ALL,
    check_ladder,
    climbed,
    held_by_user,
    valid,
    weights,
)

FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
PRUNINGS = pytest.mark.parametrize("pruning", ["both", "single"])
WORDS = st.sampled_from(["a", "b", "c", "dd", "é"])
ROWS = st.lists(st.tuples(st.integers(0, 4), st.lists(WORDS, max_size=7)), min_size=1, max_size=12)
THRESHOLDS = st.lists(st.sampled_from([ALL, 700, 1100, 1500]), min_size=1, max_size=4)
#: Whatever may stand inside of a word of a list: separators, escapes, NUL, other scripts.
ODD_WORDS = st.one_of(
    st.sampled_from(
        ["a", " ", "\0", "\x1f", "\\", "\\s", "\\\\", "\x1f\\", "a b", "b", "\n", "日"]
    ),
    st.text(st.sampled_from("a s\0\x1f\\é"), min_size=1, max_size=3),
)
ODD_ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.lists(ODD_WORDS, max_size=6)), min_size=1, max_size=8
)


def as_texts(rows):
    return [(user, " ".join(words)) for user, words in rows]


def as_lists(written, rows):
    frame = [(user, list(words)) for user, words in rows]
    frame.append((frame[0][0], ["a"]))  # an empty list alone has no type
    return written(frame, text="what", as_="list"), frame


# What the levels read (tests/engines/test_plain_sql.py compares them with the specification)


@pytest.mark.parametrize("reading", ["words", "characters"])
def test_the_corpus_says_what_a_token_is(engine, written, reading):
    texts = [(1, "ab ba"), (2, "ab ba b")]
    split = (lambda text: text.split()) if reading == "words" else list
    done = climbed(engine, written(texts, as_=reading), [ALL] * 3)
    rows = [(user, split(text)) for user, text in texts]
    assert check_ladder(engine, written(texts, as_=reading), rows, [ALL] * 3)
    items = [row["item"] for level in done for row in level.rows.to_pylist()]
    assert ("ab ba" in items) == (reading == "words")
    assert ("b b" in items) == (reading == "characters")
    assert ("ab " in items) == (reading == "characters")


@pytest.mark.parametrize("nothing", [[None], [""], [None, ""]])
def test_tokens_that_are_null_or_empty_are_left_out(engine, written, nothing):
    rows = [(1, [*nothing, "a", *nothing, "b", *nothing]), (2, ["b"]), (3, nothing)]
    corpus = written(rows, text="what", as_="list")
    one, two = climbed(engine, corpus, [ALL] * 2)
    assert set(weights(one)) == {("a",), ("b",)}
    assert set(weights(two)) == {("a", "b")}


@PRUNINGS
def test_grams_never_cross_the_rows_of_a_user(engine, written, pruning):
    rows = [(1, ["a", "b"]), (1, ["c"]), (1, ["d", "e"]), (2, ["f"]), (2, ["g"])]
    one, two, three = climbed(engine, written(as_texts(rows)), [ALL] * 3, pruning=pruning)
    assert set(weights(one)) == {(word,) for word in "abcdefg"}
    assert set(weights(two)) == {("a", "b"), ("d", "e")}
    assert weights(three) == {}


@PRUNINGS
def test_a_users_grams_are_one_set_over_all_their_rows(engine, written, pruning):
    rows = [(1, "a b"), (2, "a b"), (1, "b a"), (1, "a b a b"), (1, "a b")]
    one, two = climbed(engine, written(rows), [ALL] * 2, pruning=pruning)
    half = 724  # 1024 / sqrt(2), rounded down
    assert weights(one) == {("a",): 2 * half, ("b",): 2 * half}
    assert weights(two) == {("a", "b"): half + 1024, ("b", "a"): half}


@PRUNINGS
def test_texts_shorter_than_a_level_end_before_it(engine, written, pruning):
    rows = [(1, "a"), (2, "a b"), (3, "a b c"), (4, "")]
    done = climbed(engine, written(rows), [ALL] * 5, pruning=pruning)
    assert [len(weights(level)) for level in done] == [3, 2, 1, 0, 0]


@PRUNINGS
@pytest.mark.parametrize("stops", [1, 2, 3, 4])
def test_a_level_that_releases_nothing_ends_the_ladder(engine, written, pruning, stops):
    thresholds = [ALL] * 4
    thresholds[stops - 1] = 9000
    rows = [(user, "a b c d e") for user in range(5)]
    done = climbed(engine, written(rows), thresholds, pruning=pruning)
    assert [step.level.level for step in done] == [1, 2, 3, 4]
    for length, step in enumerate(done, start=1):
        assert step.rows.schema == SCORED
        found = 6 - length if length < stops else 0
        assert step.rows.num_rows == step.manifest()["released"] == found
        if length > stops:
            assert step.level.valid == 0


@PRUNINGS
def test_a_run_in_which_nothing_passes_is_a_release_of_nothing(engine, written, pruning):
    """With the plan's own thresholds."""
    plan = ngrams(
        written([(1, "a b c")]), max_n=3, epsilon=1, delta=1e-30, pruning=pruning, method="dpne"
    )
    release = plan.run(engine=engine)
    assert len(release) == 0
    assert release.to_arrow().schema == SCORED
    assert [level["released"] for level in release.manifest["levels"]] == [0] * len(plan.levels)


@pytest.mark.parametrize("method", get_args(Method))
def test_an_empty_corpus_releases_nothing(engine, written, method):
    release = ngrams(
        written([(1, ""), (2, None)]), max_n=2, epsilon=1, delta=1e-7, method=method
    ).run(engine=engine)
    assert len(release) == 0


# Bounds


@PRUNINGS
@given(rows=ROWS, top=st.integers(1, 3), cap=st.integers(1, 3))
@FEW
def test_each_level_has_a_cap_of_its_own(engine, written, pruning, rows, top, cap):
    caps = [100] * (top - 1) + [cap]
    done = climbed(engine, written(as_texts(rows)), [ALL] * top, caps=caps, pruning=pruning)
    sizes = [min(cap, len(grams)) for grams in held_by_user(rows, top).values() if grams]
    expected = sum(t * int(1024 / t**0.5) for t in sizes)
    assert sum(weights(done[-1]).values()) == expected


@pytest.mark.parametrize("level", [1, 2, 3])
def test_which_grams_an_over_full_user_keeps_differs_from_user_to_user(engine, written, level):
    text = " ".join(f"w{i}" for i in range(40))
    caps = [100] * (level - 1) + [3]
    done = climbed(engine, written([(u, text) for u in range(200)]), [ALL] * level, caps=caps)
    assert len(weights(done[-1])) == 41 - level


# Neighbours. Everybody's words and grams over {a, b, c} are held by so many that they are
# released with the victim and without; the victim's own "x" and "y" never are.

CROWD = [(1000 + i, list(gram)) for i, gram in enumerate(product("abc", repeat=3))]
STEADY = 1100
VICTIMS = {
    "everything": [list(gram) for gram in product("abc", repeat=3)],
    "one gram, repeated": [["a", "b"] * 50, ["a", "b"] * 50],
    "one enormous text": [list("abcacbbca") * 3000],
    "words of their own": [["x", "a", "y", "b", "c", "x"] * 5, ["y"]],
    "empty rows": [[], ["a"], []],
    "grams broken by own words": [["a", "x", "b", "c", "y", "a", "b", "c"]],
}


#: What the crowd alone comes to, which no victim changes.
WITHOUT = {}


def distance(one, two):
    return sum((one.get(gram, 0) - two.get(gram, 0)) ** 2 for gram in one | two)


@PRUNINGS
@pytest.mark.parametrize("cap", [2, 5, 100])
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_user_moves_each_level_by_at_most_one_unit_of_l2_norm(
    engine, written, pruning, cap, victim
):
    users = as_texts(CROWD)
    rows = as_texts([(7, tokens) for tokens in VICTIMS[victim]])
    for level in (2, 3):

        def climbed_by(texts, level=level):
            thresholds = [STEADY] * (level - 1) + [ALL]
            caps = [100] * (level - 1) + [cap]
            return climbed(engine, written(texts), thresholds, caps=caps, pruning=pruning)

        asked = (engine, pruning, cap, level)
        without = WITHOUT[asked] = WITHOUT.get(asked) or climbed_by(users)
        with_victim = climbed_by(rows + users)
        for lower, other in zip(with_victim[:-1], without[:-1], strict=True):
            assert set(weights(lower)) == set(weights(other))
        moved = distance(weights(with_victim[-1]), weights(without[-1]))
        assert moved <= 1024**2
        if victim == "everything":
            assert moved > 0.98 * 1024**2


@PRUNINGS
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.sampled_from("abcxy"), max_size=8)),
        min_size=1,
        max_size=10,
    ),
    cap=st.integers(2, 4),
    level=st.integers(2, 3),
)
@FEW
def test_any_user_moves_each_level_by_at_most_one_unit(engine, written, pruning, rows, cap, level):
    """User 0 comes or goes; users 1 to 3 may be over the cap, and must keep what they kept."""
    rows = [
        (user, ["b" if word in "xy" and user else word for word in text]) for user, text in rows
    ]
    thresholds = [STEADY] * (level - 1) + [ALL]
    caps = [100] * (level - 1) + [cap]
    histograms = []
    for texts in (rows, [row for row in rows if row[0] != 0]):
        done = climbed(
            engine, written(as_texts(CROWD + texts)), thresholds, caps=caps, pruning=pruning
        )
        histograms.append(weights(done[-1]))
    assert distance(*histograms) <= 1024**2


@pytest.mark.parametrize("users", ["numbers", "names"])
def test_a_user_with_new_words_moves_level_one_by_at_most_one_unit(engine, written, users):
    """The others are over the cap: what they keep must not depend on who else there is."""
    called = (lambda user: user) if users == "numbers" else (lambda user: f"name {user}")
    others = [(called(user), " ".join(f"w{i}" for i in range(30))) for user in range(1, 40)]
    victim = [(called(0), "a0 w05x zz w1")]
    with_victim, without = (
        weights(climbed(engine, written(rows), [ALL], caps=5)[0])
        for rows in (victim + others, others)
    )
    assert distance(with_victim, without) <= 1024**2


@pytest.mark.parametrize("users", ["numbers", "names"])
def test_a_user_moves_higher_levels_by_at_most_one_unit_whatever_names_users(
    engine, written, users
):
    called = (lambda user: user) if users == "numbers" else (lambda user: f"name {user}")
    others = [(called(user), " ".join(f"w{i}" for i in range(30))) for user in range(1, 40)]
    with_victim, without = (
        weights(climbed(engine, written(rows), [ALL, ALL], caps=[100, 5])[1])
        for rows in ([(called(0), "w1 w2 w3"), *others], others)
    )
    assert distance(with_victim, without) <= 1024**2


# Releases


def closed(release, pruning):
    frame = release.to_polars()
    top = frame["level"].max() or 0
    released = [
        {tuple(gram) for gram in frame.filter(level=level)["tokens"].to_list()}
        for level in range(1, top + 1)
    ]
    return all(valid(gram, released, pruning) for grams in released for gram in grams)


@PRUNINGS
@given(rows=st.lists(st.tuples(st.integers(0, 60), st.lists(WORDS, max_size=7)), max_size=80))
@FEW
def test_every_release_is_closed_downward(engine, written, pruning, rows):
    """With the system's randomness, and as many spurious grams as may be."""
    corpus = written(as_texts([*rows, (99, ["a", "b"])]))
    plan = ngrams(
        corpus, max_n=5, max_items=8, epsilon=20, delta=0.2, spurious=0.5, pruning=pruning,
        method="dpne",
    )  # fmt: skip
    release = plan.run(engine=engine)
    assert closed(release, pruning)
    check_rows(release)


def check_rows(release):
    table = release.to_arrow()
    assert table.schema == SCORED
    rows = table.to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["level"], -row["score"], row["item"]))
    assert len({(row["level"], *row["tokens"]) for row in rows}) == len(rows)
    levels = {level["level"]: level for level in release.manifest["levels"]}
    for row in rows:
        level = levels[row["level"]]
        assert len(row["tokens"]) == row["level"]
        assert row["score"] >= level["threshold"]
        assert (row["score"] * 2 ** level["grid_bits"]).is_integer()
    for number, level in levels.items():
        assert level["released"] == sum(row["level"] == number for row in rows)


@PRUNINGS
def test_spurious_grams_look_like_the_others(engine, written, pruning):
    """No text has two words: whatever is longer is spurious."""
    rows = [(user, f"w{user % 12}") for user in range(2400)]
    plan = ngrams(written(rows), max_n=3, epsilon=20, delta=1e-3, spurious=0.5, pruning=pruning,
                  method="dpne")  # fmt: skip
    pairs = 0
    for _ in range(8):
        release = plan.run(engine=engine, again=True)
        check_rows(release)
        assert closed(release, pruning)
        frame = release.to_polars()
        assert frame["score"].null_count() == frame["tokens"].null_count() == 0
        pairs += len(frame.filter(level=2))
    # 8 x Binomial(144, at most 0.5 * 12 / 144): 48 in all.
    assert 8 < pairs < 100


@PRUNINGS
def test_the_manifest_says_what_each_level_did(engine, written, pruning):
    rows = [(user, ["a b c d a", "b c", "d a b c", "x y"][user % 4]) for user in range(2000)]
    plan = ngrams(
        written(rows), max_n=4, epsilon=8, delta=1e-5, decay=0.8, pruning=pruning,
        max_items=(9, 8, 7, 6), method="dpne",
    )  # fmt: skip
    release = plan.run(engine=engine)
    check_rows(release)
    frame = release.to_polars()
    released = [
        {tuple(gram) for gram in frame.filter(level=level)["tokens"].to_list()}
        for level in (1, 2, 3, 4)
    ]
    first, *above = release.manifest["levels"]
    assert first["kind"] == "set_union"
    assert [level["max_items"] for level in release.manifest["levels"]] == [9, 8, 7, 6]
    for level in above:
        grams = product([word for (word,) in released[0]], repeat=level["level"])
        assert level["valid"] == sum(valid(gram, released, pruning) for gram in grams)
        assert level["threshold"] == level["threshold_grid"] / 2 ** level["grid_bits"]
        assert level["pruning"] == pruning
        assert level["spurious"] == 0.01
    sigmas = [level["sigma"] for level in release.manifest["levels"]]
    for one, two in pairwise(sigmas):
        assert two / one == pytest.approx(0.8, abs=1e-3)


def test_scores_are_the_weights_with_their_noise(engine, written):
    """Enough noise to tell, far from the threshold: the scores scatter around the truth."""
    rows = [(user, f"a{user % 40} b") for user in range(40 * 300)]
    plan = ngrams(written(rows), max_n=2, max_items=2, epsilon=2, delta=1e-3, method="dpne")
    frame = plan.run(engine=engine).to_polars().filter(level=2)
    assert len(frame) >= 40
    held = frame.filter(pl.col("tokens").list.get(1) == "b", pl.col("tokens").list.get(0) != "b")
    noise = (held["score"] - 300) / plan.levels[1].sigma
    assert len(held) == 40
    assert abs(noise.mean()) < 6.5 / 40**0.5
    assert 0.3 < noise.std() < 2


@pytest.mark.parametrize("users", ["numbers", "names"])
def test_the_same_seed_gives_the_same_release(engine, written, users):
    name = (lambda user: user) if users == "numbers" else (lambda user: f"name {user}")
    rows = [
        (name(user), " ".join(f"w{(user * 7 + i * i) % 30}" for i in range(12)))
        for user in range(3000)
    ]
    plan = ngrams(
        written(rows), max_n=3, max_items=5, epsilon=4, delta=1e-3, spurious=0.5, method="dpne"
    )
    one, two, other = (
        plan.run(engine=engine, randomness=SeededRandomness(seed)).to_arrow() for seed in (1, 1, 2)
    )
    assert one.num_rows > 30
    assert one.equals(two)
    assert not one.equals(other)
