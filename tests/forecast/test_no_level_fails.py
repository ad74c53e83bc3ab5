"""No round fails after it is paid for, whatever is released below it and whoever holds what.

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
from dphh.mechanisms.ngrams.forecast.late_rounds import draw_late_rounds, keep_undecided
from dphh.mechanisms.ngrams.forecast.price import price_forecast
from dphh.mechanisms.ngrams.forecast.purses import LATE_PURSES_PART
from dphh.mechanisms.ngrams.forecast.two_rounds import draw_two_rounds
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.mechanisms.ngrams.run import full_purse, level_above
from dphh.reader.rows import Limits
from dphh.udfs.noise.randomness import SystemRandomness
from tests.conftest import full

#: Past so many released grams a level is no harder, and takes long.
MANY = 2_000
NO_ROWS = pl.DataFrame(schema={"who": pl.Int64, "what": pl.String})
USERS = 8


class OfChance(PolarsHost):
    """Where some users hold valid grams of a class, and so many others just the same."""

    def __init__(self, times: int) -> None:
        corpus = Corpus(NO_ROWS, user="who", text="what")
        super().__init__(corpus, SystemRandomness(), Limits())
        self.times = times
        self.tables["users"] = pl.DataFrame(
            {"block": [0], "user_hashes": [[*range(USERS)]]},
            schema={"block": pl.Int64, "user_hashes": pl.List(pl.Int64)},
        )

    def draw_users(self, valid, seed: int) -> None:
        rng = np.random.default_rng(seed)
        held = [[-1] for _ in range(USERS)]
        for user, group in enumerate(rng.integers(0, len(valid.sizes), rng.integers(0, USERS))):
            if size := int(valid.sizes[group]):
                drawn = valid.keys(int(group), rng.integers(0, size, rng.integers(1, 200)))
                held[user] = [*drawn.tolist(), -1]
        self.tables["positions"] = pl.DataFrame(
            {
                "block": [0],
                "user_hashes": [[*range(USERS)]],
                "lengths": [[len(keys) for keys in held]],
                "keys": [[key for keys in held for key in keys]],
            },
            schema={
                "block": pl.Int64,
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
    longer = [planned for planned in plan if isinstance(planned, ForecastLevel)]
    purse = full_purse(longer[0], 1 - used / levels)
    ladder, masses_before, likely = first_ladder(masses), np.array([masses.sum()]), 0.99 * purse
    host, undecided = OfChance(times), []
    with closing(host), warnings.catch_warnings():
        warnings.simplefilter("error")  # what NumPy warns of is no number
        host.run("full_purses", purse=purse)
        for planned in longer:
            purses = {"purse": purse, "likely": likely, "levels": levels}
            level = level_above(planned, ladder, masses, masses_before, **purses)
            if not len(level.valid):
                break
            host.draw_users(level.valid, seed + planned.level)
            released = draw_two_rounds(host, level, "test")
            keys = released.passed["key"].to_numpy()
            assert np.isfinite(released.masses).all() and (released.masses > 0).all()
            left = host.tables["purses"]["purse"].struct.field("rest").explode()
            assert left.min() >= 0 and left.max() <= purse
            undecided.append(keep_undecided(host, level, released, "test"))
            host.rename_replacing("positions", f"positions_{planned.level}")
            if len(keys) > MANY:
                break
            masses_before, masses = masses, released.masses
            ladder, likely = ladder.with_next(keys), released.mean_purse / 2
        counted_for = int(LATE_PURSES_PART * longer[0].whole)
        late = draw_late_rounds(host, undecided, purse, counted_for, None)
        for each, (keys, masses) in zip(undecided, late, strict=True):
            assert len({*keys.tolist()}) == len(keys) <= len(each.level.valid)
            assert np.isfinite(masses).all() and (masses > 0).all()
        assert host.tables["purses"]["purse"].struct.field("rest").explode().min() >= 0
