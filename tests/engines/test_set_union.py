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
from dphh.mechanisms.set_union.levels import (
    LEAST_ITEMS_FOR_ROUNDS,
    ReweighedLevel,
    SetUnionLevel,
    merged_round,
    threshold_delta,
)
from dphh.privacy.accounting import compose
from dphh.privacy.events import ChosenUnionEvent, DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma
from tests.engines.levels import host_on, unstored

# DP-SIPS, and what one round in the place of others costs


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


@pytest.mark.parametrize("method", ["adaptive", "auto"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.01), (0.5, 0.03), (3, 0.01)])
def test_one_round_alone_costs_no_more_than_those_it_replaces_compose_to(method, epsilon, delta):
    """A ledger composes the priced rounds: two thresholds together cost a little less than the sum
    of their deltas, so one threshold may not cost that sum."""
    plan = items(epsilon=epsilon, delta=delta, max_items=30, method=method, counts=0)
    first, *later = plan.levels[-3:]
    both = first, merged_round(later)
    alone = compose(
        [
            *(GaussianEvent(level.sigma) for level in both),
            *(DeltaEvent(threshold_delta(level)) for level in both),
        ]
    )
    priced = compose(plan.events[:6])
    if isinstance(chosen := plan.events[0], ChosenUnionEvent):
        priced = compose([GaussianEvent(chosen.rounds_sigma), DeltaEvent(chosen.rounds_delta)])
    assert alone.infinite_loss <= priced.infinite_loss
    assert alone.delta(epsilon) <= priced.delta(epsilon) <= delta


# Rounds whose weights follow earlier noise


@pytest.mark.parametrize("engine", ["duckdb", "polars"])  # what is looked at is the driver's
def test_what_is_stored_is_what_was_released(engine: str, tmp_path: Path) -> None:
    """The journal holds two draws, of what passed and of its counts; the ledger's file no word that
    did not pass."""
    stored = []
    keep = Ledger.keep_level

    def kept(self: Ledger, hold: object, step: str, data: bytes) -> bytes:
        stored.append((step, pq.read_table(io.BytesIO(data))))
        for file in tmp_path.glob("ledger*"):
            assert b"unheard" not in file.read_bytes()
        return keep(self, hold, step, data)

    # Six words that all share, and of each user one of their own, which does not pass by chance.
    texts = [f"common{user % 6} unheard{user}" for user in range(3000)]
    corpus = Corpus(pl.DataFrame({"who": range(3000), "what": texts}), user="who", text="what")
    plan = items(corpus, epsilon=4, delta=1e-12, method="adaptive", max_items=4)
    with patch.object(Ledger, "keep_level", kept):
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


# Method "auto": a first round chooses, and releases nothing.


@pytest.mark.parametrize("common", [LEAST_ITEMS_FOR_ROUNDS - 1, LEAST_ITEMS_FOR_ROUNDS])
def test_common_items_choose_rounds_and_too_few_one_round(engine, written, no_noise, common):
    plan = items(epsilon=8, delta=1e-3, max_items=10, method="auto")
    first, alone, *rounds = plan.levels
    popular = int(first.threshold) + 1
    rows = [(user, f"c{user % common}") for user in range(common * popular)]
    rows += [(-1 - user, "rare") for user in range(int(rounds[-1].threshold) + 1)]
    with host_on(engine, written(rows), no_noise) as host:
        done = list(items_levels(plan.price, host, unstored))
    second = alone if common < LEAST_ITEMS_FOR_ROUNDS else rounds[0]
    assert [step.level for step in done][:2] == [first, second]
    assert done[0].rows.num_rows == 0
    found = [item for step in done for item in step.rows["item"].to_pylist()]
    assert sorted(found) == sorted([*(f"c{number}" for number in range(common)), "rare"])
