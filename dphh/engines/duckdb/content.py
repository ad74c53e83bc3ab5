"""Opens a corpus in DuckDB as the view tokens_of_rows (user_id, tokens)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa

from dphh.corpus import SPLITS, Content, Corpus
from dphh.errors import CorpusError, UsageError

ROWS = "corpus_rows"
Loader = Callable[[], None]
NOT_UTF8 = (
    "text: the content column is text but holds bytes that are not UTF-8: "
    "write it as a binary column, whose undecodable rows are ignored, or repair it"
)


def open_corpus(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> Loader:
    """Look at the names and types of the columns, then define the view. Reads no row.

    What comes back brings the rows within reach; call it when the run has begun.
    """
    if corpus.kind == "path":
        relation, load = _path_relation(con, corpus), _nothing
    else:
        relation, load = ROWS, _memory(con, corpus)
    types = _columns(con, relation)
    for option, column in (("user", corpus.user), ("text or item", corpus.content.column)):
        if column not in types:
            raise CorpusError(
                f"{option}: the corpus has no column {column!r}; it has {', '.join(types)}"
            )
    tokens = tokens_sql(corpus.content, types[corpus.content.column])
    _check_patterns(con, corpus.content)
    con.execute(
        f"CREATE TEMP VIEW tokens_of_rows AS "
        f"SELECT {identifier(corpus.user)} AS user_id, {tokens} AS tokens FROM {relation} "
        f"WHERE {identifier(corpus.content.column)} IS NOT NULL"
    )
    return load


def tokens_sql(content: Content, column_type: str) -> str:
    """The expression, over the macros of `sql/text.sql`, that reads one row's content."""
    column = identifier(content.column)
    if content.reading == "list":
        if not column_type.endswith("[]"):
            raise CorpusError(
                f"as: 'list' wants a list column, but {content.column!r} is {column_type}; "
                "say words, characters or whole"
            )
        tokens = f"CAST({column} AS VARCHAR[])"
        if content.lower:
            tokens = f"list_transform({tokens}, lambda token: lower(token))"
        return _cleaned(tokens, content)
    text = _as_text(column, column_type, content)
    if content.lower:
        text = f"lower({text})"
    if content.reading == "whole":
        tokens = f"[{text}]"
    elif content.reading == "characters":
        tokens = f"code_points({text})"
    elif content.split == "white space":
        tokens = f"white_space_words({text})"
    elif content.split == "unicode":
        tokens = f"unicode_words({text})"
    else:
        tokens = f"pattern_words({text}, {literal(content.split)})"
    return _cleaned(tokens, content, text)


def _as_text(column: str, column_type: str, content: Content) -> str:
    if column_type == "VARCHAR":
        return column
    if column_type == "BLOB":
        return f"try(decode({column}))"
    if content.reading == "whole" and not column_type.endswith("[]"):
        return f"CAST({column} AS VARCHAR)"
    wanted = "say as='list'" if column_type.endswith("[]") else "name a text column, or as='whole'"
    raise CorpusError(
        f"text: as={content.reading!r} wants text, but {content.column!r} is {column_type}; "
        f"{wanted}"
    )


def _cleaned(tokens: str, content: Content, text: str | None = None) -> str:
    if content.strip:
        tokens = f"stripped({tokens}, {literal(content.strip)})"
    if content.keep is not None:
        tokens = f"keeping({tokens}, {literal(content.keep)})"
    if content.drop is not None:
        tokens = f"dropping({tokens}, {literal(content.drop)})"
    limit = {"truncate": "truncating", "drop": "dropping_long", "error": "refusing_long"}
    limited = f"{limit[content.too_long]}({tokens}, {content.max_length})"
    # No token is longer than its row: short rows need no look at every token.
    return (
        limited
        if text is None
        else f"CASE WHEN strlen({text}) <= {content.max_length} THEN {tokens} ELSE {limited} END"
    )


def _check_patterns(con: duckdb.DuckDBPyConnection, content: Content) -> None:
    patterns = {"keep": content.keep, "drop": content.drop}
    if content.split not in SPLITS:
        patterns["split"] = content.split
    for option, pattern in patterns.items():
        if pattern is None:
            continue
        try:
            con.execute("SELECT regexp_matches('', $pattern)", {"pattern": pattern})
        except duckdb.Error as problem:
            raise UsageError(
                f"{option}: {pattern!r} is not a regular expression that DuckDB (RE2) takes: "
                f"{problem}"
            ) from None


def _path_relation(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> str:
    paths = [parquet_pattern(path) for path in corpus.where]
    listed = ", ".join(literal(path) for path in paths)
    relation = f"read_parquet([{listed}], hive_partitioning = true, union_by_name = true)"
    try:
        con.execute(f"DESCRIBE FROM {relation}")
    except duckdb.Error as problem:
        found = (
            "there is no such file"
            if "No files found" in str(problem)
            else (f"it cannot be read as Parquet ({type(problem).__name__})")
        )
        raise CorpusError(
            f"corpus: {', '.join(corpus.where)}: {found}; "
            "give a Parquet file, a glob such as 'reviews/*.parquet', or a folder of them"
        ) from None
    return relation


def parquet_pattern(path: str) -> str:
    """A folder stands for all Parquet files below it."""
    return f"{path.rstrip('/')}/**/*.parquet" if Path(path).is_dir() else path


def _memory(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> Loader:
    """Tables in memory come in as Arrow. Only their schema is asked for until the run begins."""
    source = corpus.source
    columns = list(dict.fromkeys([corpus.user, corpus.content.column]))
    if isinstance(source, duckdb.DuckDBPyRelation):
        schema = source.limit(0).to_arrow_table().schema
    elif hasattr(source, "collect_schema"):  # a Polars frame
        schema = source.collect_schema().to_frame().to_arrow().schema
    else:
        schema = pa.RecordBatchReader.from_stream(source).schema
    con.register(ROWS, schema.empty_table())

    def load() -> None:
        con.unregister(ROWS)
        if isinstance(source, duckdb.DuckDBPyRelation):
            chosen = source.select(
                *(duckdb.ColumnExpression(name) for name in dict.fromkeys(columns))
            )
            con.register(ROWS, pa.RecordBatchReader.from_stream(chosen))
            return
        frame = source.collect() if hasattr(source, "collect") else source
        table = pa.table(frame).select(list(dict.fromkeys(columns)))
        try:
            # DuckDB trusts Arrow's strings to be UTF-8, and dies where they are not.
            table.validate(full=True)
        except pa.ArrowInvalid:
            raise CorpusError(NOT_UTF8) from None
        con.register(ROWS, table)

    return load


def _nothing() -> None:
    """Files are read where they are."""


def _columns(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    rows = con.execute(f"DESCRIBE FROM {relation}").fetchall()
    return {row[0]: row[1] for row in rows}


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
