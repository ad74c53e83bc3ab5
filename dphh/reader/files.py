"""Refusals of a corpus's files and columns, before anything is paid."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice, product
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dphh.columns import type_name
from dphh.errors import CorpusError, UnreachableError
from dphh.reader.corpus import Corpus
from dphh.reader.paths import files_named, is_remote
from dphh.reader.user import USER_TYPE_MESSAGE
from dphh.wording.options import did_you_mean

#: An error about a missing column lists at most this many columns of the corpus.
MOST_LISTED_COLUMNS = 100
#: Formats whose files may hold deleted rows: the folder and the files of their log, by which they
#: are recognised; their names; and how their current rows are read.
_FORMATS_WITH_DELETED_ROWS = (
    ("_delta_log", "*", "Delta", "pl.scan_delta(...), or con.sql(\"FROM delta_scan('...')\")"),
    ("metadata", "*.metadata.json", "Iceberg", "pyiceberg's table.scan().to_arrow()"),
)


def refuse_delta_and_iceberg(corpus: Corpus) -> None:
    """Refuse the folder of a Delta or Iceberg table, and its files: these may have deleted rows."""
    here = [
        folder
        for place in corpus.where
        if not is_remote(place)
        for folder in (Path(place), *(Path(file).resolve().parent for file in files_named(place)))
    ]
    folders = dict.fromkeys(above for each in here for above in (each, *each.parents))
    for folder, (inner, names, kind, instead) in product(folders, _FORMATS_WITH_DELETED_ROWS):
        if any((folder / inner).glob(names)):
            raise CorpusError(
                f"corpus: {folder} is a {kind} table, whose files hold rows that were deleted; "
                f"give a frame of it, by {instead}, and name its account=..."
            )


def refuse_unclear_columns(corpus: Corpus) -> None:
    """Refuse local Parquet files in which two columns have the same name, or whose types of a user
    column are of different kinds. An engine casts them to one type: beside texts, 1.0 becomes text;
    beside whole numbers, 1.4 and 1.1 become the same number."""
    found: dict[str, str] = {}
    for file in (file for place in corpus.where for file in files_named(place)):
        try:
            schema = pq.read_schema(file)
        except (OSError, pa.ArrowException):
            continue  # the engine that opens the file will say what is wrong with it
        refuse_duplicate_columns(corpus, schema.names, file)
        for option, column in corpus.columns_of_user:
            if (place := schema.get_field_index(column)) < 0:
                continue
            if (kind := _kind_of_user_type(schema.field(place).type)) == "null":
                continue  # a column of NULLs alone fits every kind
            if kind != found.setdefault(column, kind):
                both = f"{found[column]} in one file and {kind} in another"
                raise CorpusError(USER_TYPE_MESSAGE.format(option=option, column=column, kind=both))


def _kind_of_user_type(arrow_type: pa.DataType) -> str:
    """The kind of a user column's type. If types of one kind are cast to a common type, equal user
    ids stay equal and different ones stay different."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if pa.types.is_integer(arrow_type):
        return "integer"
    if pa.types.is_decimal(arrow_type):
        return f"decimal of {arrow_type.scale} places"
    return type_name(arrow_type)


def unreadable_files_error(corpus: Corpus, what_is_wrong: str) -> CorpusError:
    return CorpusError(
        f"corpus: {', '.join(corpus.where)}: {what_is_wrong}; "
        "give a Parquet file, a glob such as 'reviews/*.parquet', or a folder of them; or .csv or "
        ".jsonl files; or read it with another library, and give the table and account= "
        "(docs/corpus.md)"
    )


def no_such_file_error(corpus: Corpus) -> CorpusError:
    if any(not is_remote(place) and Path(place).is_dir() for place in corpus.where):
        return unreadable_files_error(corpus, "in this folder, and below it, is no file *.parquet")
    return unreadable_files_error(corpus, "there is no such file")


def unreadable_parquet_error(
    corpus: Corpus, problem: duckdb.Error
) -> CorpusError | UnreachableError:
    """The error for Parquet files that DuckDB cannot open."""
    said, kind = str(problem), type(problem).__name__
    remote = [place for place in corpus.where if is_remote(place)]
    # Only the text of DuckDB's error says that a file is missing.
    if any(text in said for text in ("No files found", "404 Not Found", "HTTP 404")):
        return no_such_file_error(corpus)
    if remote and isinstance(problem, (duckdb.IOException, duckdb.HTTPException)):
        return UnreachableError(
            f"corpus: {', '.join(remote)}: the store refused, or could not be reached ({kind}); "
            "see that the address is right, that there is a network, and that the credentials may "
            "read it (for S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION)"
        )
    return unreadable_files_error(corpus, f"it cannot be read as Parquet ({kind})")


def refuse_duplicate_columns(
    corpus: Corpus, columns: list[str], columns_of: str = "the corpus"
) -> None:
    for option, column in corpus.columns.items():
        if (times := columns.count(column)) > 1:
            raise CorpusError(
                f"{option}: {columns_of} has {times} columns {column!r}; rename all but one"
            )


def refuse_missing_columns(corpus: Corpus, columns: Collection[str], what_it_has: str = "") -> None:
    """Refuse a corpus that names a column which is not in `columns`. `what_it_has`: how the message
    describes what is there, if not by the names of the columns."""
    for option, column in corpus.columns.items():
        if column not in columns:
            first = ", ".join(islice(columns, MOST_LISTED_COLUMNS))
            more = len(columns) - MOST_LISTED_COLUMNS
            there = what_it_has or f"it has {first}{f' and {more:,} more' if more > 0 else ''}"
            if column in corpus.content.columns_of_where:  # it may have been meant as a text
                there += f"; a text needs single quotes: '{column}'"
            raise CorpusError(
                f"{option}: the corpus has no column {column!r}; "
                f"{did_you_mean(column, columns, there)}"
            )
