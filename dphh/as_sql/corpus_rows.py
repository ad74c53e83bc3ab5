"""The corpus of a plan as SQL: its rows, and how a row becomes tokens. Reads nothing."""

from __future__ import annotations

import re

from dphh.as_sql.query_text import literal
from dphh.corpus import Corpus
from dphh.engines.duckdb.content import corpus_statements
from dphh.files.paths import parquet_pattern

#: The name used for a table that has none of its own.
TABLE = "corpus_rows"
_NOT_PARQUET = re.compile(r"\.(?!parquet$)[A-Za-z]\w*$")


def rows_of(corpus: Corpus | None) -> str:
    """Views up to `tokens_of_rows`, and the macros of user keys."""
    if corpus is None:
        return "-- In: tokens_of_rows (user_id, tokens, group_name). The plan has no corpus yet."
    content = corpus.content
    types = dict.fromkeys(corpus.columns.values(), "VARCHAR")
    if content.reading == "list":
        types[content.column] = "VARCHAR[]"
    relation = relation_of(corpus)
    statements = corpus_statements(corpus, types, relation)
    kind = "a list of texts" if content.reading == "list" else "text"
    said = [
        f"-- Columns of the corpus. (Not looked at: {content.column!r} is taken as {kind}.)",
        "-- Macros that are called here and not made here are those of sql/rows/.",
        *([f"-- {TABLE} is a table or view with these columns."] if relation == TABLE else []),
    ]
    return "\n".join(said) + "\n" + "\n\n".join(f"{each};" for each in statements)


def relation_of(corpus: Corpus) -> str:
    """The relation with the rows: Parquet files, or the placeholder table."""
    if corpus.kind != "path" or any(_NOT_PARQUET.search(place) for place in corpus.where):
        return TABLE
    places = [parquet_pattern(place) for place in corpus.where]
    return f"read_parquet({literal(places)}, union_by_name = true)"
