"""Opens a corpus in Spark: the views rows_of_corpus (user_id, content, group_name) and
tokens_of_rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
)

from dphh.corpora.files import refuse_missing_columns
from dphh.corpus import Corpus
from dphh.engines.duckdb.content import Loader, tokens_sql
from dphh.engines.duckdb.failures import engine_errors as of_duckdb
from dphh.engines.duckdb.rows import Rows
from dphh.engines.host import Limits
from dphh.engines.spark.functions import register_arrow
from dphh.engines.spark.rows import ROWS, Opening, find_rows, identifier
from dphh.engines.spark.users import PLAIN, is_text, user_sql
from dphh.errors import CorpusError, UsageError
from dphh.rows.conditions import check_patterns
from dphh.rows.content import NO_GROUPS, Content
from dphh.rows.user import columns_of
from dphh.udfs.text.tokens import tokens_of


def open_corpus(host: Opening, corpus: Corpus) -> tuple[Loader, Callable[[], bool]]:
    """Look at the names and types of the columns. Reads no row.

    Returns a function that makes the rows available, to be called when the run has begun, and one
    that says whether any row has no user. DuckDB tokenises the content on the executors, so that
    all engines read it alike.
    """
    if corpus.content.where is not None:
        raise UsageError(
            "where: is DuckDB's SQL, and goes with DuckDB and Polars; filter the Spark frame "
            "(frame.where(...)) and name its account (account=), or use another engine"
        )
    if corpus.kind == "path" or isinstance(corpus.source, DataFrame):
        load, look, content_type = _read_by_spark(host, corpus)
    else:
        load, look, content_type = _read_by_duckdb(host, corpus)
    name, expression = corpus.content.column, tokens_sql(corpus.content, content_type)
    host.tokens = name, expression

    def tokens(content: pa.Array) -> pa.Array:
        return tokens_of(content, name, expression)

    def load_and_define() -> None:
        load()
        register_arrow(host.spark, "dphh_tokens", tokens, "array<string>")
        host.spark.sql(
            "CREATE OR REPLACE TEMPORARY VIEW tokens_of_rows AS "
            "SELECT user_id, dphh_tokens(content) AS tokens FROM rows_of_corpus"
        )

    return load_and_define, look


def _read_by_duckdb(host: Opening, corpus: Corpus) -> tuple[Loader, Callable[[], bool], str]:
    """A table in memory, which comes in as Arrow; and the type of its content in DuckDB."""
    rows = Rows(corpus, Limits())
    host.when_closed(rows.close)
    described = rows.con.execute("DESCRIBE SELECT content FROM rows_of_corpus").fetchall()

    def load() -> None:
        rows.open()
        with of_duckdb("rows_of_corpus"):
            read = rows.con.sql("FROM rows_of_corpus").to_arrow_table()
        rows.close()  # with DuckDB's own copy of the rows
        host.spark.createDataFrame(read).createOrReplaceTempView("rows_of_corpus")

    return load, rows.has_rows_without_user, described[0][1]


def _read_by_spark(host: Opening, corpus: Corpus) -> tuple[Loader, Callable[[], bool], str]:
    """Files and frames; and the type of their content in DuckDB."""
    find_rows(host, corpus)
    types = {field.name: field.dataType for field in host.spark.table(ROWS).schema.fields}
    refuse_missing_columns(corpus, types)
    name = corpus.content.column
    content, content_type = _content_and_duckdb_type(corpus.content, types[name])
    with duckdb.connect() as con:
        check_patterns(con, corpus.content.patterns)
    user = user_sql(corpus, types)
    group = _group_sql(corpus.by, types)
    users = [identifier(column) for column in columns_of(corpus.user)]
    needed = [identifier(name), *(users if corpus.content.null_users == "drop" else ())]
    counted = " AND ".join(f"{column} IS NOT NULL" for column in needed)

    def load() -> None:
        host.spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW rows_of_corpus AS "
            f"SELECT {user} AS user_id, {content} AS content, {group} AS group_name FROM {ROWS} "
            f"WHERE {counted}"
        )

    def look() -> bool:
        nulls = " AND ".join(f"{column} IS NULL" for column in users)
        found = host.spark.sql(f"SELECT 1 FROM {ROWS} WHERE {nulls} LIMIT 1")
        return bool(found.collect())

    return load, look, content_type


def _group_sql(by: str | None, types: Mapping[str, DataType]) -> str:
    """The group of a row, as the text that declares it."""
    if by is None:
        return "CAST(NULL AS STRING)"
    kind = types[by]
    if is_text(kind):
        return f"checked({identifier(by)})"
    if not isinstance(kind, PLAIN):
        raise CorpusError(NO_GROUPS.format(column=by, kind=kind.simpleString()))
    return f"CAST({identifier(by)} AS STRING)"


def _content_and_duckdb_type(content: Content, kind: DataType) -> tuple[str, str]:
    """The content column cut to its limits, as text, bytes or a list of these, in Spark's SQL; and
    the name of this type in DuckDB."""
    column, longest = identifier(content.column), content.max_text_length
    if isinstance(kind, ArrayType):
        if isinstance(kind.elementType, BinaryType):
            return f"slice({column}, 1, {longest})", "BLOB[]"
        texts = is_text(kind.elementType)
        read = f"all_checked({column})" if texts else f"CAST({column} AS ARRAY<STRING>)"
        return f"slice({read}, 1, {longest})", "VARCHAR[]"
    if isinstance(kind, BinaryType):
        return column, "BLOB"
    if is_text(kind):
        return f"left(checked({column}), {longest})", "VARCHAR"
    return f"left(CAST({column} AS STRING), {longest})", kind.simpleString()
