"""Users' names, as `CAST(user_id AS VARCHAR)` spells them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from dphh.udfs.text.names import spelled_by_duckdb


def spelled_users(users: pl.Series) -> Any:
    """Users' names as DuckDB spells them, an Arrow array."""
    if users.dtype == pl.String or users.dtype.is_integer():  # there is one way to spell them
        return users.cast(pl.String).to_arrow().cast(pa.string())
    return spelled_by_duckdb(users.to_arrow())
