"""Functions that Spark's ladder queries call on executors: bins, and draws for absent grams (valid
grams that no user holds). Drawn rows are written to Parquet before anything reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dphh.privacy.forecast_rounds import bins
from dphh.session.ladder.absent import bins_of_class, lifted_of_class, negatives_of_row
from dphh.session.ladder.classes import ValidClasses
from dphh.session.ladder.rungs import ValidGrams
from dphh.session.ladder.spurious import lifted_grams
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.kernel.lists import lists_of
from dphh.udfs.spark.functions import register_arrow
from dphh.udfs.spark.sent import everywhere
from dphh.udfs.text.hashes import Integers

_BINS_TYPE = "array<struct<bin: bigint, grams: bigint>>"
_LIFTED_TYPE = (
    "array<struct<position: bigint, key: bigint, bin: bigint, first: bigint, second: bigint>>"
)


def register_forecast(spark: SparkSession, randomness: Randomness, valid: ValidClasses) -> None:
    """Register the functions for bins and for absent grams. They are called for one row per class
    or bin, so for few rows. `valid` depends on releases only and is sent whole to the executors."""
    sent = everywhere(spark, valid)

    def bin_of(noisy: pa.Array, sigma: pa.Array) -> pa.Array:
        if not len(noisy):
            return pa.array([], pa.int64())
        return pa.array(bins(sigma[0].as_py()).of(noisy.to_numpy()))

    def absent_bins(
        group: pa.Array, grams: pa.Array, sigma: pa.Array, purpose: pa.Array
    ) -> pa.Array:
        def of_class(row: tuple[Any, ...]) -> dict[str, Integers]:
            group, grams, sigma, purpose = row
            fallen = bins_of_class(group, grams, bins(sigma), randomness, purpose)
            return {"bin": np.arange(len(fallen)), "grams": np.array(fallen, dtype=np.int64)}

        return _list_column(of_class, ("bin", "grams"), group, grams, sigma, purpose)

    def absent_negatives(
        group: pa.Array, column: pa.Array, grams: pa.Array, sigma: pa.Array, purpose: pa.Array
    ) -> pa.Array:
        drawn = [
            negatives_of_row(group, column, grams, bins(sigma), randomness, purpose)
            for group, column, grams, sigma, purpose in _rows_of_columns(
                group, column, grams, sigma, purpose
            )
        ]
        return pa.array(drawn, pa.int64())

    def lifted_grams_of_class(
        group: pa.Array, rows: pa.Array, sigma: pa.Array, purpose: pa.Array
    ) -> pa.Array:
        def of_class(row: tuple[Any, ...]) -> dict[str, Any]:
            group, rows, sigma, purpose = row
            absent, negatives, thresholds = (
                np.array([each[name] for each in rows], dtype=np.int64)
                for name in ("grams", "negatives", "threshold")
            )
            lifted = lifted_of_class(
                sent.value,
                group,
                absent,
                negatives,
                thresholds,
                bins(sigma),
                randomness,
                purpose,
            )
            values = lifted.by_position()
            return {name: values.field(name) for name in names}

        names = ("position", "key", "bin", "first", "second")
        return _list_column(of_class, names, group, rows, sigma, purpose)

    register_arrow(spark, "dphh_bin", bin_of, "bigint", draws=False)
    register_arrow(spark, "dphh_absent_bins", absent_bins, _BINS_TYPE)
    register_arrow(spark, "dphh_absent_negatives", absent_negatives, "bigint")
    register_arrow(spark, "dphh_lifted_grams_of_class", lifted_grams_of_class, _LIFTED_TYPE)


def register_lifted(spark: SparkSession, randomness: Randomness, valid: ValidGrams) -> None:
    """Register `dphh_lifted(held, sigma, threshold, purpose)`: DPNE's spurious grams, for one
    row."""
    sent = everywhere(spark, valid)

    def spurious_of_level(
        held: pa.Array, sigma: pa.Array, threshold: pa.Array, purpose: pa.Array
    ) -> pa.Array:
        def of_level(row: tuple[Any, ...]) -> dict[str, Any]:
            held, sigma, threshold, purpose = row
            found = lifted_grams(sent.value, held, sigma, threshold, randomness, purpose)
            table = found.to_table().combine_chunks()
            return {name: table.column(name).chunk(0) for name in names}

        return _list_column(of_level, names, held, sigma, threshold, purpose)

    names = ("position", "key", "noisy")
    register_arrow(
        spark,
        "dphh_lifted",
        spurious_of_level,
        "array<struct<position: bigint, key: bigint, noisy: bigint>>",
    )


def _rows_of_columns(*columns: pa.Array) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _list_column(
    of_row: Callable[[tuple[Any, ...]], dict[str, Any]], names: tuple[str, ...], *columns: pa.Array
) -> pa.Array:
    """A column with a list of structs of integers for each row."""
    made = [of_row(row) for row in _rows_of_columns(*columns)]
    lengths = np.array([len(row[names[0]]) for row in made], dtype=np.int64)
    values = [
        pa.concat_arrays([pa.array([], pa.int64()), *(pa.array(row[name]) for row in made)])
        for name in names
    ]
    return lists_of(lengths, pa.StructArray.from_arrays(values, names))
