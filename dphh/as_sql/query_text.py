"""Queries as text, with parameters filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dphh.sql import place, query

_PARAMETER = re.compile(r"\$([a-z_]\w*)")


@dataclass(frozen=True)
class Step:
    """One file of `sql/` as a run executes it."""

    name: str
    #: Parameters whose values the plan fixes.
    known: Mapping[str, Any] = field(default_factory=dict)


def section(title: str, *queries: str) -> str:
    """Queries under a heading line."""
    return "\n\n".join([f"-- {title} {'-' * (96 - len(title))}", *queries])


def written(step: Step, later: Mapping[str, str]) -> str:
    """The query with known parameters filled in, and a comment on each open one: what it follows
    from, as `later` says."""
    text = filled(query(step.name).strip(), step.known)
    opened = dict.fromkeys(_PARAMETER.findall(text)).keys() - step.known.keys()
    said = [f"-- ${name}: {later[name]}\n" for name in sorted(opened) if name in later]
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


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)
