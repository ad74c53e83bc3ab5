"""A connection that holds what a DuckDB shell loads, and nothing of dphh's Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from dphh.sql import query


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(query("shell"))
        yield connection


@pytest.fixture
def rows(con: duckdb.DuckDBPyConnection) -> Callable[..., list[dict[str, Any]]]:
    """The rows of a query, by the names of its columns."""

    def fetch(sql: str, *arguments: Any) -> list[dict[str, Any]]:
        cursor = con.execute(sql, list(arguments))
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return fetch
