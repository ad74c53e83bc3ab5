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

from dphh.errors import CorpusError, DphhError
from dphh.reader.content import NOT_UTF8_MESSAGE
from dphh.reader.corpus import Corpus
from dphh.reader.files import refuse_duplicate_columns
from dphh.reader.quoted import identifier
from dphh.reader.user import USER_TYPE_MESSAGE

#: How many rows of a text file or a query are in memory at a time. Few, because what an engine
#: makes of texts takes several times their memory.
ROWS_AT_A_TIME = 8_192
#: Finds the number of the line in DuckDB's errors about CSV and JSON lines.
_LINE_NUMBER_PATTERN = re.compile(
    r"CSV Error on Line: (\d{1,18})|JSON.* in line (\d{1,18})", re.DOTALL
)
#: The text of the error that a query raises at a line of JSON whose user id has a refused type.
JSON_USER_ERROR = "dphh: no user id"
_FIELD_COUNTS_PATTERN = re.compile(r"Expected Number of Columns: \d{1,9} Found: \d{1,9}")


def schema_of_table(corpus: Corpus) -> Any:
    """The Arrow schema of a corpus that is a table or a query, without reading rows."""
    source = corpus.source
    json_columns: set[str] = set()
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            types = zip(source.columns, map(str, source.types), strict=True)
            json_columns = {column for column, kind in types if kind == "JSON"}
            schema = source.limit(0).to_arrow_table().schema
        elif hasattr(source, "collect_schema"):  # a Polars frame
            schema = source.collect_schema().to_frame().to_arrow().schema
        elif isinstance(source, pa.RecordBatchReader):  # a stream can be consumed only once
            schema = source.schema
        else:
            schema = pa.RecordBatchReader.from_stream(source).schema
    refuse_duplicate_columns(corpus, schema.names)
    for option, column in corpus.columns.items():
        if column not in schema.names:
            continue
        kind = schema.field(column).type
        is_json = column in json_columns  # Arrow's schema has JSON as text
        # These types may store equal values differently, and an engine may see how they are stored.
        unclear = isinstance(kind, pa.BaseExtensionType) and kind.extension_name != "arrow.uuid"
        if column in corpus.user and (is_json or unclear or pa.types.is_time(kind)):
            shown = "JSON" if is_json else kind
            raise CorpusError(USER_TYPE_MESSAGE.format(option=option, column=column, kind=shown))
        if pa.types.is_decimal256(kind):
            raise CorpusError(
                f"{option}: column {column} is {kind}, which no engine reads; cast it to text"
            )
    return schema


def rows_of_table(corpus: Corpus) -> Any:
    """The needed columns as Arrow: a stream for a DuckDB relation, else a table."""
    source = corpus.source
    columns = list(dict.fromkeys(corpus.columns.values()))
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            chosen = source.select(*(duckdb.ColumnExpression(name) for name in columns))
            # DuckDB's default batch is a million rows, however long their texts are.
            return chosen.to_arrow_reader(ROWS_AT_A_TIME)
        rows = source.select(columns).collect() if hasattr(source, "collect") else source
        table = pa.table(rows).select(columns)
    try:  # refused here, since engines crash on Arrow strings that are not UTF-8
        table.validate(full=True)
    except pa.ArrowInvalid:
        raise CorpusError(NOT_UTF8_MESSAGE) from None
    return table


def has_rows_without_user(corpus: Corpus) -> bool:
    """Whether a row of a table has NULL in a user column, whatever `where` says. The table's own
    library looks, at these columns alone; a line of CSV or JSON lines that it cannot read as a row
    has no user either, and is an error. False for a stream, which can be read only once."""
    source, columns = corpus.source, corpus.user
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            nulls = " OR ".join(f"{identifier(column)} IS NULL" for column in columns)
            return bool(source.filter(nulls).limit(1).project("1").fetchall())
        if hasattr(source, "collect_schema"):  # a Polars frame
            import polars as pl

            missing = pl.any_horizontal(pl.col(column).is_null() for column in columns)
            return bool(source.lazy().select(missing.any()).collect(engine="streaming").item())
        if isinstance(source, pa.RecordBatchReader):
            return False
        users = pa.table(source).select(columns)
        missing = reduce(pc.or_, (pc.is_null(users.column(column)) for column in columns))
        return bool(pc.any(missing).as_py())


def bad_line_message(duckdb_error: str) -> str | None:
    """The message for DuckDB's error about a line, without the line; None for other errors."""
    if JSON_USER_ERROR in duckdb_error:
        return (
            "user: a line has a number with a fraction or of more than 64 bits, an object or a "
            "list; write user ids as text or as whole numbers, so that equal users are spelled "
            "equally"
        )
    if (found := _LINE_NUMBER_PATTERN.search(duckdb_error)) is None:
        return None
    fields = _FIELD_COUNTS_PATTERN.search(duckdb_error)
    why = f" ({fields[0]})" if fields else ""
    return f"corpus: line {found[1] or found[2]} cannot be read{why}; mend it (docs/corpus.md)"


@contextmanager
def withhold_source_errors(corpus: Corpus) -> Iterator[None]:
    """Replace an error of a table, whose message may quote data, by one with its type's name."""
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
