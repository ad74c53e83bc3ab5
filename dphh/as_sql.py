"""A plan as SQL to read: what a run on DuckDB executes, level by level, with the plan's numbers. A
value that follows from releases has the parameter's name in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dphh.mechanisms.running import Step
from dphh.price import Price
from dphh.reader.corpus import Corpus
from dphh.reader.paths import parquet_pattern
from dphh.reader.views import SOURCE_TABLE_NAME, view_statements
from dphh.registry import draws_of
from dphh.sql import literal, query, query_paths

PLAN_SQL_HEADING = """\
-- What {verb} ({method}) would execute on DuckDB, level by level. This text is free: it reads
-- nothing and spends nothing. Functions called dphh_... are dphh's own (udfs/). Names such as $w
-- stand for values that no plan can know: $salt for 64 random bits, drawn for a level, $sigma and
-- $threshold for noise and a threshold that follow from what was found; a query's comment says what
-- others are. Steps below a title with "if" are of a run that found so much, or so little, before
-- them. Not shown: tables of earlier releases, which a query's comment calls public, and the drops
-- of tables."""
_SUFFIX_NOT_PARQUET = re.compile(r"\.(?!parquet$)[A-Za-z]\w*$")
_PARAMETER_PATTERN = re.compile(r"\$([a-z_]\w*)")


def plan_sql(price: Price, corpus: Corpus | None) -> str:
    """All queries of a plan as one text, in titled sections."""
    parts = [
        ("what this is", [PLAN_SQL_HEADING.format(verb=price.verb, method=price.method)]),
        ("the corpus", [corpus_sql(corpus)]),
        *((title, [*map(step_sql, steps)]) for title, steps in draws_of(price)),
    ]
    sections = (
        "\n\n".join([f"-- {title} {'-' * (96 - len(title))}", *queries]) for title, queries in parts
    )
    return "\n\n".join(sections) + "\n"


def step_sql(listed: Step) -> str:
    """A step's query, with known values in place of their parameters."""
    step, known = listed
    if " " in step:  # a line of SQL, not the name of a step
        return step
    text = with_values(query(step).strip(), {"is_test": False, **known})
    return f"-- sql/{query_paths(step)[0]}\n{text}{'' if text.endswith(';') else ';'}"


def with_values(text: str, known: Mapping[str, Any]) -> str:
    """The text with known values in place of `$name`. In comments only integers are put in, because
    a comment must stay on one line."""

    def filled(part: str, values: Mapping[str, Any]) -> str:
        return _PARAMETER_PATTERN.sub(
            lambda name: sql_literal(values[name[1]]) if name[1] in values else name[0], part
        )

    integers = {name: value for name, value in known.items() if isinstance(value, int)}
    lines = []
    for line in text.split("\n"):
        query, dashes, comment = line.partition("--")
        lines.append(filled(query, known) + dashes + filled(comment, integers))
    return "\n".join(lines)


def sql_literal(value: Any) -> str:
    """A value of Python as an SQL literal; one unprintable character as chr(code)."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        code = len(value) == 1 and not value.isprintable()
        return f"chr({ord(value)})" if code else literal(value)
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(sql_literal, value)) + "]"
    return repr(value)


def corpus_sql(corpus: Corpus | None) -> str:
    """The views that read the corpus, and the macro of its tokens. The text is made without reading
    the corpus."""
    if corpus is None:
        return "-- In: rows_of_corpus (user_id, content, group_name). The plan has no corpus yet."
    content, relation = corpus.content, SOURCE_TABLE_NAME
    if corpus.kind == "path" and not any(map(_SUFFIX_NOT_PARQUET.search, corpus.where)):
        places = [parquet_pattern(place) for place in corpus.where]
        relation = f"read_parquet({sql_literal(places)}, union_by_name = true)"
    types = dict.fromkeys(corpus.columns.values(), "VARCHAR")
    kind = "text"
    if content.reading == "list":
        types[content.column], kind = "VARCHAR[]", "a list of texts"
    said = [
        f"-- Columns of the corpus. (Not looked at: {content.column!r} is taken as {kind}.)",
        "-- Macros that are called here and not made here are those of sql/rows/.",
    ]
    if relation == SOURCE_TABLE_NAME:
        said.append(f"-- {relation} is a table or view with these columns.")
    statements = view_statements(corpus, types, relation)
    return "\n".join(said) + "\n" + "\n\n".join(f"{each};" for each in statements)
