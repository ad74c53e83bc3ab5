"""Tables in memory and tables of other libraries: their schema, their rows, rows without a user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dphh.corpora.files import refuse_duplicate_columns, refuse_missing_columns
from dphh.corpora.quoted import identifier
from dphh.corpus import Corpus
from dphh.errors import CorpusError, DphhError
from dphh.rows.content import NOT_UTF8_MESSAGE
from dphh.rows.user import USER_TYPE_MESSAGE

#: How many rows of a text file or a query are in memory at a time. Few, because what an engine
#: makes of texts takes several times their memory.
ROWS_AT_A_TIME = 8_192
#: Types of tables that know the names of their columns; others may have to ask for them.
_TABLES_IN_MEMORY = {("polars", "DataFrame"), ("pyarrow", "Table"), ("pandas", "DataFrame")}
#: Finds the number of the line in DuckDB's errors about CSV and JSON lines.
_BAD_LINE = re.compile(r"CSV Error on Line: (\d{1,18})|JSON.* in line (\d{1,18})", re.DOTALL)
#: The mark in an error that a query raises for a line of JSON with a refused type of user id.
JSON_USER_MARK = "dphh: no user id"
_FIELD_COUNTS_PATTERN = re.compile(r"Expected Number of Columns: \d{1,9} Found: \d{1,9}")


def refuse_columns_missing_in_memory(corpus: Corpus) -> None:
    """Refuse a column that a table with its rows in memory lacks, before a plan is made for it."""
    source, kind = corpus.source, type(corpus.source)
    if (kind.__module__.split(".")[0], kind.__name__) in _TABLES_IN_MEMORY:
        names = getattr(source, "column_names", None) or source.columns
        refuse_missing_columns(corpus, [str(name) for name in names])


def schema_of_table(corpus: Corpus) -> Any:
    """The Arrow schema of a corpus that is a table or a query, without reading rows."""
    source = corpus.source
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            for option, column in corpus.columns_of_user:  # Arrow's schema has JSON as text
                kinds = dict(zip(source.columns, map(str, source.types), strict=True))
                if kinds.get(column) == "JSON":
                    raise CorpusError(
                        USER_TYPE_MESSAGE.format(option=option, column=column, kind="JSON")
                    )
            schema = source.limit(0).to_arrow_table().schema
        elif hasattr(source, "collect_schema"):  # a Polars frame
            schema = source.collect_schema().to_frame().to_arrow().schema
        elif isinstance(source, pa.RecordBatchReader):  # a stream can be consumed only once
            schema = source.schema
        else:
            schema = pa.RecordBatchReader.from_stream(source).schema
    refuse_duplicate_columns(corpus, schema.names)
    for option, column in corpus.columns_of_user:
        # An engine may see how values are stored, and equal values may be stored differently.
        if column in schema.names and _may_differ_as_stored(kind := schema.field(column).type):
            raise CorpusError(USER_TYPE_MESSAGE.format(option=option, column=column, kind=kind))
    for option, column in corpus.columns.items():
        if column in schema.names and pa.types.is_decimal256(kind := schema.field(column).type):
            raise CorpusError(
                f"{option}: column {column} is {kind}, which no engine reads; cast it to text"
            )
    return schema


def _may_differ_as_stored(kind: Any) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return bool(kind.extension_name != "arrow.uuid")
    return bool(pa.types.is_time(kind))


def rows_of_table(corpus: Corpus) -> Any:
    """The needed columns as Arrow: a stream for a DuckDB relation, else a table."""
    source = corpus.source
    columns = list(dict.fromkeys(corpus.columns.values()))
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            chosen = source.select(*(duckdb.ColumnExpression(name) for name in columns))
            # DuckDB's default batch is a million rows, however long their texts are.
            return chosen.to_arrow_reader(ROWS_AT_A_TIME)
        lazy = hasattr(source, "collect")
        rows = source.select(columns).collect() if lazy else source
        table = without_string_views(pa.table(rows).select(columns))
    try:  # engines crash on Arrow strings that are not UTF-8
        table.validate(full=True)
    except pa.ArrowInvalid:
        raise CorpusError(NOT_UTF8_MESSAGE) from None
    return table


def has_rows_without_user(corpus: Corpus) -> bool:
    """Whether a row of a table has NULL in all user columns, whatever `where` says. The table's own
    library looks, at these columns alone; a line of CSV or JSON lines that it cannot read as a row
    has no user either, and is an error. False for a stream, which can be read only once."""
    source, columns = corpus.source, corpus.user
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            nulls = " AND ".join(f"{identifier(column)} IS NULL" for column in columns)
            return bool(source.filter(nulls).limit(1).project("1").fetchall())
        if hasattr(source, "collect_schema"):  # a Polars frame
            import polars as pl

            missing = pl.all_horizontal(pl.col(column).is_null() for column in columns)
            return bool(source.lazy().select(missing.any()).collect(engine="streaming").item())
        if isinstance(source, pa.RecordBatchReader):
            return False
        users = pa.table(source).select(columns)
        missing = reduce(pc.and_, (pc.is_null(users.column(column)) for column in columns))
        return bool(pc.any(missing).as_py())


def without_string_views(table: pa.Table) -> pa.Table:
    """The table with plain strings in place of Arrow's string views, which Polars makes: DuckDB 1.5
    reads joined tables by a function of Arrow's that does not support views."""
    if not duckdb.__version__.startswith("1."):
        return table
    return table.cast(
        pa.schema([field.with_type(_without_view_type(field.type)) for field in table.schema])
    )


def _without_view_type(kind: Any) -> Any:
    if kind == pa.string_view():
        return pa.large_string()
    if kind == pa.binary_view():
        return pa.large_binary()
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    inner = _without_view_type(kind.value_type) if lists else None
    return pa.large_list(inner) if lists and inner != kind.value_type else kind


def bad_line_message(said: str) -> str | None:
    """The message for DuckDB's error about a line, without its text; None for other errors."""
    if JSON_USER_MARK in said:
        return (
            "user: a line has a number with a fraction or of more than 64 bits, an object or a "
            "list; write user ids as text or as whole numbers, so that equal users are spelled "
            "equally"
        )
    if (found := _BAD_LINE.search(said)) is None:
        return None
    fields = _FIELD_COUNTS_PATTERN.search(said)
    why = f" ({fields[0]})" if fields else ""
    return f"corpus: line {found[1] or found[2]} cannot be read{why}; mend it (docs/corpus.md)"


@contextmanager
def withhold_source_errors(corpus: Corpus) -> Iterator[None]:
    """Replace errors of a table in memory, whose messages may quote data, by their type's name."""
    try:
        yield
    except DphhError:
        raise
    except Exception as problem:
        if (said := bad_line_message(str(problem))) is not None:
            raise CorpusError(said) from None
        raise CorpusError(
            f"source: {corpus.where[0]} could not be read: it failed with "
            f"{type(problem).__name__}, whose message is withheld because it may quote data; "
            "compute it without dphh to see the message"
        ) from None
