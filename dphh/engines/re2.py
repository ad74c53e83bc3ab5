"""Regular expressions are RE2's, as DuckDB checks them; every engine accepts the same ones."""

from __future__ import annotations

import duckdb

from dphh.errors import UsageError


def check_re2(con: duckdb.DuckDBPyConnection, option: str, pattern: str) -> None:
    try:
        con.execute("SELECT regexp_matches('', $pattern)", {"pattern": pattern})
    except duckdb.Error as problem:
        raise UsageError(
            f"{option}: {pattern!r} is not a valid regular expression in RE2's syntax, which all "
            f"engines use: {problem}"
        ) from None
