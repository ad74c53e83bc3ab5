"""Names of users who are no whole numbers and no texts: one spelling on every engine, since which
keys an over-full user counts for hangs on the name."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa


def spelled_by_duckdb(users: Any) -> pa.Array:
    """A column of users as DuckDB's `CAST(user_id AS VARCHAR)` has it."""
    with duckdb.connect() as con:
        con.register("users", pa.table({"user_id": users}))
        spelled = con.sql("SELECT CAST(user_id AS VARCHAR) AS name FROM users")
        names: pa.Array = spelled.to_arrow_table().column("name").combine_chunks()
    return names.cast(pa.string())
