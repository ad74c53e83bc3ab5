"""DP-SIPS against the paper's loop in plain Python, where nothing is random."""

from __future__ import annotations

from collections import defaultdict
from math import isqrt

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import items
from dphh.mechanisms.items import sips_shares
from tests.engines.levels import session_on

WORDS = [f"w{i}" for i in range(8)]
ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.sampled_from(WORDS), max_size=6)),
    min_size=1,
    max_size=25,
)


def plain_sips(rows, levels):
    """Each round: what passed, by weight. Users are never over the cap here."""
    held = defaultdict(set)
    for user, words in rows:
        held[user] |= set(words)
    rounds = []
    for level in levels:
        weights = defaultdict(int)
        for words in held.values():
            for word in words:
                weights[word] += isqrt(4**level.grid_bits // len(words))
        passed = {word: w for word, w in weights.items() if w >= level.threshold_grid}
        rounds.append(passed)
        for words in held.values():
            words.difference_update(passed)
    return rounds


def small_levels(thresholds):
    """SIPS's rounds, with thresholds that a handful of users can reach."""
    from dataclasses import replace

    plan = items(epsilon=8, delta=1e-3, max_items=10, method="sips")
    return [
        replace(level, threshold_grid=threshold)
        for level, threshold in zip(plan.levels, thresholds, strict=True)
    ]


def rounds_on(engine, corpus, randomness, levels):
    found, passed = [], None
    with session_on(engine, corpus, randomness) as session:
        session.hold_items()
        passed = None
        for index, level in enumerate(levels):
            if passed is not None:
                session.forget(passed)
            passed = session.items_level(level, f"round {index}")
            columns = (passed.column(name).to_pylist() for name in ("key", "noisy"))
            found.append(dict(zip(*columns, strict=True)))
    return found


@given(rows=ROWS, thresholds=st.tuples(*[st.integers(300, 4000)] * 3))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_every_round_is_the_plain_python_one(engine, written, no_noise, rows, thresholds):
    corpus = written([(user, " ".join(words)) for user, words in rows])
    levels = small_levels(thresholds)
    assert rounds_on(engine, corpus, no_noise, levels) == plain_sips(rows, levels)


def test_what_is_found_frees_weight_for_what_is_not(engine, written, no_noise):
    """ "popular" takes its holders' weight in round 1, and "rare" has all of it in round 2."""
    rows = [(user, "popular rare" if user < 4 else "popular") for user in range(20)]
    levels = small_levels((15_000, 4096, 4096))
    first, second, third = rounds_on(engine, written(rows), no_noise, levels)
    assert first == {"popular": 16 * 1024 + 4 * 724}
    assert second == {"rare": 4 * 1024}
    assert third == {}


def test_an_item_is_released_in_one_round_only(engine, written):
    rows = [(user, " ".join(WORDS[: 1 + user % 8])) for user in range(2000)]
    release = items(written(rows), epsilon=1, delta=1e-5, method="sips").run(engine=engine)
    found = release.to_polars()["item"].to_list()
    assert sorted(found) == sorted(set(found))
    assert set(found) == set(WORDS)
    assert sum(level["released"] for level in release.manifest["levels"]) == len(WORDS)


def test_shares_grow_from_round_to_round():
    shares = sips_shares()
    assert sum(shares) == pytest.approx(1)
    assert shares[1] / shares[2] == pytest.approx(0.15)
    assert shares[0] / shares[1] == pytest.approx(0.15)
