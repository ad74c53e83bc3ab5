"""A step's query in Spark's SQL: the text in `sql/`, for DuckDB, with what differs replaced.

A file of `sql/spark/` is an exception, in Spark's own SQL, and its first line says why it is one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from dphh.sql import query, query_paths

#: Patterns of DuckDB's SQL and what replaces them in Spark's SQL, one after the other.
SQL_DIFFERENCES = tuple(
    (re.compile(duckdb), spark)
    for duckdb, spark in (
        (r"\bunnest\(", "explode("),
        (r"\blambda (\w+):", r"\1 ->"),
        (r"\blist_filter\(", "filter("),
        (r"\blist_transform\(", "transform("),
        (r"\blist_contains\(", "array_contains("),
        (r"\blist_position\(", "array_position("),
        (r"\blist_slice\(", "dphh_slice("),
        (r"\btokens_of\(", "dphh_tokens("),
        (r"\berror\(", "raise_error("),
        (r"\barray_to_string\(", "array_join("),
        (r"\brow\(", "struct("),
        (r"\bVARCHAR\b", "STRING"),
    )
)
#: Matches $name, a parameter in DuckDB's SQL; in Spark's SQL it is :name.
_PARAMETER_PATTERN = re.compile(r"\$(\w+)")
#: Matches the last line of a statement, if it is no comment.
_LAST_LINE_PATTERN = re.compile(r"^(?!\s*--).*;$", re.MULTILINE)
_CREATE_PATTERN = re.compile(r"^CREATE (?:TEMP )?(TABLE|VIEW) (\w+) AS$", re.MULTILINE)


class Statement(NamedTuple):
    """A table or view that a step makes, and its query."""

    kind: str
    made: str
    select: str


@cache
def statements(step: str) -> tuple[Statement, ...]:
    """The tables and views that a step makes, in their order."""
    _, *parts = _CREATE_PATTERN.split(spark_sql(step))
    made = []
    for kind, name, select in zip(*(parts[i::3] for i in range(3)), strict=True):
        last = _LAST_LINE_PATTERN.search(select)
        made.append(Statement(kind, name, select[: last.end() - 1] if last else select))
    return tuple(made)


@cache
def spark_sql(step: str) -> str:
    """The text of a step in Spark's SQL."""
    text = query(step, "spark")
    if not query_paths(step, "spark")[0].startswith("spark/"):
        for duckdb, spark in SQL_DIFFERENCES:
            text = duckdb.sub(spark, text)
    return _PARAMETER_PATTERN.sub(r":\1", text).rstrip().removesuffix(";")
