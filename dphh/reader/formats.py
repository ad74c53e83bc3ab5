"""Corpora that are not Parquet files, opened as DuckDB's relations, which every engine reads as a
stream.

The name decides the format: `.csv` and `.tsv`, `.jsonl` and `.ndjson`, a table of a DuckDB file
(`app.duckdb/reviews`). DuckDB reads them. Every value is text and only first lines are looked at,
so that no row decides how others are read.
"""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import duckdb

from dphh.errors import CorpusError
from dphh.reader.corpus import Corpus, replace_corpus
from dphh.reader.files import (
    files_to_read,
    refuse_delta_and_iceberg,
    refuse_duplicate_columns,
    refuse_missing_columns,
    refuse_missing_files,
    refuse_unclear_columns,
    shown_file,
    unreadable_files_error,
)
from dphh.reader.paths import duckdb_file_of
from dphh.reader.quoted import identifier, literal
from dphh.reader.stores import hide_progress_bar, reach_stores
from dphh.reader.tables import JSON_USER_ERROR

_CSV_PATTERN = re.compile(r"\.(csv|tsv)(\.gz|\.zst)?$", re.IGNORECASE)
_JSONL_PATTERN = re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE)
_JSON_LINES_ADVICE = (
    "write one JSON object a line, whose first names all columns (null if it has no value)"
)


def opened_unless_parquet(corpus: Corpus) -> Corpus:
    """The corpus with an open table in place of its paths, unless these are of Parquet files."""
    if corpus.kind != "path":
        return corpus
    places = corpus.where
    if len(places) == 1 and (database := duckdb_file_of(places[0])) is not None:
        table = _table_of_database(database, places[0][len(database) :].strip("/"))
        return replace_corpus(corpus, kind="table", source=table)
    refuse_missing_files(corpus)
    refuse_delta_and_iceberg(corpus)
    for pattern, read in ((_CSV_PATTERN, _open_csv), (_JSONL_PATTERN, _open_json_lines)):
        if all(map(pattern.search, places)):
            con = _connection()
            reach_stores(con, corpus)
            return replace_corpus(corpus, kind="table", source=read(con, corpus))
    return replace_corpus(corpus, same_schema=refuse_unclear_columns(corpus))


def _table_of_database(database: str, name: str) -> Any:
    """A table of a DuckDB file. Views are refused, because they may read anything."""
    try:
        con = _connection(database, read_only=True)
        tables = con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = "
            "current_database() ORDER BY ALL"
        ).fetchall()
    except duckdb.Error as problem:
        raise CorpusError(
            f"corpus: {database} could not be opened for reading as a DuckDB file "
            f"({type(problem).__name__}): close connections that write to it, or pass the "
            "table's name with connection= and account="
        ) from None
    schema, table = name.split(".", 1) if "." in name else ("main", name)
    if (schema, table) in tables:
        return con.table(f"{identifier(schema)}.{identifier(table)}")
    spelled = ", ".join(f"{database}/{schema}.{table}" for schema, table in tables[:5])
    raise CorpusError(
        f"corpus: {database} has no table {name!r} (views are not accepted); "
        f"name a table in it, such as {spelled}"
    )


def _open_csv(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> Any:
    """Open CSV files. Fields may be quoted by `"`; the first line gives columns and delimiter."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for file in files_to_read(con, corpus):
        alike.setdefault(_delimiter_and_names(con, corpus, file), []).append(file)
    selects = []
    for (delimiter, names), files in alike.items():
        has = (
            f"the first line of {shown_file(corpus, files[0])}, which must name the columns, has "
            f"{len(names)} fields (not shown)"
        )
        refuse_missing_columns(corpus, names, has)
        refuse_duplicate_columns(corpus, list(names))
        # Columns are read by position: DuckDB treats names that differ only in case as equal.
        columns = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(names)))
        wanted = dict.fromkeys(corpus.columns.values())
        picked = ", ".join(f"c{names.index(name)} AS {identifier(name)}" for name in wanted)
        selects.append(
            f"SELECT {picked} FROM read_csv([{', '.join(map(literal, files))}], "
            f"auto_detect = false, header = true, delim = {literal(delimiter)}, quote = '\"', "
            f"escape = '\"', hive_partitioning = false, columns = {{{columns}}})"
        )
    return con.sql(" UNION ALL ".join(selects))


def _delimiter_and_names(
    con: duckdb.DuckDBPyConnection, corpus: Corpus, file: str
) -> tuple[str, tuple[str, ...]]:
    """The delimiter by which a file's first line has the corpus's columns, and its names."""
    line = _first_line(con, corpus, file)
    wanted = {*corpus.columns.values()}
    delimiters = "\t" if ".tsv" in file.lower()[-8:] else ",;\t|"
    try:
        fields = {each: tuple(next(csv.reader([line], delimiter=each), [])) for each in delimiters}
    except csv.Error as problem:
        raise unreadable_files_error(
            corpus, f"the first line of {file} cannot be split into names ({problem})"
        ) from None
    delimiter = next((each for each in fields if wanted <= {*fields[each]}), delimiters[0])
    return delimiter, fields[delimiter]


def _open_json_lines(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> Any:
    """Open JSON lines, one object a line. Every value is read as text or as a list of texts."""
    files = files_to_read(con, corpus)
    try:
        first = json.loads(_first_line(con, corpus, files[0]) or "{}")
    except (ValueError, RecursionError):
        first = None
    if not isinstance(first, dict):
        raise unreadable_files_error(
            corpus, f"the first line is not a JSON object; {_JSON_LINES_ADVICE}"
        )
    if first:
        refuse_missing_columns(
            corpus, first, f"the first line has no such key; {_JSON_LINES_ADVICE}"
        )
    kinds = dict.fromkeys(corpus.columns.values(), "VARCHAR")
    if corpus.content.reading == "list":
        kinds[corpus.content.column] = "VARCHAR[]"
    kinds |= dict.fromkeys(corpus.user, "JSON")
    columns = ", ".join(f"{literal(name)}: '{kind}'" for name, kind in kinds.items())
    paths = ", ".join(map(literal, files))
    users = {name: _json_user_sql(identifier(name)) for name in corpus.user}
    picked = ", ".join(users.get(name, identifier(name)) for name in kinds)
    return con.sql(
        f"SELECT {picked} FROM read_json([{paths}], format = 'newline_delimited', "
        f"records = true, auto_detect = false, hive_partitioning = false, columns = {{{columns}}})"
    )


def _json_user_sql(column: str) -> str:
    """SQL that reads a user id as text and refuses fractions, objects and lists: 1 and 1.0 would be
    two users, and two large fractions could be one."""
    return (
        f"CASE WHEN json_type({column}) IN ('DOUBLE', 'OBJECT', 'ARRAY') "
        f"THEN error({literal(JSON_USER_ERROR)}) ELSE {column} ->> '$' END AS {column}"
    )


def _first_line(con: duckdb.DuckDBPyConnection, corpus: Corpus, file: str) -> str:
    """The first line of a file as DuckDB reads it. Nothing is inferred from other lines."""
    try:
        lines = con.execute(
            "SELECT line FROM read_csv($1, auto_detect = false, header = false, delim = '\\x1', "
            "quote = '', escape = '', columns = {line: 'VARCHAR'}, null_padding = true, "
            "strict_mode = false, parallel = false) LIMIT 1",
            [file],
        ).fetchall()
    except duckdb.Error as problem:
        raise unreadable_files_error(
            corpus, f"the start of {file} is not lines of UTF-8 ({type(problem).__name__})"
        ) from None
    return lines[0][0] or "" if lines else ""


def _connection(path: str = ":memory:", *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection that writes no temporary files, and shows no progress bar, which would tell how
    much data is read."""
    con = duckdb.connect(path, read_only=read_only)
    hide_progress_bar(con)
    con.execute("SET temp_directory = ''")
    return con
