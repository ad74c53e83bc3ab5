"""User ids as text, in the spelling of DuckDB's `CAST(user_id AS VARCHAR)`."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from dphh.udfs.text.names import spelled_by_duckdb


def spelled_users(users: pl.Series) -> Any:
    """The user ids as text in DuckDB's spelling, an Arrow array."""
    if users.dtype == pl.String or users.dtype.is_integer():  # these have only one spelling
        return users.cast(pl.String).to_arrow().cast(pa.string())
    return spelled_by_duckdb(users.to_arrow())
