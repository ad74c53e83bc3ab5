"""The set-union level: what bounds a user (`test_plain_sql.py` has the whole level)."""

from __future__ import annotations

from collections import defaultdict
from math import floor, isclose, sqrt

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import Corpus
from dphh.mechanisms.set_union.levels import draw_words
from dphh.udfs.kernel.reading import Words
from tests.engines.levels import bare_level, histogram, host_on, in_rounds

WORDS = st.sampled_from(["a", "b", "c", "dd", "é", "ß", "f\0g", "日本"])
ROWS = st.lists(st.tuples(st.integers(0, 4), st.lists(WORDS, max_size=5)), min_size=1, max_size=12)
FEW = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def held_by_user(rows):
    held = defaultdict(set)
    for user, words in rows:
        held[user] |= set(words)
    return {user: words for user, words in held.items() if words}


@given(rows=ROWS, cap=st.integers(1, 3))
@FEW
def test_an_over_full_user_keeps_just_as_many_items_as_allowed(
    engine, written, no_noise, rows, cap
):
    corpus = written([(user, " ".join(words)) for user, words in rows])
    per_user = defaultdict(int)
    for words in held_by_user(rows).values():
        per_user[min(len(words), cap)] += 1
    expected = sum(users * t * floor(1024 / sqrt(t)) for t, users in per_user.items())
    assert sum(histogram(engine, corpus, no_noise, cap).values()) == expected


@given(rows=ROWS, cap=st.integers(1, 3), victim=st.integers(0, 4))
@FEW
def test_a_user_moves_the_histogram_by_at_most_one_unit_of_l2_norm(
    engine, written, no_noise, rows, cap, victim
):
    texts = [(user, " ".join(words)) for user, words in rows]
    # The other rows must not be empty of types: one user that is always there.
    texts.append((99, "a"))
    both = histogram(engine, written(texts), no_noise, cap)
    without = histogram(engine, written([row for row in texts if row[0] != victim]), no_noise, cap)
    moved = {key: both.get(key, 0) - without.get(key, 0) for key in both | without}
    assert sum(step * step for step in moved.values()) <= 1024**2


def test_one_user_with_a_million_items_weighs_no_more_than_any_other(engine, tmp_path, no_noise):
    import polars as pl

    path = tmp_path / "huge.parquet"
    pl.DataFrame({"who": 1, "what": [f"w{i}" for i in range(1_000_000)]}).with_columns(
        who=pl.lit(1)
    ).write_parquet(path)
    found = histogram(engine, Corpus(str(path), user="who", item="what"), no_noise, 100)
    assert len(found) == 100
    assert set(found.values()) == {1024 // 10}


def test_users_far_over_and_just_over_the_cap_keep_as_many(engine, written, no_noise):
    cap = 1000
    rows = [
        (user, " ".join(f"w{i}" for i in range(items)))
        for user, items in enumerate((1001, 1002, 1030, 1500, 1999, 2001, 3000, 50_000))
    ]
    found = histogram(engine, written(rows), no_noise, cap)
    assert sum(found.values()) == len(rows) * cap * floor(1024 / sqrt(cap))


def test_a_cap_above_all_that_anyone_holds_is_taken(engine, written, no_noise):
    corpus = written([(1, "a b")])
    assert histogram(engine, corpus, no_noise, 100_000) == {"a": 724, "b": 724}


def test_which_items_an_over_full_user_keeps_differs_from_user_to_user(engine, written, no_noise):
    words = " ".join(f"w{i}" for i in range(50))
    found = histogram(engine, written([(user, words) for user in range(200)]), no_noise, 5)
    assert len(found) == 50  # all would keep the same five if the item alone were hashed


def test_noise_is_drawn_once_and_the_threshold_reads_what_was_drawn(engine, written):
    """Were noise drawn again for the filter, or for the output, some would lie below."""
    from dphh.udfs.draws.randomness import SystemRandomness

    corpus = written([(user, f"w{user}") for user in range(3000)])
    with host_on(engine, corpus, SystemRandomness()) as host:
        host.gather("users", Words())
        passed = draw_words(host, bare_level(1, threshold=1024), "test")
    scores = passed.column("noisy").to_pylist()
    assert 0 < len(scores) < 3000
    assert min(scores) >= 1024


def test_items_that_are_released_are_taken_from_every_user(engine, written, no_noise):
    rows = [(user, f"shared own{user}") for user in range(5)]
    levels = [bare_level(9, threshold=2000), bare_level(9)]
    first, second = in_rounds(engine, written(rows), no_noise, levels)
    assert [*first] == [("shared",)]
    assert second == {(f"own{user}",): 1024 for user in range(5)}


@pytest.mark.parametrize("t", [1, 2, 3, 4, 7, 100])
def test_the_weights_of_a_full_user_square_to_almost_the_whole_norm(engine, written, no_noise, t):
    found = histogram(engine, written([(1, " ".join(f"w{i}" for i in range(t)))]), no_noise, t)
    squares = sum(weight * weight for weight in found.values())
    assert squares <= 1024**2
    assert isclose(sqrt(squares), 1024, rel_tol=0.01)
