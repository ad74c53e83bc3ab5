"""Opens a corpus in DuckDB as the views rows_of_corpus (user_id, content) and tokens_of_rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import duckdb

from dphh.content import Content
from dphh.corpus import Corpus
from dphh.engines.re2 import check_re2
from dphh.errors import CorpusError
from dphh.lineage.conditions import check_types, condition
from dphh.sources.quoted import identifier, literal
from dphh.sources.reading import (
    NO_GROUPS,
    NO_UNITS,
    parquet_pattern,
    refuse_columns_twice,
    refuse_missing_columns,
    rows_in_memory,
    schema_in_memory,
    unreadable,
)
from dphh.sources.wide_files import refuse_wide_files

ROWS = "corpus_rows"
#: So many can be described in no time.
MANY_COLUMNS = 1_000
Loader = Callable[[], None]
#: How DuckDB writes the types whose values are written alike everywhere.
PLAIN_TYPE = re.compile(
    r'VARCHAR|BOOLEAN|DATE|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|ENUM\(.*\)|"NULL"', re.DOTALL
)
#: Types of users who are numbers of 64 bits, and of those who are as they are written.
NUMBERS = re.compile(r"U?(TINY|SMALL|BIG)INT|U?INTEGER")
NAMES = re.compile(r"VARCHAR|BLOB|BOOLEAN|DATE|UUID|U?HUGEINT|DECIMAL\(.*\)|ENUM\(.*\)", re.DOTALL)
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
    numbered = [f"{column}_1" for column in corpus.columns.values()]  # as DuckDB names a second one
    if corpus.kind == "path" and _types_of(con, relation, numbered):
        refuse_columns_twice(corpus)
    types = _columns(con, relation, corpus)
    if not types.keys() >= {*corpus.columns.values()}:
        refuse_missing_columns(corpus, {**types, **_all_columns(con, relation, corpus)})
    statements = [*corpus_statements(corpus, types, relation), *user_statements(corpus, types)]
    check_patterns(con, corpus.content)
    if corpus.content.where is not None:
        check_types(corpus.content.where, types)
    for statement in statements:
        con.execute(statement)
    return load


def corpus_statements(corpus: Corpus, types: Mapping[str, str], relation: str) -> tuple[str, ...]:
    """What makes rows, and tokens of them, of a relation whose columns have these types."""
    column = identifier(corpus.content.column)
    tokens = tokens_sql(corpus.content, types[corpus.content.column])
    content = _as_written(corpus.content, types[corpus.content.column])
    kept = "" if corpus.content.where is None else f" AND {condition(corpus.content.where).sql}"
    return (
        f"CREATE TEMP MACRO tokens_of({column}) AS {tokens}",
        f"CREATE TEMP VIEW rows_of_corpus AS "
        f"SELECT {user_sql(corpus, types)} AS user_id, "
        f"{content} AS content, "
        f"{group_sql(corpus.by, types)} AS group_name FROM {relation} "
        f"WHERE {column} IS NOT NULL{kept}",
        "CREATE TEMP VIEW tokens_of_rows AS "
        "SELECT user_id, tokens_of(content) AS tokens, group_name FROM rows_of_corpus",
    )


def user_statements(corpus: Corpus, types: Mapping[str, str]) -> tuple[str, ...]:
    """What stands for a user of `rows_of_corpus` where whole users are brought together."""
    key, name = key_and_name(types[corpus.user] if isinstance(corpus.user, str) else "VARCHAR")
    return (
        f"CREATE TEMP MACRO key_of_user(user_id) AS {key}",
        f"CREATE TEMP MACRO name_of_user(user_id) AS {name}",
    )


def _as_written(content: Content, column_type: str) -> str:
    """What counts of the content column, as text.

    Values that are equal may be written apart: 0.0 and -0.0, 30 days and 1 month. Grouped by value,
    one user's spelling would become everybody's; so content is text before it is grouped. Bytes are
    written one way; what counts of them is known when they are decoded.
    """
    column, longest = identifier(content.column), content.max_text_length
    if column_type == "BLOB":
        return column
    if not LIST_TYPE.search(column_type):
        return f"first_characters(CAST({column} AS VARCHAR), {longest})"
    kind = "BLOB[]" if column_type.startswith("BLOB[") else "VARCHAR[]"
    if not column_type.endswith("[]"):  # of a fixed length, which is a type by itself
        return f"CAST({column} AS {kind})[1:{longest}]"
    return f"CAST(first_tokens({column}, {longest}) AS {kind})"


def user_sql(corpus: Corpus, types: Mapping[str, str]) -> str:
    """Whose row it is. Several columns are one text that tells each of them: its length in bytes,
    and it; NULL if any of them is."""
    if isinstance(corpus.user, str):
        return identifier(corpus.user)
    parts = []
    for option, column in corpus.columns_of_user:
        if not PLAIN_TYPE.fullmatch(types[column]):
            raise CorpusError(NO_UNITS.format(option=option, column=column, kind=types[column]))
        text = f"CAST({identifier(column)} AS VARCHAR)"
        parts.append(f"CAST(strlen({text}) AS VARCHAR) || ':' || {text}")
    return " || ".join(parts)


def key_and_name(kind: str) -> tuple[str, str]:
    """What stands for a user: a number, or the name. Of a type whose equal values may be written
    apart it is a rank, which DuckDB gives by what it holds to be equal, and the name beside."""
    if NUMBERS.fullmatch(kind):
        number = "UBIGINT" if kind == "UBIGINT" else "BIGINT"
        return f"CAST(user_id AS {number})", "CAST(NULL AS VARCHAR)"
    if NAMES.fullmatch(kind):
        return "CAST(NULL AS BIGINT)", "CAST(user_id AS VARCHAR)"
    return "dense_rank() OVER (ORDER BY user_id)", "CAST(user_id AS VARCHAR)"


def group_sql(by: str | None, types: Mapping[str, str]) -> str:
    """The group of a row, as the text that declares it."""
    if by is None:
        return "CAST(NULL AS VARCHAR)"
    if not PLAIN_TYPE.fullmatch(types[by]):
        raise CorpusError(NO_GROUPS.format(column=by, kind=types[by]))
    return f"CAST({identifier(by)} AS VARCHAR)"


def tokens_sql(content: Content, column_type: str) -> str:
    """The expression, over the macros of `sql/rows/text.sql`, that reads what counts of a row's
    content, the column's bytes or text."""
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
    if content.characters == "bytes" and column_type == "BLOB":
        digits = f"first_characters(spelled_bytes({column}), {2 * content.max_text_length})"
        return _bytes_of_binary(digits, content)
    text = _as_text(column, column_type, content)
    if content.lower:
        text = f"lower({text})"
    if content.reading == "whole":
        tokens = f"[{text}]"
    elif content.reading == "characters":
        if content.characters == "bytes":  # no byte is too long
            return f"pairs(spelled_bytes(encode({text})))"
        tokens = f"{content.characters.replace(' ', '_')}({text})"
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
        return f"first_characters(try(decode({column})), {content.max_text_length})"
    is_list = LIST_TYPE.search(column_type)
    if content.reading == "whole" and not is_list:
        return f"CAST({column} AS VARCHAR)"
    wanted = "say as_='list' (--as list)" if is_list else "name a text column, or say as_='whole'"
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
    limited = _limited(tokens, content, content.max_token_length)
    # No token is longer than its row: short rows need no look at every token.
    if text is not None:
        is_short = f"strlen({text}) <= {content.max_token_length}"
        limited = f"CASE WHEN {is_short} THEN {tokens} ELSE {limited} END"
    if content.unit is None:
        return limited
    return f"cut_{content.characters.replace(' ', '_')}({limited}, {content.unit})"


def _limited(tokens: str, content: Content, longest: int) -> str:
    limit = {"truncate": "truncating", "drop": "dropping_long", "error": "refusing_long"}
    return f"{limit[content.too_long]}({tokens}, {longest})"


def _bytes_of_binary(digits: str, content: Content) -> str:
    """A binary column's bytes as they are, in digits: two a byte."""
    if content.lower or content.cleans_tokens:
        raise CorpusError(
            f"characters: the bytes of a binary column ({content.column!r}) are taken as they are; "
            "leave lower, strip, keep and drop out, or name a text column"
        )
    if content.reading == "characters":
        return f"pairs({digits})"
    limited = _limited(f"[{digits}]", content, 2 * content.max_token_length)
    return limited if content.unit is None else f"cut_spelled_bytes({limited}, {content.unit})"


def check_patterns(con: duckdb.DuckDBPyConnection, content: Content) -> None:
    for option, pattern in content.patterns.items():
        check_re2(con, option, pattern)


def _path_relation(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> str:
    refuse_wide_files(corpus)
    files = f"read_parquet({_listed(corpus)}, union_by_name = true, hive_partitioning = "
    try:
        # A column of the files is taken before one that the folders' names spell.
        relation = f"{files} false)"
        if not _columns(con, relation, corpus).keys() >= {*corpus.columns.values()}:
            # As text: one user's folder must not decide how all others' names are read.
            relation = f"{files} true, hive_types_autocast = false)"
            _columns(con, relation, corpus)
    except duckdb.Error as problem:
        raise unreadable(corpus, problem) from None
    return relation


def _memory(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> Loader:
    """Tables in memory come in as Arrow. Only their schema is asked for until the run begins."""
    con.register(ROWS, schema_in_memory(corpus).empty_table())

    def load() -> None:
        con.unregister(ROWS)
        con.register(ROWS, rows_in_memory(corpus))

    return load


def _nothing() -> None:
    """Files are read where they are."""


def _columns(con: duckdb.DuckDBPyConnection, relation: str, corpus: Corpus) -> dict[str, str]:
    """The types of the corpus's columns, of those that are there."""
    return _types_of(con, relation, corpus.columns.values())


def _types_of(
    con: duckdb.DuckDBPyConnection, relation: str, columns: Iterable[str]
) -> dict[str, str]:
    """To describe all columns takes time that grows with the square of their number."""
    named = ", ".join(literal(column) for column in columns)
    query = f"DESCRIBE SELECT COLUMNS(lambda name: name IN ({named})) FROM {relation}"
    try:
        return {row[0]: row[1] for row in con.execute(query).fetchall()}
    except duckdb.BinderException as problem:
        if "COLUMNS" not in str(problem):
            raise
        return {}  # none of them is


def _all_columns(con: duckdb.DuckDBPyConnection, relation: str, corpus: Corpus) -> dict[str, str]:
    """All columns, for who has named one that is not there; of very many, their names alone."""
    if corpus.kind == "path":
        query = f"SELECT name FROM parquet_schema({_listed(corpus)})"
        _whole_row, *names = dict.fromkeys(name for (name,) in con.execute(query).fetchall())
        if len(names) > MANY_COLUMNS:
            return dict.fromkeys(names, "")
    return {row[0]: row[1] for row in con.execute(f"DESCRIBE FROM {relation}").fetchall()}


def _listed(corpus: Corpus) -> str:
    return f"[{', '.join(literal(parquet_pattern(path)) for path in corpus.where)}]"
