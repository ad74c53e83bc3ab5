"""No level fails after it is paid for, whatever is released below it and whoever holds what.

A run that fails is gone on with, and draws anew: so a failure that hung on a draw would tell of it.
"""

import warnings
from contextlib import closing

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dphh import Corpus
from dphh.engines.polars.host import PolarsHost
from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.ngrams.forecast.price import price_forecast
from dphh.mechanisms.ngrams.forecast.run import level_above
from dphh.mechanisms.ngrams.forecast.shares import BudgetLeft
from dphh.mechanisms.ngrams.forecast.two_rounds import draw_two_rounds
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.reader.rows import Limits
from dphh.udfs.noise.randomness import SystemRandomness
from tests.conftest import full

#: Past so many released grams a level is no harder, and takes long.
MANY = 2_000
NO_ROWS = pl.DataFrame(schema={"who": pl.Int64, "what": pl.String})


class OfChance(PolarsHost):
    """Where some users hold valid grams of a class, and so many others just the same."""

    def __init__(self, times: int) -> None:
        corpus = Corpus(NO_ROWS, user="who", text="what")
        super().__init__(corpus, SystemRandomness(), Limits())
        self.times = times

    def draw_users(self, valid, seed: int) -> None:
        rng = np.random.default_rng(seed)
        lists = []
        for group in rng.integers(0, len(valid.sizes), rng.integers(0, 8)).tolist():
            if size := int(valid.sizes[group]):
                lists.append(valid.keys(group, rng.integers(0, size, rng.integers(1, 200))))
        held = np.concatenate([*lists, np.empty(0, dtype=np.int64)])
        lengths = [len(keys) for keys in lists]
        self.tables["positions"] = pl.DataFrame(
            {"user_hashes": [[*range(len(lists))]], "lengths": [lengths], "keys": [held.tolist()]},
            schema={
                "user_hashes": pl.List(pl.Int64),
                "lengths": pl.List(pl.Int32),
                "keys": pl.List(pl.Int64),
            },
        )

    def noised(self, sums, *asked):
        return super().noised(sums.with_columns(pl.col("weight") * self.times), *asked)


@settings(max_examples=100 if full() else 10)
@given(
    words=st.sampled_from([1, 2, 3, 20, 60]),
    levels=st.integers(2, 7),
    max_items=st.sampled_from([1, 3, 10, 300]),
    epsilon=st.floats(-3, 1.95).map(lambda power: 10**power),
    delta=st.floats(-12, -0.5).map(lambda power: 10**power),
    spurious=st.sampled_from([1e-6, 0.01, 1.0, 100.0]),
    heaviest=st.sampled_from([0, 3, 9]),
    times=st.sampled_from([1, 1_000, 10**9]),
    used=st.floats(0.04, 1.1),
    seed=st.integers(0, 2**32),
)
@pytest.mark.filterwarnings("error")
def test_no_level_of_a_plan_that_is_priced_fails(
    words, levels, max_items, epsilon, delta, spurious, heaviest, times, used, seed
):
    try:
        plan, _, _ = price_forecast(epsilon, delta, levels, max_items, spurious, CountsOptions())
    except UsageError:
        assume(False)
    masses = 10 ** np.random.default_rng(seed).uniform(-2, heaviest, words)
    budget = BudgetLeft(1 - used / levels, 2, levels)
    ladder, masses_before = first_ladder(masses), np.array([masses.sum()])
    host = OfChance(times)
    with closing(host), warnings.catch_warnings():
        warnings.simplefilter("error")  # what NumPy warns of is no number
        for planned in plan:
            if not isinstance(planned, ForecastLevel):
                continue
            level = level_above(planned, ladder, masses, masses_before, budget)
            if not len(level.valid):
                break
            host.draw_users(level.valid, seed + planned.level)
            released = draw_two_rounds(host, level, "test")
            keys = released.passed["key"].to_numpy()
            assert np.isfinite(released.masses).all() and (released.masses > 0).all()
            assert min(released.shares) > 0
            if len(keys) > MANY:
                break
            masses_before, masses = masses, released.masses
            ladder, budget = ladder.with_next(keys), budget.after_level(sum(released.shares))
    assert budget.left > -1e-9
