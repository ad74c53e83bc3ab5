"""Grapheme clusters for engines without them, and how bytes are spelled and read.

All engines use DuckDB's grapheme clusters, by the one definition in `sql/rows/text_units.sql`;
engines without one of their own call it here, a batch at a time. A byte is spelled as two
hexadecimal digits, since a text column cannot contain a single byte of "é".
"""

from __future__ import annotations

import threading
from typing import Any

import duckdb
import pyarrow as pa

from dphh.sql import query

#: Precedes the digits of bytes that are not UTF-8.
NO_TEXT = "\\x"
_CONNECTION_OF_THREAD = threading.local()


def graphemes(texts: pa.Array) -> pa.Array:
    """The list of extended grapheme clusters (UAX #29) of each text, which must be UTF-8."""
    con = _connection()
    con.register("texts", pa.table({"text": texts}))
    try:
        lists = con.sql("SELECT graphemes(text) AS clusters FROM texts").to_arrow_table()
    finally:
        con.unregister("texts")
    whole: Any = lists.column("clusters").cast(pa.list_(pa.string())).combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def read_bytes(digits: str) -> str:
    """These bytes as text, or, if they are not UTF-8, `\\x` and their digits."""
    try:
        return bytes.fromhex(digits).decode()
    except UnicodeDecodeError:
        return NO_TEXT + digits


def _connection() -> duckdb.DuckDBPyConnection:
    """One connection for each thread, with only the macros. Its one thread keeps rows in order."""
    con = getattr(_CONNECTION_OF_THREAD, "con", None)
    if con is None:
        con = duckdb.connect(":memory:", config={"threads": 1})
        con.execute("SET enable_progress_bar = false")
        con.execute(query("text_units"))
        _CONNECTION_OF_THREAD.con = con
    return con
