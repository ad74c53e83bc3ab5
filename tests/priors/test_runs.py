"""What a prior buys, from the command to the release: words that are too rare for a threshold."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

import dphh
from dphh.corpus import narrowed
from dphh.engines import ENGINES
from dphh.testing import SeededRandomness

ASK = {"max_n": 2, "epsilon": 2.0, "delta": 1e-8, "max_items": 10}
RARE = [f"rare{word}" for word in range(300)]
OWN = [f"own{word}" for word in range(300)]


@pytest.fixture
def private(written):
    """300 words of a public list and 300 others, each of 14 users who hold two words."""
    rows = [(f"{word}/{user}", f"good {word}") for word in (*RARE, *OWN) for user in range(14)]
    return written(rows)


@pytest.fixture
def table():
    return pl.DataFrame({"item": ["good", *RARE], "count": [300_000, *[30] * len(RARE)]})


@pytest.mark.on_spark
@pytest.mark.parametrize("engine", ENGINES)
def test_words_of_the_list_are_found_where_a_threshold_hides_all_others(private, table, engine):
    asked = {**ASK, "prior": table, "prior_is_public": True}
    plain, known = (
        {row["item"] for row in plan.run(engine=engine, randomness=SeededRandomness(8), again=True)}
        for plan in (dphh.ngrams(private, **ASK), dphh.ngrams(private, **asked))
    )
    assert "good" in plain & known
    assert len(plain & {*RARE, *OWN}) < 25
    assert len(known & {*RARE}) > 150
    assert len(known & {*OWN}) < 25


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_words_that_a_short_list_lacks_are_in_none_of_its_rows(engine):
    """Their thresholds were those of the last class, so that its words could not be drawn."""
    rows = [(f"p{user}", "the cat sat") for user in range(60)]
    rows += [("u", " ".join(f"own{word}" for word in range(400)))]
    frame = pl.DataFrame(rows, schema=["who", "what"], orient="row")
    corpus = dphh.Corpus(frame, user="who", text="what")
    held = ["the", "cat", "sat"]
    listed = [*held, *(f"absent{word}" for word in range(40))]
    table = pl.DataFrame({"item": listed, "count": [5] * len(listed)})
    asked = {"max_n": 1, "epsilon": 1.0, "delta": 0.08, "max_items": 30, "prior_is_public": True}
    plan = dphh.ngrams(corpus, prior=table, **asked)
    for _ in range(10):
        found = {row["item"] for row in plan.run(engine=engine, again=True)}
        assert found & {*held}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_last_weeks_release_is_this_weeks_prior(tmp_path, ledger, engine):
    """It costs nothing more than the run itself."""
    monday = dt.date(2026, 11, 16)
    held = [(monday, RARE, 80), (monday + dt.timedelta(weeks=1), [*RARE, *OWN], 14)]
    rows = [
        (f"{word}/{user}", day, f"good {word}")
        for day, words, users in held
        for word in words
        for user in range(users)
    ]
    path = tmp_path / "weeks.parquet"
    pl.DataFrame(rows, schema=["who", "day", "what"], orient="row").write_parquet(path)
    corpus = dphh.Corpus(path, user="who", text="what")
    ledger.add("weeks", corpus, 2 * ASK["epsilon"], 2 * ASK["delta"])
    first = narrowed(corpus, until="day=2026-11-23")
    second = narrowed(corpus, since="day=2026-11-23")
    last = dphh.ngrams(first, **ASK).run(engine=engine, ledger=ledger)
    assert len({row["item"] for row in last} & {*RARE}) > 250

    plan = dphh.ngrams(second, prior=last, **ASK)
    plain = dphh.ngrams(second, **ASK)
    assert plan.privacy.unit == plain.privacy.unit
    found = plan.run(engine=engine, ledger=ledger)
    items = {row["item"] for row in found}
    assert len(items & {*RARE}) > 150
    assert len(items & {*OWN}) < 25
    assert last.run_id in found.dumps()

    again = plan.run(engine=engine, ledger=ledger)
    assert again.run_id == found.run_id
    assert len(ledger.runs()) == 2
