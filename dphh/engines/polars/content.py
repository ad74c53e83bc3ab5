"""Opens a corpus in Polars as the lazy frame tokens_of_rows (user_id, tokens, group_name)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from dphh.corpora.files import (
    refuse_missing_columns,
)
from dphh.corpora.tables import (
    has_rows_without_user,
    rows_in_memory,
    schema_in_memory,
    source_errors,
)
from dphh.corpus import Corpus
from dphh.engines.polars.files import NO_INTERVALS, scan_files
from dphh.engines.polars.queries import text as sql_text
from dphh.engines.polars.users import counts_expression, is_plain, user_expression
from dphh.errors import CorpusError, UsageError
from dphh.rows.content import NO_GROUPS, Content
from dphh.rows.patterns import check_patterns
from dphh.rows.user import columns_of

Loader = Callable[[], pl.LazyFrame]
#: Twice this (two digits per byte) is within the repetition limit of Rust's regular expressions.
LONGEST_UNIT = 5_000


def open_corpus(corpus: Corpus) -> tuple[Loader, Callable[[], bool]]:
    """Check the names and types of the columns. Reads no row.

    Returns a function that gives tokens_of_rows, to be called when the run has begun, and one that
    says whether any row has no user.
    """
    rows, schema = _rows_and_schema(corpus)
    refuse_missing_columns(corpus, schema)
    tokens = tokens_expression(corpus.content, schema[corpus.content.column])
    user = user_expression(corpus, schema)
    counted = counts_expression(corpus, schema)
    group = group_expression(corpus.by, schema)
    with duckdb.connect() as con:
        check_patterns(con, corpus.content.patterns)
    for option, pattern in corpus.content.patterns.items():
        _check_size(option, pattern)

    def load() -> pl.LazyFrame:
        return rows().filter(counted).select(user_id=user, tokens=tokens, group_name=group)

    def look() -> bool:
        if corpus.kind != "path":
            return has_rows_without_user(corpus)
        users = columns_of(corpus.user)
        nulls = pl.all_horizontal(pl.col(each).is_null() for each in users)
        return rows().select(users).filter(nulls).head(1).collect().height > 0

    return load, look


def group_expression(column: str | None, schema: pl.Schema) -> pl.Expr:
    """The group of a row, as the text in which groups are declared."""
    if column is None:
        return pl.lit(None, pl.String)
    kind = schema[column]
    if not is_plain(kind):
        raise CorpusError(NO_GROUPS.format(column=column, kind=kind))
    return pl.col(column).cast(pl.String)


def tokens_expression(content: Content, kind: pl.DataType) -> pl.Expr:
    """The expression, with the functions of `queries/text.py`, that makes tokens of a row."""
    column = pl.col(content.column)
    _refuse_types_without_text(content, kind)
    if content.reading == "list":
        if not isinstance(kind, (pl.List, pl.Array)):
            raise CorpusError(
                f"as: 'list' needs a list column, but {content.column!r} is {kind}; "
                "give words, characters or whole"
            )
        as_list = column.arr.to_list() if isinstance(kind, pl.Array) else column
        as_list = sql_text.first_tokens(as_list, pl.List(kind.inner), content.max_text_length)
        is_binary = kind.inner == pl.Binary
        tokens = sql_text.decoded_tokens(as_list) if is_binary else as_list.cast(pl.List(pl.String))
        if content.lower:
            tokens = tokens.list.eval(sql_text.lowered(pl.element()))
        return _cleaned_tokens(tokens, content)
    text = sql_text.first_characters(_as_text(column, kind, content), content.max_text_length)
    if content.lower:
        text = sql_text.lowered(text)
    if content.reading == "whole":
        tokens = pl.concat_list(text)
    elif content.reading == "characters":
        tokens = sql_text.code_points(text)
    elif content.split == "white space":
        tokens = sql_text.white_space_words(text)
    elif content.split == "unicode":
        tokens = sql_text.unicode_words(text)
    else:
        tokens = sql_text.pattern_words(text, content.split)
    return _cleaned_tokens(tokens, content)


def _refuse_types_without_text(content: Content, kind: pl.DataType) -> None:
    """Refuse types that Polars cannot write as text, before the run is paid for."""
    inner: object = kind
    while isinstance(inner, (pl.List, pl.Array)):
        inner = inner.inner
    if isinstance(inner, (pl.Duration, pl.Object)):
        raise CorpusError(
            f"text or item: {content.column!r} is {kind}, which Polars cannot write as text; "
            "cast the column to text, or use engine='duckdb'"
        )


def _as_text(column: pl.Expr, kind: pl.DataType, content: Content) -> pl.Expr:
    if kind == pl.String:
        return column
    if kind == pl.Binary:
        return sql_text.decoded(column)
    is_list = isinstance(kind, (pl.List, pl.Array))
    is_text = isinstance(kind, (pl.Categorical, pl.Enum, pl.Null))
    if is_text or (content.reading == "whole" and not is_list):
        return column.cast(pl.String)
    wanted = "say as_='list' (--as list)" if is_list else "name a text column, or say as_='whole'"
    raise CorpusError(
        f"text or item: as={content.reading!r} needs text, but {content.column!r} is {kind}; "
        f"{wanted}"
    )


def _cleaned_tokens(tokens: pl.Expr, content: Content) -> pl.Expr:
    if content.strip:
        tokens = sql_text.stripped(tokens, content.strip)
    if content.keep is not None:
        tokens = sql_text.keeping(tokens, content.keep)
    if content.drop is not None:
        tokens = sql_text.dropping(tokens, content.drop)
    tokens = _tokens_within_limits(tokens, content, content.max_token_length)
    if content.unit is None:
        return tokens
    return sql_text.cut_code_points(tokens, _longest_unit(content))


def _tokens_within_limits(tokens: pl.Expr, content: Content, longest: int) -> pl.Expr:
    limit = {
        "truncate": sql_text.truncating,
        "drop": sql_text.dropping_long,
        "error": sql_text.refusing_long,
    }
    return limit[content.too_long](tokens, longest)


def _check_size(option: str, pattern: str) -> None:
    """Refuse a pattern that is too large for Rust."""
    try:
        pl.Series([""]).str.contains(sql_text.in_full(pattern))
    except pl.exceptions.PolarsError as problem:
        raise UsageError(
            f"{option}: Polars does not take {pattern!r}; write it in another way, or use "
            f"engine='duckdb': {problem}"
        ) from None


def _longest_unit(content: Content) -> int:
    """How many characters a unit has at most: by now no item has more than `max_token_length` code
    points, each of at most four bytes."""
    assert content.unit is not None
    size = min(content.unit, 4 * content.max_token_length)
    if size > LONGEST_UNIT:
        raise UsageError(
            f"unit: found {content.unit:,}; with Polars, give at most {LONGEST_UNIT:,} characters, "
            "or use engine='duckdb', which has no limit"
        )
    return size


def _rows_and_schema(corpus: Corpus) -> tuple[Loader, pl.Schema]:
    """A function that returns the rows, and the types of their columns."""
    if corpus.kind == "path":
        files, schema = scan_files(corpus)
        return (lambda: files), schema
    if isinstance(corpus.source, (pl.DataFrame, pl.LazyFrame)):
        frame = corpus.source.lazy()  # stays lazy: Polars optimises it together with the level
        with source_errors(corpus):
            return (lambda: frame), frame.collect_schema()
    names = schema_in_memory(corpus)
    refuse_missing_columns(corpus, names.names)
    columns = list(dict.fromkeys(corpus.columns.values()))
    _refuse_unread_types(corpus, names)
    with source_errors(corpus):
        schema = pl.DataFrame(names.empty_table().select(columns)).schema

    def load() -> pl.LazyFrame:
        rows = rows_in_memory(corpus)
        with source_errors(corpus):
            return pl.DataFrame(rows).lazy()

    return load, schema


def _refuse_unread_types(corpus: Corpus, schema: Any) -> None:
    """Polars has no type for Arrow's intervals of months, days and nanoseconds: it panics."""
    for option, column in corpus.columns.items():
        kind = schema.field(column).type
        while pa.types.is_nested(kind) and kind.num_fields == 1:
            kind = kind.field(0).type
        if pa.types.is_interval(kind):
            raise CorpusError(f"{option}: {column!r} is {kind}: {NO_INTERVALS}")
