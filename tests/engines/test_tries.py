"""Tries on every engine: who is asked, what is refused, and how far off estimates are.

`test_plain_sql.py` has seats, what is chosen on a device, reports and what is kept.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dphh.engines.polars.steps.local_tries
import dphh.udfs.rules.reports
from dphh import Corpus, CorpusError, EngineError, Ledger, ldp_trie
from dphh.mechanisms.ldp_trie.levels import STANDS_OUT_BY_CHANCE
from dphh.testing import SeededRandomness
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.udfs.rules.reports import draw_subsets
from tests.engines.tries import grown_of_reports, local_plan

LETTERS = [chr(ord("a") + i) for i in range(24)]


# Who is asked


def test_too_few_users_are_refused_with_the_number_needed(engine, written):
    corpus = written([(user, "ab") for user in range(20)], text=None, item="what")
    plan = local_plan(7, 1, truthful=True, max_length=3)
    with pytest.raises(CorpusError, match="need 21 users") as refused:
        grown_of_reports(engine, corpus, plan, SeededRandomness(0))
    assert "20" not in str(refused.value)
    enough = local_plan(5, 1, truthful=True, max_length=4)
    assert len(grown_of_reports(engine, corpus, enough, SeededRandomness(0))) == 4


@pytest.mark.parametrize("words", [[], ["ab"] * 3, ["ab", "ac", "ab", "ba"], list("abc") * 2])
def test_no_user_reports_a_value_twice(engine, written, monkeypatch, words):
    """Neither of theirs nor of nothing's: one user is asked; what is randomised is looked at."""
    if engine == "spark":
        pytest.skip("its reports are drawn in other processes, by the query that DuckDB has too")
    values: list[int] = []

    def looked_at(randomness, held, *rest):
        values.extend(np.asarray(held).tolist())
        return draw_subsets(randomness, held, *rest)

    for module in (dphh.udfs.rules.reports, dphh.engines.polars.steps.local_tries):
        monkeypatch.setattr(module, "draw_subsets", looked_at)
    rows = [("one", word) for word in ["", *words]]
    plan = local_plan(1, 5, truthful=False, character_set="abc", keep=9)
    grown_of_reports(engine, written(rows, text=None, item="what"), plan, SystemRandomness())
    assert len(values) == len(set(values)) == 5
    (level,) = plan.levels
    assert sum(value < level.keepable_values for value in values) == len(set(words))


# Runs


class BreaksInPass2:
    """The system's words until the second pass."""

    is_test = False

    def random_words(self, count, purpose, keys=None):
        if purpose.startswith("ldp_trie/pass 2"):
            raise RuntimeError
        return SystemRandomness().random_words(count, purpose, keys)


def test_a_run_that_goes_on_asks_those_who_were_not_asked(engine, written, ledger: Ledger):
    """Each of 24 users holds a word of their own: asked anew at random, some would be missed."""
    corpus = written(list(enumerate(LETTERS)), text=None, item="what")
    asked = {"character_set": "".join(LETTERS), "passes": 2, "keep": 99}
    plan = replace(local_plan(12, 1, truthful=True, **asked), corpus=corpus)
    with pytest.raises((EngineError, RuntimeError)):
        plan.run(engine=engine, ledger=ledger, run_id="r", randomness=BreaksInPass2())
    release = plan.run(engine=engine, ledger=ledger, run_id="r")
    assert set(release.to_arrow().column("item").to_pylist()) == set(LETTERS)
    assert [level["released"] for level in release.manifest["levels"]] == [12, 12]


# Estimates

USERS, RUNS = 400, 20
ASKED = {
    "local_epsilon": 4.0, "delta": 1e-5, "users_per_level": USERS, "contributions": 2,
    "max_length": 1, "keep": 8, "character_set": "abcdefgh",
}  # fmt: skip


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
    assert " ± " in repr(release) and "not numbers of people" in repr(release)


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
    assert by_chance <= STANDS_OUT_BY_CHANCE + 3 * np.sqrt(STANDS_OUT_BY_CHANCE / 2_000)
    assert by_chance > STANDS_OUT_BY_CHANCE / 3  # and it is no higher than it must be
    assert level.stands_out > 2 * level.noise
