"""Queries as text, with parameters filled in, and the macros that they call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dphh.sql import place, query

_PARAMETER = re.compile(r"\$([a-z_]\w*)")
_MACRO = re.compile(r"^CREATE OR REPLACE TEMP MACRO (\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One file of `sql/` as a run executes it."""

    name: str
    #: Parameters whose values the plan fixes.
    known: Mapping[str, Any] = field(default_factory=dict)
    #: Parameters that the plan leaves open, with what each depends on.
    later: Mapping[str, str] = field(default_factory=dict)
    #: Whether earlier results decide if the step runs, or how often.
    may_run: bool = False


@dataclass(frozen=True)
class Query:
    """A part of a plan's text: its section and its SQL."""

    section: str
    sql: str


def as_text(queries: Sequence[Query]) -> str:
    """One text, with a heading line for each section."""
    parts = []
    for section, of_section in groupby(queries, lambda query: query.section):
        parts.append(f"-- {section} {'-' * (96 - len(section))}")
        parts += [query.sql for query in of_section]
    return "\n\n".join(part for part in parts if part) + "\n"


def written(step: Step) -> str:
    """The query with known parameters filled in, and a comment on each open one."""
    text = filled(query(step.name).strip(), step.known)
    asked = dict.fromkeys(_PARAMETER.findall(text))
    said = [f"-- ${name}: {step.later[name]}\n" for name in asked if name in step.later]
    return f"-- sql/{place(step.name)}\n{''.join(said)}{text}" + ("" if text.endswith(";") else ";")


def filled(text: str, known: Mapping[str, Any]) -> str:
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


@dataclass(frozen=True)
class Written:
    """A value that is already SQL text."""

    sql: str


def literal(value: Any) -> str:
    if isinstance(value, Written):
        return value.sql
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)


def macros_called(text: str, files: Iterable[str]) -> str:
    """The macros from these files that a text calls, directly or through other macros."""
    defined = {name: body for file in files for name, body in _macros_of_file(query(file))}
    called: set[str] = set()
    waiting = [text]
    while waiting:
        words = set(re.findall(r"\w+", waiting.pop()))
        fresh = (words & defined.keys()) - called
        called |= fresh
        waiting += [defined[name] for name in fresh]
    return "\n\n".join(body for name, body in defined.items() if name in called)


def _macros_of_file(text: str) -> Iterator[tuple[str, str]]:
    """Each macro of a file, with the comment above it."""
    for part in re.split(r";[ ]*\n", text.strip() + "\n"):
        found = _MACRO.search(part)
        if found is not None:
            comment = re.search(r"(?:^-- (?!noqa|-).*\n)*\Z", part[: found.start()], re.MULTILINE)
            said = comment[0] if comment else ""
            body = re.sub(r"[ ]*-- noqa: PRS", "", part[found.start() :])
            yield found[1], f"{said}{body};"
