"""Regular expressions of a corpus are RE2's: DuckDB makes the tokens, for all engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dphh.errors import UsageError

if TYPE_CHECKING:
    import duckdb


def check_patterns(con: duckdb.DuckDBPyConnection, patterns: Mapping[str, str]) -> None:
    """Refuse what is not RE2's."""
    import duckdb

    for option, pattern in patterns.items():
        try:
            con.execute("SELECT regexp_matches('', $pattern)", {"pattern": pattern})
        except duckdb.Error as problem:
            raise UsageError(
                f"{option}: {pattern!r} is not a valid regular expression in RE2's syntax, which "
                f"all engines use: {problem}"
            ) from None
