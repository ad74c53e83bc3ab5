"""Users' names, as `CAST(user_id AS VARCHAR)` spells them."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pyarrow as pa


def spelled_users(users: pl.Series) -> Any:
    """Users' names as DuckDB spells them, an Arrow array."""
    if users.dtype == pl.String or users.dtype.is_integer():  # there is one way to spell them
        return users.cast(pl.String).to_arrow().cast(pa.string())
    with duckdb.connect() as con:
        con.register("users", pa.table({"user_id": users.to_arrow()}))
        spelled = con.sql("SELECT CAST(user_id AS VARCHAR) AS name FROM users")
        return spelled.to_arrow_table().column("name").combine_chunks()
