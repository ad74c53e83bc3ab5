"""The ladder of n-grams in Spark: a text stays one row, with what is released in its places.

DuckDB keeps a row a place, in the order of the places; Spark has no stored order, and finding
neighbours among rows would shuffle every place at every level. So a text's places are a list,
which nothing reorders: neighbours are next to each other in it, and no text needs a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from dphh.engines.spark.failures import engine_errors
from dphh.ladder import Integers, ValidGrams
from dphh.levels import PrunedLevel, Pruning
from dphh.spurious import with_spurious
from dphh.udfs.spark import register_places

if TYPE_CHECKING:
    from dphh.engines.spark.session import SparkRun


def hold_texts(run: SparkRun) -> None:
    run.load()
    run.execute("texts")
    run.refuse_rows_of_nobody("texts")


def hold_words(run: SparkRun) -> None:
    hold_texts(run)
    run.execute("held_words")


def place_words(run: SparkRun, released: Any) -> None:
    run.drop("held")
    _place(run, "positions_of_words", released)
    run.drop("texts")


def hold_grams(run: SparkRun, level: int, pruning: Pruning) -> None:
    run.look(f"candidates_{pruning}", level=level)
    run.execute("held_grams")


def pruned_level(run: SparkRun, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
    assert level.threshold_grid is not None
    run.noise_level(level, purpose)
    run.drop("held")
    passed = run.fetch("released", threshold=level.threshold_grid)
    released = with_spurious(
        passed,
        level,
        valid,
        run.count("noised"),
        lambda proposed: _held(run, proposed),
        run.randomness,
        purpose,
    )
    run.drop("noised")
    return released


def hold_whole_grams(run: SparkRun, lengths: Sequence[int]) -> None:
    """All n-grams of these lengths, unpruned."""
    if not run.has("texts"):
        hold_texts(run)
    grams = [run.read("held_whole_grams", length=length) for length in lengths]
    with engine_errors("held_whole_grams"):
        run.write("held", reduce(DataFrame.unionAll, grams))


def exact_counts(run: SparkRun, at_least: int) -> Any:
    return run.fetch("exact_counts", at_least=at_least)


def place_grams(run: SparkRun, released: Any) -> None:
    _place(run, "positions_of_grams", released)


def _place(run: SparkRun, step: str, released: Any) -> None:
    with engine_errors(step):
        register_places(run.spark, released)
    run.execute(step)
    run.rename("next_positions", "positions")


def _held(run: SparkRun, keys: Integers) -> Any:
    """Which of these keys have a row in `noised`."""
    found = np.zeros(len(keys), dtype=np.bool_)
    run.show("proposed", pa.table({"key": keys, "number": np.arange(len(keys), dtype=np.int64)}))
    rows = run.fetch("supported").column("number").to_numpy()
    run.drop("proposed")
    found[rows] = True
    return found
