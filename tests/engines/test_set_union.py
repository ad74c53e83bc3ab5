"""Rounds of a set union: what a round decides, what it costs and what it stores.

`test_plain_sql.py` has the levels as the specification has, `test_neighbours.py` what a newcomer
changes.
"""

import io
from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

from dphh import Corpus, Ledger, items
from dphh.mechanisms.items.run import items_levels
from dphh.mechanisms.set_union.auto import BUCKETS, POPULAR, one_round_suffices
from dphh.mechanisms.set_union.levels import (
    ChoiceLevel,
    ReweighedLevel,
    SetUnionLevel,
    threshold_delta,
)
from dphh.privacy.gaussian import gaussian_sigma
from tests.engines.levels import host_on, unstored

# DP-SIPS


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (3, 1e-7)])
def test_sips_has_the_three_rounds_that_were_published(epsilon, delta):
    """Of mu^2 and of delta a round has 0.3 times what the next one has (Swanberg et al. 2023)."""
    mu = 1 / gaussian_sigma(epsilon, delta / 2)
    shares = [0.09 / 1.39, 0.3 / 1.39, 1 / 1.39]
    asked = {"epsilon": epsilon, "delta": delta, "max_items": 30, "counts": 0}
    levels = items(method="sips", **asked).levels
    assert [level.sigma for level in levels] == pytest.approx(
        [1 / (mu * share**0.5) for share in shares], rel=1e-3
    )
    held = np.arange(1, 31)
    for level, share in zip(levels, shares, strict=True):
        passing = -np.expm1(np.log1p(-share * delta / 2) / held)
        published = np.max(held**-0.5 + level.sigma * norm.isf(passing))
        assert level.threshold == pytest.approx(published, rel=1e-3)


# Rounds whose weights follow earlier noise


@pytest.mark.parametrize("engine", ["duckdb", "polars"])  # what is looked at is the driver's
def test_what_is_stored_is_what_was_released(engine: str, tmp_path: Path) -> None:
    """The journal holds two draws, of what passed and of its counts; the ledger's file no word that
    did not pass."""
    stored = []
    keep = Ledger.keep_drawn

    def kept(self: Ledger, hold: object, step: str, data: bytes) -> bytes:
        stored.append((step, pq.read_table(io.BytesIO(data))))
        for file in tmp_path.glob("ledger*"):
            assert b"unheard" not in file.read_bytes()
        return keep(self, hold, step, data)

    # Six words that all share, and of each user one of their own, which does not pass by chance.
    texts = [f"common{user % 6} unheard{user}" for user in range(3000)]
    corpus = Corpus(pl.DataFrame({"who": range(3000), "what": texts}), user="who", text="what")
    plan = items(corpus, epsilon=4, delta=1e-12, method="adaptive", max_items=4)
    with patch.object(Ledger, "keep_drawn", kept):
        release = plan.run(engine=engine, ledger=Ledger(tmp_path / "ledger.sqlite", create=True))
    (step, table), (counted, counts) = stored
    assert (step, counted) == ("items", "counts")
    # A number of each item, and of each class of users who hold more than count whole: no names.
    assert counts.column_names == ["key", "noisy"] and counts["key"].to_pylist()[:6] == [*range(6)]
    assert table.column_names == ["round", "key", "noisy"]
    assert set(table["key"].to_pylist()) == set(release.to_polars()["item"])
    assert set(release.to_polars()["item"]) == {f"common{number}" for number in range(6)}
    kinds = [level["kind"] for level in release.manifest["levels"]]
    assert kinds == ["set_union", "weighed", "weighed"]


def test_later_rounds_thresholds_cover_any_weights() -> None:
    plan = items(epsilon=4, delta=1e-6, max_items=30, method="adaptive")
    first, *later = plan.levels
    assert type(first) is SetUnionLevel
    for level in later:
        assert isinstance(level, ReweighedLevel)
        equal = SetUnionLevel(**asdict(level))
        assert threshold_delta(level) > 1.0003 * threshold_delta(equal)


# Method "auto": buckets choose, and release nothing.


@pytest.mark.parametrize("popular", [POPULAR - 1, POPULAR])
@pytest.mark.parametrize("many", [False, True])
def test_one_round_follows_where_many_users_show_nothing_popular(popular, many):
    """Users of whom each holds one of many items; and a few items that more of them hold."""
    first, *_ = items(epsilon=1, delta=1e-5, method="auto").levels
    assert isinstance(first, ChoiceLevel)
    rng = np.random.default_rng(2)
    noise = rng.normal(0, first.sigma_grid, (200, BUCKETS))
    each = first.threshold_grid * (1.3 if many else 0.7) / BUCKETS
    sums = rng.poisson(each / 2**first.grid_bits, noise.shape) * 2**first.grid_bits + noise
    sums[:, :popular] += 8 * first.sigma_grid
    chosen = [one_round_suffices(first, row.astype(np.int64)) for row in sums]
    assert abs(sum(chosen) - 200 * (many and popular < POPULAR)) <= 60 * (popular < POPULAR)


def test_what_chooses_releases_nothing(engine, written, no_noise):
    plan = items(epsilon=8, delta=1e-3, max_items=10, method="auto")
    rows = [(user, f"c{user % 3}") for user in range(300)]
    with host_on(engine, written(rows), no_noise) as host:
        done = list(items_levels(plan.price, host, unstored))
    assert [step.level for step in done] == [plan.levels[0], *plan.levels[2:]]
    assert done[0].rows.num_rows == 0
    found = [item for step in done for item in step.rows["item"].to_pylist()]
    assert sorted(found) == ["c0", "c1", "c2"]
