"""Names of users whose ids are neither integers nor texts. Every engine must spell them alike,
because bounding chooses a user's keys by a hash of the name."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa


def spelled_by_duckdb(users: Any) -> pa.Array:
    """A column of user ids as DuckDB's `CAST(user_id AS VARCHAR)` spells them."""
    with duckdb.connect() as con:
        con.register("users", pa.table({"user_id": users}))
        spelled = con.sql("SELECT CAST(user_id AS VARCHAR) AS name FROM users")
        names: pa.Array = spelled.to_arrow_table().column("name").combine_chunks()
    return names.cast(pa.string())
