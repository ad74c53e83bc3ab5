"""Corpora that are not Parquet files, as tables: their schema, their rows, rows without a user.

The name of a file decides its format: `.csv` and `.tsv`, `.jsonl` and `.ndjson`, a table of a
DuckDB file (`app.duckdb/reviews`). DuckDB opens them as relations, which every engine reads as a
stream. Every value is text and only first lines are looked at, so that no row decides how others
are read. Tables in memory and of other libraries are read as they are.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from dphh.errors import CorpusError, DphhError
from dphh.reader.content import NOT_UTF8_MESSAGE
from dphh.reader.corpus import USER_TYPE_MESSAGE, Corpus
from dphh.reader.files import (
    files_to_read,
    make_private_and_alike,
    reach_stores,
    refuse_duplicate_columns,
    refuse_missing_columns,
    shown_file,
    unreadable_files_error,
)
from dphh.sql import identifier, literal
from dphh.wording.lines import with_noun

_JSON_LINES_ADVICE = (
    "write one JSON object a line, whose first names all columns (null if it has no value)"
)
#: How many rows of a text file or a query are in memory at a time. Few, because what an engine
#: makes of texts takes several times their memory.
ROWS_AT_A_TIME = 8_192
#: Finds the number of the line in DuckDB's errors about CSV and JSON lines.
_LINE_NUMBER_PATTERN = re.compile(
    r"CSV Error on Line: (\d{1,18})|JSON.* in line (\d{1,18})", re.DOTALL
)
_CSV_FILE_PATTERN = re.compile(r"^  file = (.*)$", re.MULTILINE)
#: Where rows are read as a stream, DuckDB says so before the error of what fills the stream.
_JSON_FILE_PATTERN = re.compile(
    r"^(?:Invalid Input Error: reading the stream registered as 'corpus_rows' failed: IOError: )?"
    r'Invalid Input Error: Malformed JSON in file "([^"\n]*)"'
)
#: The text of the error that a query raises at a line of JSON whose user id has a refused type.
JSON_USER_ERROR = "dphh: no user id"
_NOT_UTF8_PATTERN = re.compile(r"^Invalid unicode", re.MULTILINE)
_FIELD_COUNTS_PATTERN = re.compile(r"Expected Number of Columns: \d{1,9} Found: \d{1,9}")


def table_of_database(database: str, place: str) -> Any:
    """The table that a place names in a DuckDB file. Views are refused: they may read anything."""
    name = place.removeprefix(database).strip("/")
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


def _open_csv(corpus: Corpus) -> Any:
    """Open CSV files. Fields may be quoted by `"`; the first line gives columns and delimiter."""
    con = _connection()
    reach_stores(con, corpus)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for file in files_to_read(con, corpus):
        alike.setdefault(_delimiter_and_names(con, corpus, file), []).append(file)
    selects = []
    for (delimiter, names), files in alike.items():
        has = (
            f"the first line of {shown_file(corpus, files[0])}, which must name the columns, has "
            f"{with_noun(len(names), 'field')} (not shown), parted by {delimiter!r}"
        )
        if names and names[0].lower().startswith("sep="):
            has += "; delete its line `sep=`, which is for Excel alone"
        refuse_missing_columns(corpus, names, has)
        wanted = dict.fromkeys(corpus.columns.values())
        # Columns are read by position: DuckDB treats names that differ only in case as equal.
        refuse_duplicate_columns(corpus, [name for name in names if name in wanted])
        columns = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(names)))
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
    """The delimiter by which a file's first line has most of the corpus's columns, or else most
    fields; and its names."""
    line = _first_line(con, corpus, file)
    wanted = {*corpus.columns.values()}
    delimiters = "\t" if ".tsv" in file.lower()[-8:] else ",;\t|"
    try:
        fields = {each: tuple(next(csv.reader([line], delimiter=each), [])) for each in delimiters}
    except csv.Error as problem:
        raise unreadable_files_error(
            corpus,
            f"the first line of {shown_file(corpus, file)} cannot be split into names ({problem})",
        ) from None
    return max(fields.items(), key=lambda named: (len(wanted & {*named[1]}), len(named[1])))


def _open_json_lines(corpus: Corpus) -> Any:
    """Open JSON lines, one object a line. Every value is read as text or as a list of texts."""
    con = _connection()
    reach_stores(con, corpus)
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


#: For each format of text files: the names of its files, and the function that opens a corpus of
#: them as a relation.
TEXT_FORMATS = (
    (re.compile(r"\.(csv|tsv)(\.gz|\.zst)?$", re.IGNORECASE), _open_csv),
    (re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE), _open_json_lines),
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
        name = shown_file(corpus, file)
        raise unreadable_files_error(
            corpus,
            f"the start of {name} is not lines of UTF-8 ({type(problem).__name__})",
            "in Excel save it as 'CSV UTF-8', or convert it: "
            f"iconv -f LATIN1 -t UTF-8 {name} > utf8.csv; or -f UTF-16",
        ) from None
    return lines[0][0] or "" if lines else ""


def _connection(path: str = ":memory:", *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection that writes no temporary files, and shows no progress bar, which would tell how
    much data is read."""
    con = duckdb.connect(path, read_only=read_only)
    make_private_and_alike(con)
    con.execute("SET temp_directory = ''")
    return con


def schema_of_table(corpus: Corpus) -> Any:
    """The Arrow schema of a corpus that is a table or a query, without reading rows."""
    source = corpus.source
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            _refuse_json_users(corpus)
            schema = source.limit(0).to_arrow_table().schema
        elif hasattr(source, "collect_schema"):  # a Polars frame
            schema = source.collect_schema().to_frame().to_arrow().schema
        elif corpus.where[0].startswith("pandas:"):
            return _table_of_pandas(corpus).schema
        else:
            schema = pa.RecordBatchReader.from_stream(source).schema
    refuse_duplicate_columns(corpus, schema.names)
    refuse_missing_columns(corpus, schema.names)
    return schema


def _table_of_pandas(corpus: Corpus) -> pa.Table:
    """The needed columns of a pandas frame; others may have values that Arrow cannot take."""
    frame = corpus.source
    names = [str(name) for name in frame.columns]
    refuse_duplicate_columns(corpus, names)
    refuse_missing_columns(corpus, names)
    columns = {}
    for option, name in corpus.columns.items():
        column = frame.iloc[:, names.index(name)]
        try:
            columns[name] = pa.Array.from_pandas(column)
        except Exception:
            raise CorpusError(
                f"{option}: column {name!r}, of pandas' type {column.dtype}, has values that Arrow "
                "cannot take, or of several types; cast it, such as by .astype('string')"
            ) from None
    return pa.table(columns)


def _refuse_json_users(corpus: Corpus) -> None:
    """Refuse users that are JSON, which Arrow's schema has as text: 1 and "1" would be two."""
    types = dict(zip(corpus.source.columns, map(str, corpus.source.types), strict=True))
    for option, column in corpus.columns_of_user:
        if types.get(column) == "JSON":
            raise CorpusError(USER_TYPE_MESSAGE.format(option=option, column=column, kind="JSON"))


def own_type(corpus: Corpus, column: str, in_duckdb: str) -> str:
    """The type of a column as its frame calls it, for people who know it by that name."""
    source = corpus.source
    if hasattr(source, "collect_schema"):
        return str(source.collect_schema()[column])
    dtypes: Any = getattr(source, "dtypes", None)  # of pandas; of a relation it is a list
    if not hasattr(dtypes, "to_dict"):
        return in_duckdb
    name = str(dtypes[column])
    return f"{name} (integers with gaps: astype('Int64') keeps them)" if name == "float64" else name


def rows_of_table(corpus: Corpus) -> Any:
    """The needed columns as Arrow: a stream for a DuckDB relation, else a table."""
    source = corpus.source
    columns = list(dict.fromkeys(corpus.columns.values()))
    with withhold_source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            chosen = source.select(*(duckdb.ColumnExpression(name) for name in columns))
            # DuckDB's default batch is a million rows, however long their texts are.
            return chosen.to_arrow_reader(ROWS_AT_A_TIME)
        if corpus.where[0].startswith("pandas:"):
            table = _table_of_pandas(corpus)
        else:
            rows = source.select(columns).collect() if hasattr(source, "collect") else source
            table = pa.table(rows).select(columns)
    try:  # refused here, since engines crash on Arrow strings that are not UTF-8
        table.validate(full=True)
    except pa.ArrowInvalid:
        raise CorpusError(NOT_UTF8_MESSAGE) from None
    return table


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
    why = " (it is not UTF-8)" if _NOT_UTF8_PATTERN.search(duckdb_error) else why
    # DuckDB names the file of JSON before the line that it quotes, and that of CSV after it.
    files = _JSON_FILE_PATTERN.findall(duckdb_error)[:1] or _CSV_FILE_PATTERN.findall(duckdb_error)
    of_file = f" of {files[-1]}" if files else ""
    of_file = re.sub("=[^/]*(?=/)", "=*", of_file)  # names of partition folders may be user ids
    return (
        f"corpus: line {found[1] or found[2]}{of_file} cannot be read{why}; mend it, or leave it "
        "out (docs/corpus.md)"
    )


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
        if isinstance(problem, duckdb.ConnectionException):
            raise CorpusError(
                f"source: {corpus.where[0]} could not be read: is its connection closed? Give a "
                "relation of an open one"
            ) from None
        raise CorpusError(
            f"source: {corpus.where[0]} could not be read: it failed with "
            f"{type(problem).__name__}, whose message is withheld because it may quote data; "
            "compute it without dphh to see the message"
        ) from None
