"""How any engine finds a corpus: the files that a path means, and tables in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from itertools import islice
from os.path import isdir
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dphh.corpus import Corpus
from dphh.errors import CorpusError, DphhError, NoColumnError, UnreachableError
from dphh.files.paths import absolute_path, is_remote, keeps_waiting
from dphh.sources.quoted import identifier
from dphh.wording.options import no_column

#: The batch size for text files and queries: what an engine makes of 2,048 rows' texts takes
#: several times their memory.
ROWS_OF_A_STREAM = 8_192
#: At most this many existing columns are listed in an error about a missing column.
TOLD_COLUMNS = 100
NOT_UTF8 = (
    "text, user: a text column has bytes that are not UTF-8: write it as a binary column "
    "(whose undecodable values are ignored), or repair it"
)
TOO_LONG = (
    "max_token_length: the corpus has a longer token; raise max_token_length, or pass "
    "too_long='truncate' or 'drop'"
)
NO_GROUPS = (
    "by: {column!r} is {kind}, which groups cannot have; name a column of "
    "texts, whole numbers, dates or booleans, or cast it to text"
)
NO_UNITS = (
    "{option}: {column!r} is {kind}; if several columns make the user id, each must be a text, a "
    "whole number, a date or a boolean, whose equal values have one spelling: cast it to one"
)
_NULL_USERS = (
    "user: found rows with a NULL user id; dphh cannot bound what rows without a user "
    "contribute: leave them out (where='{0}'; on the command line --where '{0}'; of a Spark frame, "
    "frame.where('{0}')), or give each a user id"
)
ROWS_OF_NULL_USERS = _NULL_USERS.format("COLUMN IS NOT NULL")


def message_of_null_users(corpus: Corpus) -> str:
    """The message for rows with a NULL user id, with the columns of this corpus."""
    columns = [column for _, column in corpus.columns_of_user]
    plain = [each if each.isidentifier() else identifier(each) for each in columns]
    return _NULL_USERS.format(" AND ".join(f"{each} IS NOT NULL" for each in plain))


@dataclass(frozen=True)
class StreamedTable:
    """A table of another library's reader, which returns the requested columns as a stream."""

    schema: pa.Schema
    read: Callable[[list[str]], Any]


#: Types of tables whose rows are in memory, so that reading them twice is cheap.
_TABLES_IN_MEMORY = {("polars", "DataFrame"), ("pyarrow", "Table"), ("pandas", "DataFrame")}


def is_in_memory(corpus: Corpus) -> bool:
    """Whether the corpus is a table with its rows in memory, rather than a query."""
    kind = type(corpus.source)
    return (kind.__module__.split(".")[0], kind.__name__) in _TABLES_IN_MEMORY


def parquet_pattern(path: str) -> str:
    """A glob for the path: an existing file or folder is taken literally, even with wildcards in
    its name; a folder means all Parquet files below it."""
    there = Path(path)
    if "://" in path or not there.exists():
        return path
    plain = re.sub(r"([*?\[])", r"[\1]", path)
    return f"{plain.rstrip('/')}/**/*.parquet" if there.is_dir() else plain


def files_named(place: str) -> list[str]:
    """The local files that a path, a glob or a folder names; none for an address. Like DuckDB's
    listing, it includes names with a leading dot and excludes folders."""
    if is_remote(place):
        return []
    pattern = parquet_pattern(absolute_path(place))
    names = glob(pattern, recursive=True, include_hidden=True)  # noqa: PTH207 - of any root
    return sorted(name for name in names if not isdir(name))  # noqa: PTH112 - of very many


def refuse_blocking_files(files: Iterable[str]) -> None:
    """Refuse pipes, sockets and devices before any is opened and before anything is paid."""
    for file in files:
        if keeps_waiting(file):
            raise CorpusError(
                f"corpus: {file}: it is a pipe, a socket or a device, which may never end; "
                "write its contents to a file, and give that"
            )


def unreadable_files(corpus: Corpus, what_is_wrong: str) -> CorpusError:
    return CorpusError(
        f"corpus: {', '.join(corpus.where)}: {what_is_wrong}; "
        "give a Parquet file, a glob such as 'reviews/*.parquet', or a folder of them; "
        "or .csv or .jsonl files (docs/sources.md)"
    )


def no_such_file(corpus: Corpus) -> CorpusError:
    folders = [place for place in corpus.where if "://" not in place and Path(place).is_dir()]
    if folders:
        return unreadable_files(corpus, "in this folder, and below it, is no file *.parquet")
    return unreadable_files(corpus, "there is no such file")


def unreadable(corpus: Corpus, problem: Exception) -> CorpusError | UnreachableError:
    """The error for Parquet files that an engine cannot open. For a store: nothing is there, access
    is refused, or it cannot be reached; otherwise the files are not Parquet."""
    # What the texts below say is told by no type: they are DuckDB's and Polars' messages.
    said, kind = str(problem), type(problem).__name__
    status = getattr(problem, "status_code", None) or 0
    remote = [place for place in corpus.where if is_remote(place)]
    nothing = ("No files found", "expanded paths were empty")
    if any(text in said for text in nothing) or isinstance(problem, FileNotFoundError):
        return no_such_file(corpus)
    if not remote or not isinstance(problem, (OSError, duckdb.IOException, duckdb.HTTPException)):
        return unreadable_files(corpus, f"it cannot be read as Parquet ({kind})")
    if status == 404 or "404 Not Found" in said:
        return no_such_file(corpus)
    refused = status in (401, 403) or any(text in said for text in ("403 Forbidden", "401 Unauth"))
    where = f"corpus: {', '.join(remote)}: the store"
    said = f"{'refused' if refused else 'could not be reached'} ({kind})"
    if remote[0].lower().startswith("s3") and not os.environ.get("AWS_ACCESS_KEY_ID"):
        variables = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
        return CorpusError(f"{where} {said}; no credentials are set: {variables}")
    if refused:
        return CorpusError(f"{where} {said}; see that the credentials may read it")
    return UnreachableError(
        f"{where} {said}; see that the address is right and that there is a network, or try again "
        "later"
    )


def refuse_columns_twice(corpus: Corpus) -> None:
    """Refuse local Parquet files in which two columns have the same, thus ambiguous, name."""
    for place in corpus.where:
        for file in files_named(place):
            try:
                names = pq.read_schema(file).names
            except (OSError, pa.ArrowException):
                continue  # the engine will report what is wrong with the file
            for option, column in corpus.columns.items():
                if (there := names.count(column)) > 1:
                    raise CorpusError(
                        f"{option}: {file} has {there} columns {column!r}; rename all but one"
                    )


def refuse_missing_columns(corpus: Corpus, columns: Collection[str], has: str = "") -> None:
    """Refuse a corpus that names a column which is not among these. `has`: what is told of what is
    there, if that is not the names."""
    for option, column in corpus.columns.items():
        if column not in columns:
            first = ", ".join(islice(columns, TOLD_COLUMNS))
            more = len(columns) - TOLD_COLUMNS
            there = has or f"it has {first}{f' and {more:,} more' if more > 0 else ''}"
            compared = column in corpus.content.columns_asked
            raise NoColumnError(option, no_column(column, columns, there, compared))


def schema_in_memory(corpus: Corpus) -> Any:
    """The Arrow schema of a table in memory, without reading rows."""
    source = corpus.source
    with source_errors(corpus):
        if isinstance(source, StreamedTable):
            schema = source.schema
        elif isinstance(source, duckdb.DuckDBPyRelation):
            schema = source.limit(0).to_arrow_table().schema
        elif hasattr(source, "collect_schema"):  # a Polars frame
            schema = source.collect_schema().to_frame().to_arrow().schema
        elif isinstance(source, pa.RecordBatchReader):  # a stream can be consumed only once
            schema = source.schema
        else:
            schema = pa.RecordBatchReader.from_stream(source).schema
    for option, column in corpus.columns.items():
        if schema.names.count(column) > 1:
            raise CorpusError(
                f"{option}: the corpus has {schema.names.count(column)} columns {column!r}; "
                "rename all but one"
            )
    return schema


def rows_in_memory(corpus: Corpus) -> Any:
    """The needed columns as Arrow: a table, or a stream if the rows must be read."""
    source = corpus.source
    columns = list(dict.fromkeys(corpus.columns.values()))
    with source_errors(corpus):
        if isinstance(source, StreamedTable):
            return _validated_stream(pa.RecordBatchReader.from_stream(source.read(columns)))
        if isinstance(source, duckdb.DuckDBPyRelation):
            chosen = source.select(*(duckdb.ColumnExpression(name) for name in columns))
            # DuckDB's default batch is a million rows, however long their texts are.
            return chosen.to_arrow_reader(ROWS_OF_A_STREAM)
        lazy = hasattr(source, "collect")
        rows = source.select(columns).collect() if lazy else source
        table = without_string_views(pa.table(rows).select(columns))
    _validate(table)
    return table


def without_string_views(table: pa.Table) -> pa.Table:
    """The table without string views, as Polars makes them: DuckDB 1.5 takes rows of a joined
    table by a function of Arrow's that does not support views."""
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


def _validated_stream(stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            _validate(batch)
            yield batch

    return pa.RecordBatchReader.from_batches(stream.schema, batches())


def _validate(rows: pa.Table | pa.RecordBatch) -> None:
    """Engines crash on Arrow strings that are not UTF-8, so the strings are validated first."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        raise CorpusError(NOT_UTF8) from None


@contextmanager
def source_errors(corpus: Corpus) -> Iterator[None]:
    """Replace errors of a table in memory, whose messages may quote data, by their type's name."""
    try:
        yield
    except DphhError:
        raise
    except Exception as problem:
        raise CorpusError(
            f"source: {corpus.where[0]} could not be read: it failed with "
            f"{type(problem).__name__}, whose message is withheld because it may quote data; "
            "compute it without dphh to see the message"
        ) from None
