"""`ngrams` on every engine: what its ladders read, where they end and what they release.

`test_plain_sql.py` has every level as the specification has, `test_neighbours.py` and
`test_forecast_neighbours.py` what a user changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import polars as pl
import pytest

from dphh import Corpus, Plan, ngrams
from dphh.columns import SCORED
from dphh.levels.ngrams import ForecastLevel
from dphh.mechanisms.ngrams.price import Method
from tests.engines.ladders import ALL, climbed, valid, weights

PRUNINGS = pytest.mark.parametrize("pruning", ["both", "single"])


@pytest.mark.parametrize("method", get_args(Method))
def test_an_empty_corpus_releases_nothing(engine, written, method):
    plan = ngrams(written([(1, ""), (2, None)]), max_n=2, epsilon=1, delta=1e-7, method=method)
    release = plan.run(engine=engine)
    assert len(release) == 0
    assert release.to_arrow().schema == SCORED


@pytest.mark.parametrize("users", ["numbers", "names"])
@pytest.mark.parametrize(("level", "new"), [(1, "a0 w05x zz w1"), (2, "w1 w2 w3")])
def test_a_user_moves_a_level_by_at_most_one_unit_whatever_names_users(
    engine, written, users, level, new
):
    """The others are over the cap: what they keep must not depend on who else there is."""
    called = (lambda user: user) if users == "numbers" else (lambda user: f"name {user}")
    others = [(called(user), " ".join(f"w{i}" for i in range(30))) for user in range(1, 40)]
    caps = [100] * (level - 1) + [5]
    with_victim, without = (
        weights(climbed(engine, written(rows), [ALL] * level, caps=caps)[-1])
        for rows in ([(called(0), new), *others], others)
    )
    grams = with_victim | without
    assert sum((with_victim.get(g, 0) - without.get(g, 0)) ** 2 for g in grams) <= 1024**2


# Releases


def closed(release, pruning):
    frame = release.to_polars()
    top = frame["level"].max() or 0
    released = [
        {tuple(gram) for gram in frame.filter(level=level)["tokens"].to_list()}
        for level in range(1, top + 1)
    ]
    return all(valid(gram, released, pruning) for grams in released for gram in grams)


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


# The forecast ladder


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A sentence that everybody shares, words of all frequencies, and users of one word."""
    rows = [(user, f"to be or not w{user % 7} w{user % 40} w{user}") for user in range(4_000)]
    rows += [(user, "to be") for user in range(4_000, 4_200)] + [(5_000, "alone")]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    return Corpus(path, user="who", text="what")


def forecast(corpus: Corpus, max_n: int = 4) -> Plan:
    return ngrams(corpus, max_n=max_n, epsilon=4, delta=1e-6, method="forecast")


def test_what_all_share_is_found_to_its_full_length(engine, corpus):
    found = forecast(corpus).run(engine=engine).to_polars()
    assert {"to be", "be or not", "to be or not"} <= set(found["item"])
    assert not set(found["item"]) & {"alone", "w41"}
    assert (found.filter(pl.col("level") > 1)["score"] > 0).all()
    assert found.height == found.unique(["level", "item"]).height


def test_the_manifest_says_what_the_rounds_took_and_no_more_than_was_priced(engine, corpus):
    levels = forecast(corpus).run(engine=engine).manifest["levels"]
    above = [level for level in levels if level["kind"] == ForecastLevel.kind]
    assert [level["level"] for level in above] == [2, 3, 4]
    spent = sum(level["sigma"] ** -2 for level in levels if level["kind"] == "set_union")
    spent += sum(level[name] ** -2 for level in above for name in ("first_sigma", "second_sigma"))
    assert spent <= above[0]["total_sigma"] ** -2 * (1 + 1e-9)
