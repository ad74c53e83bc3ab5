"""The ladder of n-grams in Spark: whole users in blocks, with what is released in their places.

DuckDB keeps a row a place, in the order of the places; Spark has no stored order, and finding
neighbours among rows would shuffle every place at every level. So the places of some thousand users
are one row, which nothing divides or reorders: neighbours are next to each other in it, what each
user holds is found within it, and only sums of its users are shuffled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from dphh.engines.spark.failures import engine_errors
from dphh.ladder import Integers, ValidGrams
from dphh.levels import PrunedLevel, Pruning
from dphh.spurious import with_spurious
from dphh.udfs.spark_ladder import (
    register_places_of_grams,
    register_places_of_words,
    register_sums_of_grams,
    register_sums_of_words,
)

if TYPE_CHECKING:
    from dphh.engines.spark.session import SparkRun


def hold_texts(run: SparkRun) -> None:
    run.load()
    run.execute("texts")
    run.refuse_rows_of_nobody("texts")


def hold_words(run: SparkRun) -> None:
    run.load()
    run.look("users")
    run.execute("blocks")
    run.of_whole_users = "contributions_of_words", partial(register_sums_of_words, run.spark)


def place_words(run: SparkRun, released: Any) -> None:
    with engine_errors("positions_of_words"):
        register_places_of_words(run.spark, released)
    run.execute("positions_of_words")
    run.rename("next_positions", "positions")
    run.drop("blocks")


def hold_grams(run: SparkRun, level: int, pruning: Pruning) -> None:
    run.rung = level, pruning
    sums = partial(register_sums_of_grams, run.spark, level, pruning)
    run.of_whole_users = "contributions_of_grams", sums


def pruned_level(run: SparkRun, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
    assert level.threshold_grid is not None
    run.noise_level(level, purpose)
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
    with engine_errors("positions_of_grams"):
        register_places_of_grams(run.spark, *run.rung, released)
    run.execute("positions_of_grams")
    run.rename("next_positions", "positions")


def _held(run: SparkRun, keys: Integers) -> Any:
    """Which of these keys have a row in `noised`."""
    found = np.zeros(len(keys), dtype=np.bool_)
    run.show("proposed", pa.table({"key": keys, "number": np.arange(len(keys), dtype=np.int64)}))
    rows = run.fetch("supported").column("number").to_numpy()
    run.drop("proposed")
    found[rows] = True
    return found
