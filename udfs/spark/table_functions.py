"""Table functions of Spark over batches of Arrow rows: name(table(rows), ...), with public numbers
after the table. What a function knows besides, its query says in a comment: released sets are sent
beside the query, and a salt is a secret, which Spark's plans would show."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession, functions

from dphh.udfs.kernel.contributions import Sums
from dphh.udfs.text.hashes import Integers

Row = dict[str, Any]
#: Of a batch of rows and the numbers that the query passes beside them.
OfRows = Callable[..., Iterator[Row]]
OfSums = Callable[..., Iterator[pa.RecordBatch]]
#: The keys and weights that the users of a row's block add, from two columns of brought values.
OfBrought = Callable[..., tuple[Any, Integers]]


def register_table(spark: SparkSession, name: str, of_rows: OfRows, gives: str) -> None:
    """Register a table function that maps batches of rows, and the query's numbers, to rows."""

    class Function:
        def eval(self, rows: pa.RecordBatch, *numbers: int) -> Iterator[pa.Table]:
            for made in of_rows(rows, *numbers):
                yield pa.table(made)

    register_table_function(spark, name, Function, gives)


def register_sums(spark: SparkSession, name: str, of_rows: OfSums, gives: str) -> None:
    """Register a table function of what the rows of a partition add, in as few rows as it can."""

    class Function:
        def __init__(self) -> None:
            self.sums = Sums()

        def eval(self, rows: pa.RecordBatch, *numbers: int) -> Iterator[pa.Table]:
            for made in of_rows(rows, *numbers):
                yield from self.sums.with_more(made)

        def terminate(self) -> Iterator[pa.Table]:
            yield from self.sums.last_sums()

    register_table_function(spark, name, Function, gives)


def register_sums_of_brought(
    spark: SparkSession, name: str, brought: tuple[str, str], of_block: OfBrought, gives: str
) -> None:
    """Register a table function over blocks of whole users to each of which a query brought
    values: a row (block, *brought) for each, and after them the block's own row, in which `brought`
    are NULL. `of_block` gets the query's numbers last, and must fail if a block's values did not
    come."""

    class Function:
        def __init__(self) -> None:
            self.sums = Sums()
            self.block: int | None = None
            self.parts: list[tuple[Integers, Integers]] = []

        def eval(self, rows: pa.RecordBatch, *numbers: int) -> Iterator[pa.Table]:
            named = rows.column("block").to_numpy()
            whole = rows.column(brought[0]).is_null().to_numpy(False)
            change = (np.diff(named) != 0) | (np.diff(whole) != 0) | whole[1:]
            starts = np.r_[0, np.flatnonzero(change) + 1, len(named)].tolist()
            for start, stop in pairwise(starts):
                if named[start] != self.block:
                    self.block, self.parts = named[start], []
                if whole[start]:
                    yield from self.sums.with_more(self.added(rows, start, *numbers))
                else:
                    keys, values = (rows.column(each)[start:stop].to_numpy() for each in brought)
                    self.parts.append((keys, values))

        def added(self, rows: pa.RecordBatch, row: int, *numbers: int) -> pa.RecordBatch:
            none = np.empty(0, dtype=np.int64)
            keys, values = (
                np.concatenate([none, *(part[i] for part in self.parts)]) for i in range(2)
            )
            added = map(pa.array, of_block(rows, row, keys, values, *numbers))
            return pa.RecordBatch.from_arrays([*added], ["key", "weight"])

        def terminate(self) -> Iterator[pa.Table]:
            yield from self.sums.last_sums()

    register_table_function(spark, name, Function, gives)


def register_table_function(spark: SparkSession, name: str, handler: type, gives: str) -> None:
    """Register a table function. Spark repeats the numbers that a query passes beside the table, as
    columns: each call gets the one value of each."""

    class Function(handler):  # type: ignore[misc]
        def __init__(self) -> None:
            spare_modules_of_worker()
            super().__init__()

        def eval(self, rows: pa.RecordBatch, *numbers: pa.Array) -> Iterator[pa.Table]:
            if rows.num_rows:
                yield from super().eval(rows, *(column[0].as_py() for column in numbers))

    function: Any = functions.arrow_udtf(Function, returnType=gives)
    spark.udtf.register(name, function)


_spared: list[bool] = []


def spare_modules_of_worker() -> None:
    """Python's collector looks at what modules hold no more: PySpark calls it after each task, and
    with NumPy, Arrow, pandas and DuckDB that is 50 ms of processor."""
    if not _spared:
        _spared.append(True)
        gc.freeze()
