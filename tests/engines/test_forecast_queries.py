"""What leaves an engine of a forecast level's private tables, which a test makes up row by row."""

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus
from dphh.testing import SeededRandomness
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
    "round_1": {"key": HELD["key"], "cell": HELD["cell"], "noisy": HELD["first"]},
    "absent": {**CELLS, "grams": [4, 3, 2, 0]},
    "round_2": HELD,
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
            host.put(table, pa.table(columns))

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
