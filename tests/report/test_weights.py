"""What scores say of weights: intervals that hold them, among what is seen, whoever found it."""

from __future__ import annotations

from math import sqrt

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus, Release, UsageError, items, ldp_trie, ngrams
from dphh.columns import SCORED
from dphh.testing import SeededRandomness

COST = {"epsilon": 8.0, "delta": 1e-4, "max_items": 3}


def seen(levels, weights, rng):
    """A release of these levels: of each round, items of these weights that pass it; and the weight
    of each item in the round that it passed."""
    rows, truth = [], {}
    for at, level in enumerate(levels):
        noise = np.rint(rng.normal(0, level["sigma_grid"], len(weights)))
        noisy = np.rint(weights * 2 ** level["grid_bits"]) + noise
        for number in np.flatnonzero(noisy >= level["threshold_grid"]):
            item = f"{at}-{number}"
            rows.append((level["level"], item, [item], noisy[number] / 2 ** level["grid_bits"]))
            truth[item] = weights[number]
    columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
    table = pa.table(columns, names=SCORED.names).cast(SCORED)
    return Release(table, {"levels": levels, "verb": "items", "run_id": "x"}), truth


def planned(plan, threshold=None):
    levels = [level.to_json() for level in plan.levels]
    return [{**level, "threshold_grid": level["threshold_grid"] or threshold} for level in levels]


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize(
    "plan, sharp",
    [
        (items(method="gaussian", **COST), True),
        (items(method="sips", **COST), False),
        (ngrams(max_n=2, method="dpne", **COST), True),
    ],
    ids=["one round", "sips", "dpne"],
)
def test_among_items_that_are_seen_it_holds_the_weight_as_often_as_it_says(plan, sharp, confidence):
    rng = np.random.default_rng(2)
    highest = max(level.threshold or 0 for level in plan.levels)
    weights = rng.uniform(0.2, 1.6, 1_500) * highest
    release, truth = seen(planned(plan, int(3 * plan.levels[-1].sigma_grid)), weights, rng)
    found = release.weights(confidence)
    held = [
        row["weight_low"] <= truth[row["item"]] + 1e-3
        and truth[row["item"]] - 1e-3 <= row["weight_high"]
        for row in found.to_dicts()
    ]
    share, error = np.mean(held), 3 * sqrt(confidence * (1 - confidence) / len(held))
    assert share >= confidence - error
    if sharp:  # of several rounds it is for all that an item can have passed in
        assert share <= confidence + error + 0.02
    assert all(low <= at_least < low + 1 for low, at_least in found[:, -3::2].iter_rows())


def test_a_release_says_it_of_itself_and_of_longer_forecast_ngrams_nothing():
    frame = pl.DataFrame({"who": range(300), "what": ["a b", "a b c", "b"] * 100})
    corpus = Corpus(frame, user="who", text="what")
    found = ngrams(corpus, max_n=2, method="forecast", **COST).run(
        engine="polars", randomness=SeededRandomness(1)
    )
    weights = found.weights()
    assert weights.columns[:4] == ["level", "item", "tokens", "score"]
    words, longer = (weights.filter(pl.col("level") == level) for level in (1, 2))
    assert len(longer) and longer["weight_low"].null_count() == len(longer)
    truth = {"a": 200, "b": 300, "c": 100}  # users, of whom each adds 1 at most
    for row in words.to_dicts():
        assert row["users_at_least"] <= truth[row["item"]]
        assert row["weight_low"] <= row["weight_high"]


def test_scores_that_passed_no_threshold_have_no_such_interval():
    table = pa.table([[1], ["a"], [["a"]], [3.0]], names=SCORED.names).cast(SCORED)
    local = ldp_trie(
        local_epsilon=8.0,
        delta=1e-6,
        users_per_level=10_000,
        contributions=1,
        max_length=1,
        keep=3,
        character_set="ab",
    )
    levels = [level.to_json() for level in local.levels]
    manifest = {"levels": levels, "verb": "ldp_trie", "run_id": "x"}
    with pytest.raises(UsageError, match="not noised weights"):
        Release(table, manifest).weights()
    level = items(method="gaussian", **COST).levels[0].to_json()
    below = Release(table, {"levels": [level | {"threshold_grid": 2**20}], "verb": "items"})
    with pytest.raises(UsageError, match="load the release again"):
        below.weights()


def test_a_releases_schema_file_and_manifest_say_what_a_score_is(tmp_path):
    import duckdb
    import pyarrow.parquet as pq

    frame = pl.DataFrame({"who": range(300), "what": ["a", "b", "a"] * 100})
    found = items(Corpus(frame, user="who", text="what"), **COST).run(
        engine="polars", randomness=SeededRandomness(1), out=tmp_path / "out"
    )
    again = Release.load(tmp_path / "out")
    file = tmp_path / "out" / "release.parquet"
    for table in (
        found.to_arrow(),
        again.to_arrow(),
        pq.read_table(file),
    ):
        said = table.schema.field("score").metadata[b"description"].decode()
        assert "no number of people" in said
    assert found.manifest["columns"]["score"] == said
    assert "no number of people" in repr(found)
    of_file = duckdb.sql(f"FROM parquet_kv_metadata('{file}')").fetchall()
    assert (str(file), b"dphh.score", said.encode()) in of_file
    assert found.to_polars().equals(again.to_polars())


def test_a_release_of_which_a_first_round_chose_one_round_has_intervals(ledger) -> None:
    rows = {"who": range(3_000), "what": [f"w{n % 50}" for n in range(3_000)]}
    corpus = Corpus(pl.DataFrame(rows), user="who", text="what")
    release = items(corpus, **COST).run(ledger=ledger, randomness=SeededRandomness(4))
    assert [level["kind"] for level in release.manifest["levels"]] == ["choice", "alone"]
    found = release.weights().to_dicts()
    assert len(found) == 50
    held = [row["weight_low"] <= 60 <= row["weight_high"] for row in found]
    assert sum(held) > 40


def test_an_item_that_is_counted_within_groups_has_one_weight(tmp_path, ledger):
    rows = {"who": range(300), "what": ["a b"] * 300, "land": ["DE", "US", "FR"] * 100}
    pl.DataFrame(rows).write_parquet(tmp_path / "x.parquet")
    corpus = Corpus(tmp_path / "x.parquet", user="who", text="what")
    asked = {"epsilon": 4.0, "delta": 1e-6, "counts": 0.3, "by": "land", "groups": ["DE", "US"]}
    release = items(corpus, **asked).run(ledger=ledger)
    assert len(release) == 6
    assert sorted(release.weights()["item"]) == ["a", "b"]
