"""A plan as SQL to read: what a run on DuckDB executes, level by level, with the plan's numbers.

The mechanism's levels run on a host that records what they ask (`recording`), with made-up releases
in place of those that a run would make. A value that follows from releases differs between two such
runs, and stays a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dphh.as_sql.recording import RecordedStep, RecordingHost
from dphh.corpus import Corpus
from dphh.engines.duckdb.content import corpus_statements
from dphh.files.paths import parquet_pattern
from dphh.price import Price
from dphh.registry import run_levels
from dphh.sql import place, query

#: The name of a table that has none of its own.
TABLE_NAME = "corpus_rows"
#: Parameters whose values a plan cannot know, and what a run computes each from.
KNOWN_IN_RUN = {
    "norm": "a user's norm on the grid, from the share of the budget that the round gets",
    "released": "what was released before, with the numbers of these, to be looked up",
    "salt": "64 random bits, drawn for this level",
    "sigma": "the noise of the counts, from how many items are found",
    "threshold": "the least weight that noise reaches as seldom as `spurious` asks, from the level "
    "below",
    "valid": "the valid n-grams, or the words of the list, by which they are looked up and drawn",
    "values": "how many values there are: a prefix of the level below, and what comes next",
    "weighing": "how much a user adds to each of the keys that they hold, to be looked up",
    "words_of_corpus": "how many different words the corpus has",
}
HEADING = """\
-- What {verb} ({method}) would execute on DuckDB, level by level. This text is free: it reads
-- nothing and spends nothing. Functions called dphh_... are dphh's own (udfs/). Names such as $salt
-- stand for values that no plan can know; a comment says what each follows from. It shows a run
-- that finds much in every round; where little is found, rounds and levels are left out."""
#: Made-up runs: about how many rows a query releases, and with weights at how many thresholds. The
#: second run finds nothing near a threshold, so that it needs fewer rounds.
MANY_FINDS, MORE_FINDS, FEW_FINDS = (10, 1), (100, 4), (2, 1)
_NOT_PARQUET = re.compile(r"\.(?!parquet$)[A-Za-z]\w*$")
_PARAMETER = re.compile(r"\$([a-z_]\w*)")


def text_of(price: Price, corpus: Corpus | None) -> str:
    """The queries as one text."""
    parts = [
        ("what this is", [HEADING.format(verb=price.verb, method=price.method)]),
        ("the corpus", [corpus_sql(corpus)]),
        *((title, [*map(step_sql, asked)]) for title, asked in sections_of(price).items()),
    ]
    sections = (
        "\n\n".join([f"-- {title} {'-' * (96 - len(title))}", *queries]) for title, queries in parts
    )
    return "\n\n".join(sections) + "\n"


def sections_of(price: Price) -> dict[str, list[RecordedStep]]:
    """What a run asks of its host, by draws, with the parameters that the plan knows."""
    much, more, little = (_recorded(price, *run) for run in (MANY_FINDS, MORE_FINDS, FEW_FINDS))
    sections: dict[str, list[RecordedStep]] = {}
    for title in _merged_titles([*much], [*little]):
        if title not in much:
            sections[f"{title}, if little is found before"] = little[title]
        else:
            condition = "" if title in little else ", if much is found before"
            sections[title + condition] = _equal_parameters(more[title], much[title])
    return sections


def _merged_titles(titles: list[str], others: list[str]) -> list[str]:
    """Titles in order, each of the others that they lack after the one that it follows."""
    place = 0
    for title in others:
        if title not in titles:
            titles.insert(place, title)
        place = titles.index(title) + 1
    return titles


def _recorded(price: Price, rows: int, thresholds: int) -> dict[str, list[RecordedStep]]:
    host = RecordingHost(rows, thresholds)
    run_levels(price, host, host.once, " ", lambda _: None)
    return host.sections


def _equal_parameters(other: list[RecordedStep], asked: list[RecordedStep]) -> list[RecordedStep]:
    """What was asked, without the parameters that differ in another run of the same steps."""
    if [step for step, _ in asked] != [step for step, _ in other]:
        return asked
    return [
        (step, {name: value for name, value in known.items() if again.get(name) == value})
        for (step, known), (_, again) in zip(asked, other, strict=True)
    ]


def step_sql(asked: RecordedStep) -> str:
    """A step's query with known parameters filled in, and a comment on each open one."""
    step, known = asked
    if " " in step:  # SQL, and no name
        return step
    text = with_values(query(step).strip(), known)
    opened = sorted({*_PARAMETER.findall(text)} - known.keys())
    said = [f"-- ${name}: {KNOWN_IN_RUN[name]}\n" for name in opened if name in KNOWN_IN_RUN]
    return f"-- sql/{place(step)}\n{''.join(said)}{text}{'' if text.endswith(';') else ';'}"


def with_values(text: str, known: Mapping[str, Any]) -> str:
    """Replace `$name` by literals; in comments only by integers, which stay on one line."""

    def value(found: re.Match[str]) -> str:
        return literal(known[found[1]]) if found[1] in known else found[0]

    def number(found: re.Match[str]) -> str:
        return value(found) if isinstance(known.get(found[1]), int) else found[0]

    lines = []
    for line in text.split("\n"):
        query, dashes, comment = line.partition("--")
        lines.append(_PARAMETER.sub(value, query) + dashes + _PARAMETER.sub(number, comment))
    return "\n".join(lines)


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # A code that stands for a character may be unprintable.
        code = len(value) == 1 and not value.isprintable()
        return f"chr({ord(value)})" if code else "'" + value.replace("'", "''") + "'"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)


def corpus_sql(corpus: Corpus | None) -> str:
    """Views of the corpus up to `tokens_of_rows`, and the macros of user keys. Reads nothing."""
    if corpus is None:
        return "-- In: tokens_of_rows (user_id, tokens, group_name). The plan has no corpus yet."
    content, relation = corpus.content, TABLE_NAME
    if corpus.kind == "path" and not any(map(_NOT_PARQUET.search, corpus.where)):
        places = [parquet_pattern(place) for place in corpus.where]
        relation = f"read_parquet({literal(places)}, union_by_name = true)"
    types = dict.fromkeys(corpus.columns.values(), "VARCHAR")
    kind = "text"
    if content.reading == "list":
        types[content.column], kind = "VARCHAR[]", "a list of texts"
    said = [
        f"-- Columns of the corpus. (Not looked at: {content.column!r} is taken as {kind}.)",
        "-- Macros that are called here and not made here are those of sql/rows/.",
        *(
            [f"-- {TABLE_NAME} is a table or view with these columns."]
            if relation == TABLE_NAME
            else []
        ),
    ]
    statements = corpus_statements(corpus, types, relation)
    return "\n".join(said) + "\n" + "\n\n".join(f"{each};" for each in statements)
