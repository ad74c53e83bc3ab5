"""What leaves an engine of a forecast level's private tables, which a test makes up row by row."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus
from dphh.engines.host import Lookup
from dphh.mechanisms.ngrams.forecast.two_rounds import (
    TwoRoundLevel,
    draw_later_round,
    draw_passing,
    first_round,
)
from dphh.mechanisms.ngrams.ladder.classes import valid_classes
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder, number_positions, update_positions
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.testing import SeededRandomness
from dphh.udfs.functions import PURSE
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.noise.table import Bins
from dphh.udfs.rules.forecast import Spending
from tests.engines.levels import host_on

#: Grams 0 to 5 are valid, in cells 0 and 1 (class 0) or 2 and 3 (class 1); 7 and 8 are words
#: outside a list, of cells below 0. Each is held, and has noised weights of both rounds.
HELD = {
    "key": [0, 1, 2, 3, 7, 8],
    "cell": [0, 1, 2, 3, -1, -2],
    "first": [-9, 40, -3, 50, -7, 60],
    "second": [-2, 35, 0, 5, -4, -30],
}
CELLS = {"cell": [0, 1, 2, 3]}
TABLES: dict[str, dict[str, list[Any]]] = {
    "undecided": {"key": HELD["key"], "cell": HELD["cell"], "first": HELD["first"]},
    "absent": {**CELLS, "grams": [4, 3, 2, 0]},
    "later_round": {**HELD, "name": [None] * 6},
    "absent_counts": {**CELLS, "grams": [4, 3, 2, 0], "nonpositive": [3, 1, 1, 0]},
    # Words outside the list: 20 for those that round 1 did not release, all others pass.
    "thresholds": {"cell": [0, 1, 2, 3, -1, -2], "threshold": [10, 35, 10, 6, 20, -(2**62)]},
    # Candidates of either class in the order drawn. Two absent grams of class 0 pass, and one of 1.
    "spurious": {
        "class": [0, 0, 0, 0, 1, 1, 1],
        "position": [0, 1, 2, 3, 0, 1, 2],
        "key": [0, 5, 1, 4, 2, 10, 3],
        "cell": [0, 1, None, None, 2, None, None],
        "first": [-5, 45, None, None, -6, None, None],
        "second": [11, 36, None, None, 12, None, None],
    },
    "unlisted_words": {"word": ["seven", "eight"], "key": [7, 8]},
}
#: The number of grams of each cell, and how many of them are at 0 or below in round 2.
SHOWN = {
    "forecast_cells": [(0, 5), (1, 4), (2, 3), (3, 1)],
    "forecast_nonpositive_counts": [(0, 4), (1, 1), (2, 2), (3, 0)],
}
#: Gram 1 is at its threshold and gram 3 one below. Whoever holds 0, 1, 2 or 3, these are no
#: spurious grams, also where their own noised weights are not positive.
RELEASED = [
    (1, None, 1, 40, 35),
    (4, None, 1, 45, 36),
    (5, None, 0, -5, 11),
    (10, None, 2, -6, 12),
    (None, "eight", -2, 60, -30),
]


@pytest.fixture
def taken(engine):
    """What the engine shows of these tables, by the query's name."""
    corpus = Corpus(pl.DataFrame({"who": [1], "what": ["a"]}), user="who", text="what")
    with host_on(engine, corpus, SeededRandomness(1)) as host:
        for table, columns in TABLES.items():
            host.put(table, table_of(columns))

        def take(query, *columns):
            rows = host.take(query).to_pylist()
            return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)

        yield take


def test_words_outside_a_list_are_in_no_cell_that_is_counted(taken):
    for query, counted in SHOWN.items():
        column = "grams" if query == "forecast_cells" else "nonpositive"
        assert [row for row in taken(query, "cell", column) if row[1]] == [
            row for row in counted if row[1]
        ]


def test_what_a_user_holds_is_released_by_its_own_noised_weight_alone(taken):
    found = taken("forecast_released", "key", "word", "cell", "first", "second")
    assert found == sorted(RELEASED, key=repr)


# What round 2 leaves to the late round

#: Bins of 27 to a class; 2 and 3 are of noise from -1/2 to 1/2 sigma.
SIGMA, BINS = 8, 27
#: What was released of `TABLES`, whether somebody holds it or not, but the word outside the list.
LEFT = {"released": {"key": [1, 4, 5, 10]}}


@pytest.fixture
def left_over(engine):
    corpus = Corpus(pl.DataFrame({"who": [1], "what": ["a"]}), user="who", text="what")
    with host_on(engine, corpus, SeededRandomness(1)) as host:
        for table, columns in {**TABLES, **LEFT}.items():
            host.put(table, table_of(columns))
        host.drop("undecided", "absent")
        host.run("forecast_undecided", bins=BINS, sigma=SIGMA, purpose="test")
        yield host


def table_of(columns):
    """A column of names, which are NULL in a run, is of text."""
    types = {"name": pa.string(), "word": pa.string()}
    return pa.table({name: pa.array(x, types.get(name, pa.int64())) for name, x in columns.items()})


def test_what_a_round_leaves_is_in_a_cell_of_both_bins_and_what_it_released_in_none(left_over):
    """Grams 0, 2 and 3 are below their thresholds; of the absent ones, those that did not pass."""
    cells = {row["cell"]: row["grams"] for row in left_over.take("forecast_cells").to_pylist()}
    bin_of = Bins(SIGMA).bin_of
    held = [cell * BINS + int(bin_of(np.array([second]))[0])
            for cell, second in ((0, -2), (2, 0), (3, 5))]  # fmt: skip
    assert all(cells[cell] >= 1 for cell in held)
    of_round_1 = Counter()
    for cell, grams in cells.items():
        of_round_1[cell // BINS] += grams
    # Absent: 4, 3, 2, 0, of which 1, 1, 1, 0 passed; and one held gram in each of 0, 2 and 3.
    assert of_round_1 == {0: 3 + 1, 1: 3 - 1, 2: 2 - 1 + 1, 3: 1}
    assert min(cells) >= 0


def test_absent_grams_that_passed_are_candidates_no_more(left_over):
    """All that is released, and all that somebody holds, is known to the late round."""
    spending = Spending(100, 0, (2**15,), 0, 2, late=True)
    planned = {"cell": [-1, *range(4 * BINS)], "weight": [0] + [64] * (4 * BINS)}
    left_over.drop("later_round", "absent_counts", "thresholds", "spurious", "planned")
    left_over.put("positions", pa.table({
        "block": pa.array([0]), "user_hashes": pa.array([[7]]),
        "lengths": pa.array([[2]], pa.list_(pa.int32())), "keys": pa.array([[1, -1]]),
    }))  # fmt: skip
    purse = pa.array([{"rest": [100], "tops": [2], "finds": [0]}], PURSE)
    left_over.put("purses", pa.table({"block": pa.array([0]), "purse": purse}))
    left_over.put("planned", table_of(planned))
    left_over.bring("g", "forecast_weights", to="positions")
    noise = {"sigma": SIGMA, "purpose": "late"}
    left_over.run("forecast_later_round", spending=Lookup(spending), **noise)
    counts = left_over.take("forecast_nonpositive_counts").to_pylist()
    assert min(row["cell"] for row in counts) >= 0
    everything = {"cell": [*range(4 * BINS)], "threshold": [-(2**40)] * (4 * BINS)}
    left_over.put("thresholds", table_of(everything))
    # All keys as candidates: but what is released or held may not come out as absent.
    keys = [*range(6), 10, 11, 12, 13]
    spurious = {
        "class": [0] * len(keys), "position": [*range(len(keys))], "key": keys,
        "cell": [0, 1, 2] + [None] * (len(keys) - 3), "first": [None] * len(keys),
        "second": [50, 51, 52] + [None] * (len(keys) - 3),
    }  # fmt: skip
    left_over.put("spurious", table_of(spurious))
    found = left_over.take("forecast_released").to_pylist()
    assert sorted(row["key"] for row in found) == [0, 2, 3, 11, 12, 13]


def test_a_user_who_has_nothing_left_still_holds(engine):
    """Every gram that somebody's text has gets a row and its noise, whatever the purses."""
    frame = pl.DataFrame({"who": [1, 2, 3], "what": ["a b c", "b c", "d"]})
    corpus = Corpus(frame, user="who", text="what")
    grams = [0 << 32 | 1, 1 << 32 | 2]
    found = {}
    for purse in (0, 10**6):
        with host_on(engine, corpus, SeededRandomness(1)) as host:
            host.gather("users", ReadWords(marks_ends=True))
            host.run("full_purses", purse=purse)
            ladder = first_ladder(pa.array(["a", "b", "c"]))
            number_positions(host, ladder)
            update_positions(host, ladder)
            valid = valid_classes(ladder.top, np.ones(3), np.array([3.0]))
            how = Spending(purse, 10**4, (2**15,), 0, 2)
            level = TwoRoundLevel(ForecastLevel(2, 1.0, SIGMA, 0.5), valid, 3, purse, 10**4, purse)
            sizes, *_ = first_round(host, level, how, "test")
            cells = np.arange(sizes.size)
            weights = pa.table({"cell": cells, "weight": np.full(sizes.size, 64)})
            heard = draw_later_round(host, weights, level.bins, how, "test")
            nonpositive = np.zeros_like(sizes)
            nonpositive.ravel()[heard["cell"].to_numpy()] = heard["nonpositive"].to_numpy()
            thresholds = pa.table({"cell": cells, "threshold": np.ones(sizes.size, np.int64)})
            passed = draw_passing(host, level, thresholds, False, "test")
            found[purse] = {row["key"]: row for row in passed.to_pylist()}
            assert sizes.sum() == 9 and (nonpositive <= sizes).all()
            assert sizes.sum() - nonpositive.sum() == passed.num_rows
            held = host.take("forecast_weights")
            assert sorted(held.column("key").to_pylist()) == grams
    noise = {gram: row["second"] for gram, row in found[0].items() if gram in grams}
    assert len(found[10**6].keys() & {*grams}) == 2
    assert all(found[10**6][gram]["second"] - second > 500 for gram, second in noise.items())
