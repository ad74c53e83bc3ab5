"""Registers the functions of `udfs/` in DuckDB."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa

from dphh.reader.rows import register_arrow
from dphh.udfs.functions import LOOKUP, ROW_WORDS, ArgumentKind, Constant, Function
from dphh.udfs.kernel.words import WordsWithIds

_DUCKDB_TYPES = {
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.string(): "VARCHAR",
    pa.decimal128(20, 0): "DECIMAL(20, 0)",
}


def register(
    con: duckdb.DuckDBPyConnection,
    name: str,
    function: Function,
    words: WordsWithIds,
    objects: list[Any],
) -> None:
    """Register a function of `udfs/` as `dphh_NAME`. It gets the run's `words` where it takes
    words; queries name an object by its index in `objects`."""

    def argument_from_column(kind: ArgumentKind, column: Any) -> Any:
        if kind == ROW_WORDS:
            return words
        if kind == LOOKUP:
            number = column[0].as_py()
            return None if number is None else objects[number]
        return column[0].as_py() if isinstance(kind, Constant) else column

    def apply_to_columns(*columns: Any) -> pa.Array:
        if not len(columns[0]):
            return pa.array([], function.gives)
        return function.body(*map(argument_from_column, function.takes, columns))

    apply_to_columns.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(f"of_{i}", Parameter.POSITIONAL_ONLY) for i in range(len(function.takes))]
    )
    argument_types = [duckdb_type(kind) for kind in function.takes]
    register_arrow(con, name, apply_to_columns, argument_types, duckdb_type(function.gives))


def duckdb_type(kind: ArgumentKind) -> str:
    """DuckDB's name for the type of an argument or of a function's result."""
    if isinstance(kind, Constant):
        return duckdb_type(kind.kind)
    if isinstance(kind, str):
        return {LOOKUP: "INTEGER", ROW_WORDS: "VARCHAR[]"}[kind]
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{field.name} {duckdb_type(field.type)}' for field in kind)})"
    return _DUCKDB_TYPES[kind]
