"""Opens a corpus in DuckDB as the view tokens_of_rows (user_id, tokens)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from dphh.corpus import SPLITS, Content, Corpus
from dphh.errors import CorpusError, DphhError, UsageError

ROWS = "corpus_rows"
Loader = Callable[[], None]
NOT_UTF8 = (
    "text, user: a text column holds bytes that are not UTF-8: write it as a binary column "
    "(of which undecodable content is ignored), or repair it"
)
#: How DuckDB writes the type of a list column, of any length or of a fixed one.
LIST_TYPE = re.compile(r"\[\d*\]$")


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
        if not LIST_TYPE.search(column_type):
            raise CorpusError(
                f"as: 'list' wants a list column, but {content.column!r} is {column_type}; "
                "say words, characters or whole"
            )
        decoded = LIST_TYPE.sub("", column_type) == "BLOB"
        tokens = f"decoded({column})" if decoded else f"CAST({column} AS VARCHAR[])"
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
    is_list = LIST_TYPE.search(column_type)
    if content.reading == "whole" and not is_list:
        return f"CAST({column} AS VARCHAR)"
    wanted = "say as='list'" if is_list else "name a text column, or say as='whole'"
    raise CorpusError(
        f"text or item: as={content.reading!r} wants text, "
        f"but {content.column!r} is {column_type}; "
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
    limited = f"{limit[content.too_long]}({tokens}, {content.max_token_length})"
    # No token is longer than its row: short rows need no look at every token.
    if text is not None:
        is_short = f"strlen({text}) <= {content.max_token_length}"
        limited = f"CASE WHEN {is_short} THEN {tokens} ELSE {limited} END"
    return limited if content.unit is None else f"cut({limited}, {content.unit})"


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
    listed = ", ".join(literal(parquet_pattern(path)) for path in corpus.where)
    files = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = "
    try:
        # A column of the files is taken before one that the folders' names spell.
        in_files = _columns(con, f"{files} false)")
        wanted = {corpus.user, corpus.content.column}
        relation = f"{files} {'false' if wanted <= set(in_files) else 'true'})"
        con.execute(f"DESCRIBE FROM {relation}")
    except duckdb.Error as problem:
        found = (
            "there is no such file"
            if "No files found" in str(problem)
            else f"it cannot be read as Parquet ({type(problem).__name__})"
        )
        raise CorpusError(
            f"corpus: {', '.join(corpus.where)}: {found}; "
            "give a Parquet file, a glob such as 'reviews/*.parquet', or a folder of them"
        ) from None
    return relation


def parquet_pattern(path: str) -> str:
    """What is there is meant, whatever its name; a folder stands for all Parquet files below it."""
    there = Path(path)
    if "://" in path or not there.exists():
        return path
    plain = re.sub(r"([*?\[])", r"[\1]", path)
    return f"{plain.rstrip('/')}/**/*.parquet" if there.is_dir() else plain


def _memory(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> Loader:
    """Tables in memory come in as Arrow. Only their schema is asked for until the run begins."""
    source = corpus.source
    columns = list(dict.fromkeys([corpus.user, corpus.content.column]))
    with _source_errors(corpus):
        if isinstance(source, duckdb.DuckDBPyRelation):
            schema = source.limit(0).to_arrow_table().schema
        elif hasattr(source, "collect_schema"):  # a Polars frame
            schema = source.collect_schema().to_frame().to_arrow().schema
        elif isinstance(source, pa.RecordBatchReader):  # can be read once: not for its schema
            schema = source.schema
        else:
            schema = pa.RecordBatchReader.from_stream(source).schema
    for option, column in (("user", corpus.user), ("text or item", corpus.content.column)):
        if schema.names.count(column) > 1:
            raise CorpusError(
                f"{option}: the corpus has {schema.names.count(column)} columns {column!r}; "
                "rename all but one"
            )
    con.register(ROWS, schema.empty_table())

    def load() -> None:
        con.unregister(ROWS)
        with _source_errors(corpus):
            if isinstance(source, duckdb.DuckDBPyRelation):
                chosen = source.select(*(duckdb.ColumnExpression(name) for name in columns))
                con.register(ROWS, pa.RecordBatchReader.from_stream(chosen))
                return
            lazy = hasattr(source, "collect")
            table = pa.table(source.select(columns).collect() if lazy else source).select(columns)
        try:
            # DuckDB trusts Arrow's strings to be UTF-8, and dies where they are not.
            table.validate(full=True)
        except pa.ArrowInvalid:
            raise CorpusError(NOT_UTF8) from None
        con.register(ROWS, table)

    return load


@contextmanager
def _source_errors(corpus: Corpus) -> Iterator[None]:
    """What a table in memory raises when it is asked may quote data: only its kind passes."""
    try:
        yield
    except DphhError:
        raise
    except Exception as problem:
        raise CorpusError(
            f"source: {corpus.where[0]} could not be read: it failed with "
            f"{type(problem).__name__}, whose message is withheld because it may quote data; "
            "see that it computes on its own"
        ) from None


def _nothing() -> None:
    """Files are read where they are."""


def _columns(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    rows = con.execute(f"DESCRIBE FROM {relation}").fetchall()
    return {row[0]: row[1] for row in rows}


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
