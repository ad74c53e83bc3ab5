"""Names and texts as DuckDB's SQL has them."""

from __future__ import annotations


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
