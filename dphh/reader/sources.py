"""What a corpus is made from: paths, a table or a frame. Columns are looked at, no row is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from dphh.errors import CorpusError, UsageError
from dphh.reader.paths import absolute_place

#: For each package whose tables dphh does not read: what to give instead of such a table.
_ADVICE_OF_UNREAD_PACKAGE = {
    "deltalake": "give pl.scan_delta(table) and account=",
    "pyiceberg": "give table.scan().to_arrow() and account=",
}

#: Errors of Polars that come before a row is read, so that their message quotes none.
_ERRORS_OF_SCHEMAS = {
    *("ColumnNotFoundError", "DuplicateError", "InvalidOperationError", "SchemaError"),
    *("SchemaFieldNotFoundError", "StructFieldNotFoundError"),
}


def located_source(
    source: Any, connection: Any
) -> tuple[Literal["path", "table", "frame"], tuple[str, ...], Any]:
    """The kind of source, the location that the ledger records, and the object to open."""
    if connection is not None:
        if not isinstance(source, str):
            raise UsageError(
                "connection: applies only if the source is the name of a table or view, found a "
                f"source of type {type(source).__name__}; leave connection out"
            )
        home = type(connection).__module__.split(".")[0].lstrip("_").removeprefix("py")
        if home not in ("duckdb", "spark"):
            raise UsageError(
                f"connection: found a {type(connection).__name__}; give the DuckDB connection or "
                "the Spark session in which the table is defined"
            )
        return "table", (f"{home}:{source}",), _table_of_connection(connection, source)
    if isinstance(source, (str, Path)):
        return "path", (absolute_place(source),), None
    if isinstance(source, (list, tuple)):
        if not source or not all(isinstance(path, (str, Path)) for path in source):
            raise UsageError("source: found an empty or mixed list; give Parquet paths or globs")
        return "path", tuple(absolute_place(path) for path in source), None
    module = type(source).__module__.split(".")[0].lstrip("_")
    label = f"{module}:{type(source).__name__}"
    if type(source).__name__ == "Series":
        raise UsageError("source: found a Series; give the frame, and name its columns")
    if hasattr(source, "__arrow_c_stream__") and hasattr(source, "__next__"):
        # A check, or a run before, would leave no rows for the run that pays.
        raise UsageError(
            f"source: found a {type(source).__name__}, a stream, which can be read only once; give "
            "the table of its rows, pyarrow.table(stream)"
        )
    if module in ("duckdb", "polars", "pyspark") or hasattr(source, "__arrow_c_stream__"):
        return ("table" if module == "duckdb" else "frame"), (label,), source
    advice = _ADVICE_OF_UNREAD_PACKAGE.get(
        module,
        "give a Parquet path, glob, list or folder, a DuckDB relation (or a table's name and "
        "connection=), an Arrow table, a Polars, a pandas or a Spark frame",
    )
    raise UsageError(f"source: found a {type(source).__name__}; {advice}")


def is_list_column(source: Any, column: str) -> bool:
    """Whether a Polars frame's or an Arrow table's column holds lists, which are tokens already. A
    frame that cannot say is asked again when the corpus is opened, and then says why."""
    try:
        if hasattr(source, "collect_schema"):
            kind = str(schema_of_frame(source)[column])
        else:
            kind = str(source.schema.field(column).type)
    except CorpusError:
        raise
    except Exception:
        return False
    return kind.lower().startswith(("list", "array(", "large_list", "fixed_size_list"))


def schema_of_frame(frame: Any) -> Any:
    """The schema of a Polars frame, for which no row is read. An error says Polars' own words, if
    these quote no value."""
    try:
        return frame.collect_schema()
    except Exception as problem:
        said = str(problem).partition("\n")[0]
        if type(problem).__name__ in _ERRORS_OF_SCHEMAS and "conversion" not in said:
            raise CorpusError(f"source: the frame has no schema, {said}") from None
        raise


def _table_of_connection(connection: Any, name: str) -> Any:
    try:
        table = connection.table(name)
        table.columns  # noqa: B018 - Spark Connect looks for it only now
        return table
    except Exception as problem:
        if type(problem).__module__.split(".")[0].lstrip("_") not in ("duckdb", "pyspark"):
            raise
        raise CorpusError(
            f"source: the connection has no table or view {name!r} ({type(problem).__name__}); "
            "give its name as in SQL, such as reviews or archive.reviews"
        ) from None
