"""How many reports `ldp_trie` says were for a word, and how far off it says that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dphh import Corpus, ldp_trie
from dphh.levels.ldp_trie import BY_CHANCE
from dphh.levels.level import level_from_json
from dphh.testing import SeededRandomness

USERS, RUNS = 400, 20
ASKED = {
    "local_epsilon": 4.0,
    "delta": 1e-5,
    "users_per_level": USERS,
    "contributions": 2,
    "max_length": 1,
    "keep": 8,
    "character_set": "abcdefgh",
}


@pytest.mark.slow
def test_estimates_are_off_by_their_standard_error():
    """Everybody holds two words and reports both, so each is in half of the reports."""
    frame = pl.DataFrame({"who": [*range(USERS)] * 2, "what": ["a"] * USERS + ["b"] * USERS})
    plan = ldp_trie(Corpus(frame, user="who", item="what"), **ASKED)
    off = []
    for seed in range(RUNS):
        release = plan.run(engine="polars", randomness=SeededRandomness(seed), again=True)
        for row in release:
            if row["item"] in ("a", "b") and row["ended"]:
                off.append((row["score"] - USERS) / row["error"])
    assert len(off) == 2 * RUNS
    assert abs(np.mean(off)) < 4 / np.sqrt(len(off))
    assert 0.65 < np.std(off) < 1.4
    assert release.table.schema.names[3:] == ["score", "error", "ended"]
    assert " ± " in repr(release) and "no numbers of people" in repr(release)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon, keep", [(1.0, 10), (6.0, 300)])
def test_what_nobody_holds_stands_out_as_seldom_as_is_said(epsilon, keep):
    asked = ASKED | {"local_epsilon": epsilon, "users_per_level": 100_000, "keep": keep}
    level = replace(ldp_trie(**asked).levels[0], prefixes=keep)
    q, p = level.mechanism.q, level.mechanism.p
    rng, values = np.random.default_rng(1), level.prefixes * (level.characters + 1)
    most = rng.binomial(level.reports, q, (2_000, values)).max(axis=1)
    estimates = (most - level.reports * q) / (p - q)
    by_chance = np.mean(estimates >= level.stands_out * (1 - 1e-12))
    assert by_chance <= BY_CHANCE + 3 * np.sqrt(BY_CHANCE / 2_000)
    assert by_chance > BY_CHANCE / 3  # and it is no higher than it must be
    assert level.stands_out > 2 * level.noise


def test_plans_say_which_frequency_stands_out_before_anybody_is_asked():
    plan = ldp_trie(**ASKED)
    (level,) = plan.levels
    said = " ".join(plan.describe().split())
    assert f"an estimate from {level.stands_out:,.0f} of 800 reports on" in said
    assert "stands out of the noise" in said
    assert level_from_json(level.to_json()) == level
