"""Identifiers and string literals in DuckDB's SQL syntax."""

from __future__ import annotations


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
