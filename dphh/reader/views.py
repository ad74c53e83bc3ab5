"""Opens a corpus in DuckDB: views of its rows (user_id, content, group_name), tokens and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from dphh.errors import CorpusError, UsageError
from dphh.reader.conditions import check_condition_types, check_patterns, checked_condition
from dphh.reader.content import BORDER, GROUP_TYPE_MESSAGE, Content
from dphh.reader.corpus import USER_TYPE_MESSAGE, Corpus
from dphh.reader.files import files_to_read, refuse_missing_columns, unreadable_parquet_error
from dphh.reader.tables import own_type, schema_of_table
from dphh.sql import identifier, literal, query

SOURCE_TABLE_NAME = "corpus_rows"
#: Connections that make tokens and that no thread uses now. (What Python stores by thread is lost
#: for the threads of an engine.)
_FREE_CONNECTIONS: list[duckdb.DuckDBPyConnection] = []
#: Texts of more bytes are made into tokens a few at a time: DuckDB would take 2,048 rows at once,
#: whose tokens take many times as much memory as their texts.
LONG_TEXT_BYTES = 1 << 13
#: Matches the end of the name of a DuckDB list type, of variable or fixed length.
LIST_TYPE_END = re.compile(r"\[\d*\]$")
#: Matches the types that a column of groups may have, as DuckDB and as Spark call them: a value has
#: the same text on every engine.
GROUP_TYPE_PATTERN = re.compile(
    r'VARCHAR|BOOLEAN|DATE|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|ENUM\(.*\)|"NULL"|VOID',
    re.DOTALL | re.IGNORECASE,
)
#: Matches the types that a user column may have: cast to text, equal values have equal texts.
_USER_ID_TYPE_PATTERN = re.compile(
    rf"{GROUP_TYPE_PATTERN.pattern}|UUID|DECIMAL\(.*\)", GROUP_TYPE_PATTERN.flags
)


def open_corpus(
    con: duckdb.DuckDBPyConnection, corpus: Corpus, define_macros: Callable[[str], None]
) -> tuple[str, dict[str, str]]:
    """Check the names and types of the columns, then define the views. Reads no row: a table's rows
    are to be registered later. Returns the relation of the corpus, and the types of its columns."""
    if corpus.kind == "path":
        relation, types = _path_relation(con, corpus)
    else:
        relation = SOURCE_TABLE_NAME
        con.register(relation, schema_of_table(corpus).empty_table())
        types = _types_of(con, relation)
    refuse_missing_columns(corpus, types)
    statements = view_statements(corpus, types, relation)
    check_patterns(con, corpus.content.patterns)
    if corpus.content.where is not None:
        check_condition_types(corpus.content.where, types)
    for statement in statements:
        define_macros(statement)
        con.execute(statement)
    return relation, types


def view_statements(corpus: Corpus, types: Mapping[str, str], relation: str) -> tuple[str, ...]:
    """The SQL that makes the views of rows and tokens from a relation with these column types."""
    refuse_unclear_types(corpus, types)
    kind = types[corpus.content.column]
    content = _content_sql(corpus.content, kind)
    is_text = kind != "BLOB" and not LIST_TYPE_END.search(kind)
    is_long = f"(strlen(content) > {LONG_TEXT_BYTES})" if is_text else "false"
    group = "NULL" if corpus.by is None else identifier(corpus.by)
    return (
        f"CREATE TEMP MACRO tokens_of(content) AS {tokens_sql(corpus.content, kind)}",
        f"CREATE TEMP VIEW rows_of_corpus AS "
        f"SELECT {user_sql(corpus)} AS user_id, "
        f"{content} AS content, "
        f"CAST({group} AS VARCHAR) AS group_name FROM {relation} "
        f"WHERE {row_condition_sql(corpus)}",
        "CREATE TEMP VIEW texts_of_corpus AS "
        + tokens_query(
            corpus.content,
            kind,
            f"SELECT user_id, CASE WHEN NOT {is_long} THEN content END AS content, group_name, "
            f"CASE WHEN {is_long} THEN CAST(content AS VARCHAR) END AS long_text "
            "FROM rows_of_corpus",
        ),
    )


def refuse_unclear_types(corpus: Corpus, types: Mapping[str, str]) -> None:
    """Refuse columns of users and of groups whose equal values may have different texts."""
    for option, column in corpus.columns_of_user:
        if not _USER_ID_TYPE_PATTERN.fullmatch(types[column]):
            kind = own_type(corpus, column, types[column])
            raise CorpusError(USER_TYPE_MESSAGE.format(option=option, column=column, kind=kind))
    if corpus.by is not None and not GROUP_TYPE_PATTERN.fullmatch(types[corpus.by]):
        kind = own_type(corpus, corpus.by, types[corpus.by])
        raise CorpusError(GROUP_TYPE_MESSAGE.format(column=corpus.by, kind=kind))


def user_sql(corpus: Corpus) -> str:
    """SQL for the id of the row's user as text, which is all that later steps see. Several columns
    make one text that determines the value of each; NULL if one of them is NULL."""
    if len(corpus.user) == 1:
        return f"CAST({identifier(corpus.user[0])} AS VARCHAR)"
    return " || ".join(f"spelled_in_bytes({identifier(each)})" for each in corpus.user)


def nulls_sql(corpus: Corpus) -> str:
    """SQL that is true for rows without a user."""
    return " OR ".join(f"{identifier(column)} IS NULL" for column in corpus.user)


def row_condition_sql(corpus: Corpus) -> str:
    """SQL that is true for rows that count: they have content, they meet the corpus's condition
    and, if rows without a user are to be dropped, they have a user. Of a table, rows without a
    user are read all the same, if a corpus that has any is to be refused."""
    needed = [corpus.content.column]
    if corpus.content.null_users == "drop":
        needed += corpus.user
    holds = " AND ".join(f"{identifier(column)} IS NOT NULL" for column in needed)
    if corpus.content.where is not None:
        holds += f" AND {checked_condition(corpus.content.where).sql}"
    if corpus.kind != "path" and corpus.content.null_users == "refuse":
        return f"({holds}) OR {nulls_sql(corpus)}"
    return holds


def _content_sql(content: Content, column_type: str) -> str:
    """SQL for the content column as text, cut to its limits.

    Equal values may have different spellings: 0.0 and -0.0, 30 days and 1 month. If rows were
    grouped by value, one user's spelling would replace the others'; so content is cast to text
    before it is grouped. Bytes have one spelling, and are cut after they are decoded.
    """
    column, longest = identifier(content.column), content.max_text_length
    if column_type == "BLOB":
        return column
    if not LIST_TYPE_END.search(column_type):
        return f"first_characters(CAST({column} AS VARCHAR), {longest})"
    kind = "BLOB[]" if column_type.startswith("BLOB[") else "VARCHAR[]"
    return f"first_tokens(CAST({column} AS {kind}), {longest})"


def tokens_sql(
    content: Content, column_type: str, named: Callable[[str], str] = lambda sql: sql
) -> str:
    """The SQL expression, with the macros of `sql/rows/text.sql`, that makes tokens of the column
    `content` (bytes or text). Later parts read the expression of a part by what `named` returns."""
    if content.reading == "list":
        if not LIST_TYPE_END.search(column_type):
            raise CorpusError(
                f"as: 'list' needs a list column, but {content.column!r} is {column_type}; "
                "give words, characters or whole"
            )
        are_bytes = LIST_TYPE_END.sub("", column_type) == "BLOB"
        tokens = "decoded(content)" if are_bytes else "CAST(content AS VARCHAR[])"
        if content.lower:
            tokens = f"list_transform({tokens}, lambda token: lower(token))"
        return _cleaned_tokens_sql(tokens, content)
    text = named(_text_to_split_sql(content, column_type))
    if content.lower:  # a letter in lower case may compose where it did not
        text = named(f"composed(lower({text}))")
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
    return _cleaned_tokens_sql(named(tokens), content, text)


def tokens_query(content: Content, column_type: str, rows: str) -> str:
    """The query `rows`, which has the column `content`, with a column `tokens` besides. Each part
    of `tokens_sql` is a column that later parts read: macros repeat their arguments, so that one
    expression of all parts takes four times as long to plan, and longer to run."""
    parts = [rows]

    def named(expression: str) -> str:
        name = f"part_{len(parts)}"
        parts.append(f"SELECT *, {expression} AS {name} FROM ({parts[-1]})")
        return name

    tokens = tokens_sql(content, column_type, named)
    return f"SELECT *, {tokens} AS tokens FROM ({parts[-1]})"


def _text_to_split_sql(content: Content, column_type: str) -> str:
    """SQL for the text of which tokens are made. A column that has no texts is refused."""
    if column_type == "VARCHAR":
        return "composed(content)"
    if column_type == "BLOB":
        return f"composed(first_characters(try(decode(content)), {content.max_text_length}))"
    is_list = LIST_TYPE_END.search(column_type)
    if content.reading == "whole" and not is_list:
        return "CAST(content AS VARCHAR)"
    wanted = "say as_='list'" if is_list else "name a text column, or say as_='whole'"
    raise CorpusError(
        f"text or item: as_={content.reading!r} needs text, "
        f"but {content.column!r} is {column_type}; "
        f"{wanted}"
    )


def _cleaned_tokens_sql(tokens: str, content: Content, split_text: str | None = None) -> str:
    if content.strip:
        tokens = f"stripped({tokens}, {literal(content.strip)})"
    if content.keep is not None:
        tokens = f"keeping({tokens}, {literal(content.keep)})"
    if content.drop is not None:
        tokens = f"dropping({tokens}, {literal(content.drop)})"
    limiting = {"truncate": "truncating", "drop": "dropping_long", "error": "refusing_long"}
    limited = f"{limiting[content.too_long]}({tokens}, {content.max_token_length})"
    # No token is longer than its text, so short texts skip the check of each token.
    if split_text is not None:
        is_short = f"strlen({split_text}) <= {content.max_token_length}"
        limited = f"CASE WHEN {is_short} THEN {tokens} ELSE {limited} END"
    if content.unit is None:
        return limited
    return f"cut_code_points({limited}, {content.unit})"


def _path_relation(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> tuple[str, dict[str, str]]:
    """The relation of a corpus's files, and the types of its columns."""
    try:
        listed = ", ".join(map(literal, files_to_read(con, corpus)))
        files = f"read_parquet([{listed}], hive_partitioning ="
        # To unite columns, DuckDB opens every file each time that it binds a view.
        relation = f"{files} false, union_by_name = {not corpus.same_schema})"
        types = _types_of(con, relation)
    except duckdb.Error as problem:
        raise unreadable_parquet_error(corpus, problem) from None
    # A column in the files takes precedence over one in the names of partition folders.
    if types.keys() >= {*corpus.columns.values()}:
        return relation, types
    # Folder names are read as text: the name that is one user's id must not decide the type of all
    # user ids.
    relation = f"{files} true, hive_types_autocast = false, union_by_name = true)"
    return relation, _types_of(con, relation)


def _types_of(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """The types of a relation's columns, by name."""
    return {row[0]: row[1] for row in con.execute(f"DESCRIBE FROM {relation}").fetchall()}


def tokens_of_texts(texts: Sequence[str], content: Content) -> list[tuple[str, ...]]:
    """The tokens of each text, as every engine makes them of a row's content. A text for a list
    has the list's elements, with BORDER between them."""
    rows, kind = pa.array(texts, pa.string()), "VARCHAR"
    if content.reading == "list":
        lists = [text.split(BORDER) for text in texts]
        rows, kind = pa.array(lists, pa.list_(pa.string())), "VARCHAR[]"
    try:
        found = tokens_by_duckdb(rows, tokens_query(content, kind, "FROM rows"))
    except duckdb.Error:
        raise UsageError(
            "split, keep, drop, max_token_length: these texts cannot be split into tokens so: a "
            "pattern is no regular expression, or a token is too long where too_long='error'"
        ) from None
    return [tuple(token for token in tokens or () if token) for tokens in found.to_pylist()]


def tokens_by_duckdb(content: pa.Array, query_of_rows: str) -> Any:
    """The tokens of each row of `content`, by a query (`tokens_query`) over `rows`: a batch at a
    time and for all engines, so that there is one definition (`sql/rows/text.sql`), one dialect of
    regular expressions and one version of Unicode."""
    try:
        con = _FREE_CONNECTIONS.pop()
    except IndexError:
        con = _new_connection()
    con.register("rows", pa.table({"content": content}))
    try:
        lists = con.sql(f"SELECT tokens FROM ({query_of_rows})").to_arrow_table()
    except duckdb.Error as problem:
        # DuckDB's message is replaced: it may quote the row, and engines log errors. Only the text
        # 'dphh: too long' is kept, with which the expression may call error().
        too_long = "dphh: too long" in str(problem)
        said = "dphh: too long" if too_long else f"dphh: no tokens ({type(problem).__name__})"
        raise type(problem)(said) from None
    finally:
        con.unregister("rows")
        _FREE_CONNECTIONS.append(con)
    return lists.column("tokens").cast(pa.list_(pa.string())).combine_chunks()


def _new_connection() -> duckdb.DuckDBPyConnection:
    """A new connection that has the macros that make tokens. Its one thread keeps rows in order."""
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute("SET enable_progress_bar = false")
    con.execute(query("text"))
    return con
