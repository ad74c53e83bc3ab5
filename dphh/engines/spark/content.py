"""Opens a corpus in Spark: the views contents (user_id, content, group_name) and tokens_of_rows."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegralType,
    StringType,
)

from dphh.corpus import Corpus
from dphh.engines.duckdb.content import check_patterns, tokens_sql
from dphh.engines.spark.rows import ROWS, Loader, Opening, find_rows, identifier
from dphh.engines.spark.users import PLAIN, is_text, user_sql
from dphh.errors import CorpusError
from dphh.rows.content import Content
from dphh.sources.finding import NO_GROUPS, refuse_missing_columns
from dphh.udfs.spark.functions import register_tokens, register_user_names

#: For user ids of types that all engines spell alike; for others see `register_user_names`.
_CREATE_NAME_FUNCTION = (
    "CREATE OR REPLACE TEMPORARY FUNCTION dphh_user_name (user_id {kind}) RETURNS STRING "
    "RETURN CAST(user_id AS STRING)"
)


def open_corpus(run: Opening, corpus: Corpus) -> Loader:
    """Look at the names and types of the columns, then define the view. Reads no row.

    Returns a function that makes the rows available, to be called when the run has begun. DuckDB
    tokenises the content on the executors, so that all engines read it alike.
    """
    load = find_rows(run, corpus)
    types = {field.name: field.dataType for field in run.spark.table(ROWS).schema.fields}
    refuse_missing_columns(corpus, types)
    name = corpus.content.column
    content, content_type = _content_and_duckdb_type(corpus.content, types[name])
    expression = tokens_sql(corpus.content, content_type)
    with duckdb.connect() as con:
        check_patterns(con, corpus.content)
    user = user_sql(corpus, types)
    group = _group_sql(corpus.by, types)
    run.tokens = name, expression
    of_user = types[corpus.user] if isinstance(corpus.user, str) else StringType()
    plain = is_text(of_user) or isinstance(of_user, PLAIN)
    kind = of_user.simpleString() if isinstance(of_user, IntegralType) else "string"

    def load_and_look() -> None:
        load()
        register_tokens(run.spark, name, expression)
        if plain:
            run.spark.sql(_CREATE_NAME_FUNCTION.format(kind=kind))
        else:
            register_user_names(run.spark)
        run.spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW contents AS "
            f"SELECT {user} AS user_id, {content} AS content, {group} AS group_name FROM {ROWS} "
            f"WHERE {identifier(name)} IS NOT NULL"
        )
        run.spark.sql(
            "CREATE OR REPLACE TEMPORARY VIEW tokens_of_rows AS "
            "SELECT user_id, dphh_tokens(content) AS tokens FROM contents"
        )

    return load_and_look


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
