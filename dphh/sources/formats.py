"""Corpora that are not Parquet files, opened as tables that every engine reads as a stream.

The name decides the format: `.csv` and `.tsv`, `.jsonl` and `.ndjson`, a table of a DuckDB file
(`app.duckdb/reviews`), the folder of a lake table. Opening looks at names and types of columns and
at no row, and no row decides how others are read: nothing is inferred from contents.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dphh.corpus import Corpus, replace_corpus
from dphh.errors import CorpusError
from dphh.files.paths import database_of, is_remote
from dphh.rows.user import columns_of
from dphh.sources.finding import (
    files_named,
    no_such_file,
    parquet_pattern,
    refuse_blocking_files,
    refuse_missing_columns,
    unreadable_files,
)
from dphh.sources.lakes import lake_table, refuse_files_of_tables
from dphh.sources.quiet import without_bar
from dphh.sources.quoted import identifier, literal
from dphh.sources.text_files import refuse_other_encodings
from dphh.sources.wide_files import refuse_many_columns
from dphh.wording.lines import plural

_DELIMITED_FILE = re.compile(r"\.(csv|tsv)(\.gz|\.zst)?$", re.IGNORECASE)
_JSON_LINES_FILE = re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE)
_DUCKDB_FILE = re.compile(r"\.(duckdb|ddb)$", re.IGNORECASE)
#: The longest first line in characters; DuckDB accepts no longer JSON object.
LONGEST_LINE = 1 << 25
#: Formats that no engine reads directly, and what the user can do instead.
_ADVICE_FOR_FORMATS = {
    "json": "write one object a line and call it .jsonl, or pass pl.read_json(...) with account=",
    "txt": "it has no columns; pass pl.DataFrame({...}) with a user column, and account=",
    "xlsx": "pass pl.read_excel(...), and account=",
    "arrow": "pass pl.scan_ipc(...), and account=",
    "feather": "pass pl.scan_ipc(...), and account=",
    "avro": "pass pl.read_avro(...), and account=",
    "orc": "pass pyarrow.orc.read_table(...), and account=",
    "sqlite": "attach it to a DuckDB connection, and pass the table's name, connection= and "
    "account=",
    "ducklake": "attach it to a DuckDB connection (ATTACH 'ducklake:...'), and pass the table's "
    "name, connection= and account=; a name in the ledger keeps its budget",
}


def opened(corpus: Corpus) -> Corpus:
    """The same corpus, with its table opened if its paths are not Parquet files."""
    if corpus.kind != "path":
        return corpus
    table: Any = None
    places = corpus.where
    for place in places:
        refuse_blocking_files(files_named(place))
    if len(places) == 1 and (database := database_of(places[0])) is not None:
        table = _table_of_database(corpus, database, places[0][len(database) :].strip("/"))
    elif any(_DUCKDB_FILE.search(str(Path(place).parent)) for place in places):
        raise unreadable_files(
            corpus,
            "there is no such database file; or several paths were given, and a table of a "
            "database must be the only one",
        )
    elif len(places) == 1 and (lake := lake_table(corpus, places[0])) is not None:
        table = lake
    elif all(_DELIMITED_FILE.search(place) and not _is_folder(place) for place in places):
        table = _open_delimited(corpus)
    elif all(_JSON_LINES_FILE.search(place) and not _is_folder(place) for place in places):
        table = _open_json_lines(corpus)
    else:
        _refuse_unread_formats(corpus)
        _refuse_mixed_formats(corpus)
    if table is None:
        refuse_files_of_tables(corpus)
        return corpus
    return replace_corpus(corpus, kind="table", source=table)


def refuse_missing_columns_of_texts(corpus: Corpus, ending: str) -> None:
    """Refuse a column that local CSV or JSON Lines files lack, and formats that no engine reads.
    First lines are read. `ending` ends the message, such as "Nothing was spent"."""
    if corpus.kind == "path":
        try:
            _refuse_unread_formats(corpus)
            if all(map(_is_local_text, corpus.where)):
                opened(corpus)
        except CorpusError as problem:
            raise CorpusError(f"{problem}. {ending}") from None


def _is_text(place: str) -> bool:
    return bool(_DELIMITED_FILE.search(place) or _JSON_LINES_FILE.search(place))


def _is_local_text(place: str) -> bool:
    return _is_text(place) and not is_remote(place) and Path(place).is_file()


def _is_folder(place: str) -> bool:
    return "://" not in place and Path(place).is_dir()


def _refuse_unread_formats(corpus: Corpus) -> None:
    for place in corpus.where:
        if place.lower().startswith("ducklake:") or "/ducklake:" in place.lower():
            raise CorpusError(f"corpus: a DuckLake: {_ADVICE_FOR_FORMATS['ducklake']}")
        suffix = Path(place).suffix.lower().removeprefix(".")
        if suffix in _ADVICE_FOR_FORMATS and not _is_folder(place):
            raise CorpusError(
                f"corpus: {place}: no engine reads .{suffix}: {_ADVICE_FOR_FORMATS[suffix]}"
            )


def _refuse_mixed_formats(corpus: Corpus) -> None:
    for place in corpus.where:
        if _is_text(place):
            raise CorpusError(
                f"corpus: {place}: the files of a corpus must have one format; give them as "
                "several corpora, or write all as Parquet"
            )


def _table_of_database(corpus: Corpus, database: str, name: str) -> Any:
    """A table of a DuckDB file. Views are refused, because they may read anything."""
    try:
        con = _without_progress(duckdb.connect(database, read_only=True))
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
    wanted = name.split(".")
    schema, table = ("main", name) if len(wanted) == 1 else (wanted[0], ".".join(wanted[1:]))
    if (schema, table) in tables:
        return con.table(f"{identifier(schema)}.{identifier(table)}")
    spelled = ", ".join(f"{database}/{schema}.{table}" for schema, table in tables[:5])
    raise CorpusError(
        f"corpus: {database} has no table {name!r} (views are not accepted); "
        f"name a table, such as {spelled}"
        if name
        else f"corpus: {database} is a DuckDB file; name a table in it, such as {spelled}"
    )


def _open_delimited(corpus: Corpus) -> Any:
    """CSV files: all columns are text, quoted by `"`; the header gives columns and delimiter."""
    con = _without_progress(duckdb.connect())
    selects = []
    wanted = list(dict.fromkeys(corpus.columns.values()))
    for (delimiter, names), files in _files_by_header(con, corpus, wanted).items():
        has = (
            "one file's first line, which must name the columns, has "
            f"{plural(len(names), 'field')} (not shown, as they may be data)"
        )
        refuse_missing_columns(corpus, names, has)
        for option, column in corpus.columns.items():
            if (there := names.count(column)) > 1:
                raise CorpusError(f"{option}: the corpus has {there} columns {column!r}; {has}")
        # By position: DuckDB treats names that differ only in case as equal.
        columns = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(names)))
        picked = ", ".join(
            f"{_column_as_text(corpus, name, f'c{names.index(name)}')} AS {identifier(name)}"
            for name in wanted
        )
        selects.append(
            f"SELECT {picked} FROM read_csv({_listing_of_files(files)}, "
            f"auto_detect = false, header = true, delim = {literal(delimiter)}, quote = '\"', "
            f"escape = '\"', hive_partitioning = false, columns = {{{columns}}})"
        )
    return con.sql(" UNION ALL ".join(selects))


def _files_by_header(
    con: duckdb.DuckDBPyConnection, corpus: Corpus, wanted: list[str]
) -> dict[tuple[str, tuple[str, ...]], list[str]]:
    """Group the files by header; only the first line of each is read."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for file in _files_of_corpus(con, corpus):
        line = _first_line(corpus, file)
        tabs = "tsv" in Path(file).suffixes[-1] + "".join(Path(file).suffixes[-2:-1])
        told: dict[str, tuple[str, ...]] = {}
        for delimiter in "\t" if tabs else ",;\t|":
            refuse_many_columns(file, line.count(delimiter) + 1)
            if (names := _fields_of_header(line, delimiter)) is not None:
                told[delimiter] = names
                if set(wanted) <= set(names):
                    break
        else:
            if not told:
                raise unreadable_files(corpus, "a first line names its columns, and it is none")
            delimiter = max(told, key=lambda each: len(told[each]))
        alike.setdefault((delimiter, told[delimiter]), []).append(file)
    return alike


def _fields_of_header(line: str, delimiter: str) -> tuple[str, ...] | None:
    """The fields of the header, or None if it cannot be split by this delimiter."""
    try:
        return tuple(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return None


def _open_json_lines(corpus: Corpus) -> Any:
    """JSON lines: one object per line; every value is read as text or as a list of texts."""
    con = _without_progress(duckdb.connect())
    files = _files_of_corpus(con, corpus)
    try:
        first = json.loads(_first_line(corpus, files[0]) or "{}")
    except (ValueError, RecursionError):
        first = None
    if not isinstance(first, dict):
        raise CorpusError(
            f"corpus: {', '.join(corpus.where)}: the first line is not a JSON object; write one "
            "JSON object per line"
        )
    if first:
        refuse_missing_columns(
            corpus,
            first,
            "the keys of the first line define the columns: name one of them, or write null in the "
            "first line if there is no value",
        )
    content = corpus.content
    listed = {content.column} if content.reading == "list" else set()
    columns = ", ".join(
        f"{literal(name)}: 'VARCHAR{'[]' if name in listed else ''}'"
        for name in dict.fromkeys(corpus.columns.values())
    )
    picked = ", ".join(
        f"{_column_as_text(corpus, name, identifier(name))} AS {identifier(name)}"
        for name in dict.fromkeys(corpus.columns.values())
    )
    return con.sql(
        f"SELECT {picked} FROM read_json({_listing_of_files(files)}, format = 'newline_delimited', "
        f"records = true, auto_detect = false, hive_partitioning = false, columns = {{{columns}}})"
    )


def _column_as_text(corpus: Corpus, name: str, column: str) -> str:
    """A column of text. Of users 649.0 is 649: so it is written where another row had none."""
    if name == corpus.content.column or name not in columns_of(corpus.user):
        return column
    whole = rf"regexp_replace({column}, '^(-?[0-9]+)\.0+$', '\1')"
    return f"CASE WHEN ends_with({column}, '0') THEN {whole} ELSE {column} END"


def _files_of_corpus(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> list[str]:
    if any("://" in place for place in corpus.where):
        raise CorpusError(
            f"corpus: {', '.join(corpus.where)}: dphh reads only Parquet files from a store; "
            "copy these files to this machine, or write them as Parquet"
        )
    found: dict[str, None] = {}
    for place in corpus.where:
        pattern = parquet_pattern(place)
        files = con.execute("SELECT file FROM glob($1) ORDER BY file", [pattern]).fetchall()
        if not files:
            raise no_such_file(corpus)
        found |= {file: None for (file,) in files}
    return list(found)


def _first_line(corpus: Corpus, file: str) -> str:
    """The first line, decompressed if needed. Reads at most LONGEST_LINE characters, even of a
    file without line ends."""
    try:
        with pa.input_stream(file, compression="detect") as stream:
            refuse_other_encodings(file, stream.read(2))
        with pa.input_stream(file, compression="detect") as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
            line = text.readline(LONGEST_LINE + 1)
    except OSError as problem:
        raise unreadable_files(
            corpus, f"its first line could not be read ({type(problem).__name__})"
        ) from None
    if len(line) > LONGEST_LINE:
        raise unreadable_files(corpus, f"its first line is longer than {LONGEST_LINE:,} characters")
    return line.rstrip("\n")


def _without_progress(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """No progress bar, which would show how much data each step reads; no spilling to disk."""
    without_bar(con)
    con.execute("SET temp_directory = ''")
    return con


def _listing_of_files(files: Iterable[str]) -> str:
    return f"[{', '.join(literal(parquet_pattern(file)) for file in files)}]"
