"""Polars as a host: the frames of one run. Steps are lazy queries; what draws, or reads what was
drawn, works on collected frames.

A step is the function in `steps/` that has its name. It gives the tables that it makes, or, where
it is a query to take, its rows.
"""

from __future__ import annotations

import re
from inspect import signature
from typing import Any, cast

import polars as pl
import pyarrow as pa
from polars.exceptions import PanicException

from dphh.engines.duckdb.host import OneProcessHost
from dphh.engines.host import Lookup
from dphh.engines.polars.steps import SEPARATOR, STEPS
from dphh.errors import UsageError
from dphh.reader.corpus import Corpus
from dphh.reader.failures import EngineFailures, replace_duckdb_errors
from dphh.reader.rows import Limits
from dphh.udfs.functions import LOOKUP, ROW_WORDS, Constant
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.noise.randomness import Randomness, needs_keys
from dphh.udfs.noise.sampler import draw_rounded_gaussian

USERS_SCHEMA: dict[str, Any] = {
    "block": pl.Int64,
    "user_hashes": pl.List(pl.Int64),
    "lengths": pl.List(pl.Int32),
    "ids": pl.List(pl.Int32),
}

#: How many rows a function of `udfs/` gets at a time, as on DuckDB. With all rows of a thread its
#: arrays would be as large as the corpus: three times the memory, and half more processor time.
ROWS_OF_A_CALL = 2048

#: In the context hide_polars_errors(step), Polars' errors are replaced by messages without data.
hide_polars_errors = EngineFailures(
    "Polars",
    # The owner's lazy frame may raise any exception when it is collected.
    errors=(Exception, PanicException),
    is_out_of_memory=lambda problem: isinstance(problem, MemoryError),
    ran_out_of="memory",
    more_memory="give the process more memory, lower max_text_length or max_items, or use "
    "engine='duckdb', which spills to disk",
    where_to_look="If the corpus is a lazy frame, see that it computes on its own",
    not_utf8=re.compile("utf-?8", re.IGNORECASE),
)


class PolarsHost(OneProcessHost):
    """The frames of one run on Polars, by table name."""

    name = "polars"
    version: str = pl.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        if limits.memory is not None:
            raise UsageError(
                f"memory_limit: found {limits.memory!r}, but Polars has no memory limit; leave "
                "memory_limit out, or use engine='duckdb', which obeys it and spills to disk"
            )
        if limits.threads is not None:
            raise UsageError(
                f"threads: engine='polars' does not take it, found {limits.threads}: Polars fixes "
                "its threads when it is first imported. Leave threads out and set "
                "POLARS_MAX_THREADS before Python starts, or use engine='duckdb'"
            )
        super().__init__(corpus, randomness, limits)
        self.tables: dict[str, pl.DataFrame] = {}

    def gather(self, table: str, reading: ReadWords) -> None:
        gathered = self.whole_users(reading, self.words)
        rows = [cast(pl.DataFrame, pl.from_arrow(rows)) for rows in gathered]
        self.tables[table] = pl.concat([pl.DataFrame(schema=USERS_SCHEMA), *rows])

    def run(self, step: str, **parameters: Any) -> None:
        for table, rows in self._result_of_step(step, parameters).items():
            self.tables[table] = self.collect(step, rows)

    def take(self, step: str, **parameters: Any) -> Any:
        return self.collect(step, self._result_of_step(step, parameters)).to_arrow()

    def _result_of_step(self, step: str, parameters: dict[str, Any]) -> Any:
        function = STEPS[step]
        takes = signature(function).parameters
        values = {name: value for name, (_, value) in self._brought.items()}
        for name, value in parameters.items():
            values[name] = self.value_of_lookup(value) if isinstance(value, Lookup) else value
        return function(self, **{name: values[name] for name in takes if name in values})

    def table(self, name: str) -> pl.LazyFrame:
        if name == "tokens_of_rows":
            with replace_duckdb_errors(name):
                query = (
                    "SELECT user_id, not_empty(tokens_of(content)) AS tokens FROM rows_of_corpus"
                )
                self.define_macros(query)
                return pl.DataFrame(self.con.sql(query).to_arrow_table()).lazy()
        return self.tables[name].lazy()

    def collect(self, step: str, rows: pl.LazyFrame | pl.DataFrame) -> pl.DataFrame:
        with hide_polars_errors(step):
            return rows.lazy().collect(engine="streaming")

    def put(self, table: str, rows: Any) -> None:
        self.tables[table] = pl.DataFrame(rows)

    def rename_replacing(self, table: str, name: str) -> None:
        self.drop(name)
        self.tables[name] = self.tables.pop(table)

    def drop(self, *tables: str) -> None:
        for table in tables:
            self.tables.pop(table, None)
            self.forget_brought_values(table)

    def call(self, name: str, *arguments: Any) -> pl.Expr:
        """An expression that applies a function of `udfs/` to batches of rows. Its arguments are
        names of columns, and values where the function takes one value for all rows."""
        function = self.functions[name]
        given = iter(arguments)
        #: For each argument of the function: whether it is a column, and its name or the value.
        taken: list[tuple[bool, Any]] = []
        for kind in function.takes:
            is_column = not (kind in (ROW_WORDS, LOOKUP) or isinstance(kind, Constant))
            taken.append((is_column, self.words if kind == ROW_WORDS else next(given)))
        names = dict.fromkeys(value for is_column, value in taken if is_column)
        gives: Any = pl.Series(pa.array([], function.gives)).dtype

        def apply_to_rows(rows: pl.Series) -> pl.Series:
            columns = {
                name: rows.struct.field(name).to_arrow(compat_level=pl.CompatLevel.newest())
                for name in names
            }
            values = (columns[value] if is_column else value for is_column, value in taken)
            return pl.Series(function.body(*values), dtype=gives)

        def apply_to_slices(rows: pl.Series) -> pl.Series:
            starts = range(0, max(len(rows), 1), ROWS_OF_A_CALL)
            return pl.concat([apply_to_rows(rows[at : at + ROWS_OF_A_CALL]) for at in starts])

        return pl.struct(*names).map_batches(
            apply_to_slices, return_dtype=gives, is_elementwise=True
        )

    def noised(
        self, sums: pl.DataFrame, sigma: int, purpose: str, names: pl.Series | None = None
    ) -> pl.DataFrame:
        """The rows (weight, ...) with `noisy` in place of `weight`: each row's own noise is drawn
        once, on a collected frame. Only a test's randomness uses names."""
        named = None
        if self.randomness.is_test:
            named = (sums["key"] if names is None else names).cast(pl.String).to_arrow()
            named = named.cast(pa.large_string())
        noise = draw_rounded_gaussian(self.randomness, sigma, sums.height, purpose, named)
        noisy = sums["weight"] + pl.Series(noise, dtype=pl.Int64)
        return sums.with_columns(noisy=noisy).drop("weight")

    def spelled(self, keys: pl.Series) -> pl.Series:
        return pl.Series(self.words.spellings(keys.to_arrow()), dtype=pl.String)

    def names_for_draws(self, user_ids: pl.Series, purpose: str, made_up: int = 0) -> Any:
        """User ids, and names of made-up users, if random words depend on them, else None."""
        if not needs_keys(self.randomness, purpose):
            return None
        made_up_names = pa.array([f"{SEPARATOR}{n}" for n in range(made_up)], pa.string())
        return pa.concat_arrays([user_ids.to_arrow().cast(pa.string()), made_up_names])
